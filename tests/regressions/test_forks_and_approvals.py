"""A copy of a run does not act on what a person has approved of the run, unless its maker says so.

A fork behind an approval had that of the original: one approval, two payments.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from graphloop import END, Agent, Graph, Runs, approve, ask, tool
from graphloop.errors import ConfigError
from graphloop.events import Decided
from graphloop.nodes import Append, Approve, Child
from graphloop.outcomes import Accepted, Answered, Final
from graphloop.run import EndReason
from graphloop.stores.opening import open_store
from graphloop.testing import ScriptedModel

PAID: list[int] = []
PAY: Any = {"calls": [{"name": "pay", "arguments": {"amount": 5}}]}


@tool
def pay(amount: int) -> str:
    """Pay."""
    PAID.append(amount)
    return "paid"


def payer(store: Path) -> Agent:
    """Return an agent that asks before it pays, twice."""
    model = ScriptedModel([PAY, PAY, "done"], label="script:payer", restart=True)
    return Agent(model, name="payer", tools=[pay], gate=ask("pay"), store=str(store))


async def paid(agent: Agent, run_id: str) -> list[int]:
    """Run to the end of the first payment, and return the numbers of the approvals."""
    PAID.clear()
    await agent.generate("go", run_id=run_id)
    await agent.resume(run_id, approvals={"c0.0": True})
    events = await open_store(str(agent.options.get("store"))).load(run_id)
    return [at for at, one in enumerate(events, 1) if isinstance(one, Decided)]


async def test_a_fork_right_behind_an_approval_is_refused(tmp_path: Path) -> None:
    """It says which event the approval is, and from where the person is asked again."""
    agent = payer(tmp_path / "runs.db")

    (at,) = await paid(agent, "r")
    with pytest.raises(ConfigError, match=rf"event {at} .*c0\.0.*at={at - 1}.*share_approvals"):
        await agent.runs.fork("r", at=at, new_id="f")
    copy = await agent.runs.fork("r", at=at - 1)
    asked = await agent.resume(copy)
    assert (EndReason.PARKED, [5]) == (asked.end_reason, PAID)


async def test_its_maker_may_share_the_approval_and_knows_it_then(tmp_path: Path) -> None:
    """Said in so many words, the copy pays."""
    agent = payer(tmp_path / "runs.db")

    (at,) = await paid(agent, "r")
    await agent.resume(await agent.runs.fork("r", at=at, share_approvals=True))
    assert [5, 5] == PAID


async def test_a_fork_behind_the_approved_payment_shares_nothing(tmp_path: Path) -> None:
    """What the person approved has happened; the next payment is asked about."""
    agent = payer(tmp_path / "runs.db")

    (at,) = await paid(agent, "r")
    copy = await agent.runs.fork("r", at=at + 4)
    assert EndReason.PARKED is (await agent.resume(copy)).end_reason
    assert [5] == PAID


async def test_an_approved_plan_is_approved_for_one_run(tmp_path: Path) -> None:
    """An `Approve` node's yes stays in force, so that each later fork shares it."""
    write, append, ask_, work = Child("writer"), Append(), Approve(), Child("writer", "work")
    graph: Graph[None] = Graph(
        "plan",
        write,
        {
            write: {Answered: append, ...: END},
            append: {Final: ask_, ...: END},
            ask_: {Accepted: work, ...: END},
            work: {...: END},
        },
    )
    writer = Agent(ScriptedModel(["plan"], restart=True)).as_tool(description="w", name="writer")
    store = tmp_path / "runs.db"

    given: Any = {"agents": {"writer": writer}, "store": str(store)}
    parked = await graph.run(None, prompt="go", run_id="r", **given)
    (asked,) = parked.pending
    done = await graph.resume("r", approvals={asked.key: approve()}, **given)
    with pytest.raises(ConfigError, match=r"approved .*approve\.\d+.*share_approvals"):
        await Runs(store, graph).fork("r", at=done.run.seq - 1)
    await Runs(store, graph).fork("r", at=done.run.seq - 1, share_approvals=True)
    await Runs(store, graph).fork("r", at=done.run.seq)  # It is over: nothing acts any more.


async def test_the_approvals_of_children_that_are_copied_count_as_well(tmp_path: Path) -> None:
    """A child goes on with its copy's parent."""
    store = tmp_path / "runs.db"
    told: Any = {"calls": [{"name": "payer", "arguments": {"prompt": "pay"}}]}
    model = ScriptedModel([told, "done"], label="script:top", restart=True)
    top = Agent(model, tools=[payer(store).as_tool(description="pays")], store=str(store))

    PAID.clear()
    parked = await top.generate("go", run_id="r")
    await top.resume("r", approvals={"c0.0/c0.0": True})
    with pytest.raises(ConfigError, match=r"run 'r/c0\.0'.*share_approvals") as refused:
        await top.runs.fork("r", at=parked.run.seq)
    # The number is of the run that is forked: the last event before the child began.
    (at,) = re.findall(r"at=(\d+)", str(refused.value))
    copy = await top.runs.fork("r", at=int(at))
    assert EndReason.PARKED is (await top.resume(copy)).end_reason
    with pytest.raises(ConfigError, match="share_approvals"):
        await top.runs.fork("r", at=int(at) + 1)
    assert [5] == PAID
