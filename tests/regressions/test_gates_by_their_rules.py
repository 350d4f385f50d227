"""The conditions of gates are found by their rules, whoever takes a run up, and under which gates.

They were told apart by their number: with one gate more above it than it began under, a run read
the answers of that gate as those of its own, and let through what its own denies. A gate whose
rules ended like those of one above it did not hold below, and one that was given to `resume` was
taken and never looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from graphloop import Agent, Policy, RunResult, Tool, allow, ask, deny, tool
from graphloop.agent.options import RunOptions
from graphloop.providers.script import Entry
from graphloop.testing import ScriptedModel
from tests.topology_files import desk

PAID: list[int] = []


@tool
async def pay(amount: int) -> str:
    """Pay."""
    PAID.append(amount)
    return "paid"


@tool(needs_approval=True)
async def note() -> str:
    """Note something."""
    return "noted"


@tool
async def refund(amount: int) -> str:
    """Refund."""
    return "refunded"


transfer = Tool(name="transfer", parameters={"type": "object"})


def much(arguments: Mapping[str, Any], context: object) -> bool:
    """Whether much is paid."""
    return bool(arguments.get("amount", 0) > 10)


def batch_of(*calls: tuple[str, dict[str, object]]) -> Entry:
    """Return a reply that calls tools."""
    return {"calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}


def called(name: str, **arguments: object) -> Entry:
    """Return a reply that calls a tool."""
    return batch_of((name, arguments))


STRICT = deny("pay", when=much) | allow("*")
OUTER = [None, allow("*"), deny("zzz*") | allow("*"), STRICT]

DENIES = "[{deny: pay, when: much}, {allow: '*'}]"


def model() -> ScriptedModel:
    """Return a model that notes something, which a person is asked about, and pays."""
    replies = (called("note"), called("pay", amount=5), called("pay", amount=50), "done")
    return ScriptedModel(replies, label="script", restart=True)


def kid(**options: Any) -> Agent:
    """Return an agent that notes something, and pays."""
    return Agent(model(), name="kid", tools=[note, pay], **options)


def in_an_agent(first: Policy | None, then: Policy | None, store: str, **options: Any) -> None:
    """Have an agent's tool, the kid, begin under one gate and go on under another."""

    def lead_of(gate: Policy | None) -> Agent:
        top = ScriptedModel([called("kid", prompt="go"), "over"], label="top")
        tools = [kid(**options).as_tool(description="pays")]
        lead = Agent(top, name="lead", tools=tools, store=store)
        return lead if gate is None else lead.with_options(gate=gate)

    async def scenario() -> None:
        result = await lead_of(first).generate("go", run_id="r")
        assert ["note"] == [one.name for one in result.pending]
        await lead_of(then).resume("r", approvals={one.key: True for one in result.pending})

    PAID.clear()
    asyncio.run(scenario())


def in_a_file(rules: str, then: Policy | None, store: str) -> RunResult:
    """Return the result of a file that begins without a gate and goes on under one."""
    tools = (pay, note, transfer, kid().as_tool(description="pays"))
    graph = desk(rules, *tools, when=much)
    options: RunOptions = {"store": store} if then is None else {"store": store, "gate": then}

    async def scenario() -> RunResult:
        begun = await graph.run(None, model=model(), prompt="go", store=store, run_id="r")
        said = {one.key: True for one in begun.pending}
        return await graph.resume("r", model=model(), approvals=said, **options)

    PAID.clear()
    return asyncio.run(scenario())


@pytest.mark.parametrize("first", OUTER[:-1])
@pytest.mark.parametrize("then", OUTER)
def test_a_childs_own_gate_holds_under_whatever_gates(
    first: Policy | None, then: Policy | None, tmp_path: Path
) -> None:
    """It pays a little, and never much."""
    in_an_agent(first, then, str(tmp_path / "runs.db"), gate=STRICT)

    assert [5] == PAID


@pytest.mark.parametrize("then", OUTER)
def test_what_a_run_began_under_holds_under_whatever_gates(
    then: Policy | None, tmp_path: Path
) -> None:
    """The journal keeps the rules; where nobody knows its condition any more, it has failed."""
    in_an_agent(STRICT, then, str(tmp_path / "runs.db"))

    # The call that started the kid was let through by the gate that this process does not have.
    assert PAID == ([5] if then is STRICT else [])


@pytest.mark.parametrize("then", OUTER)
def test_a_files_own_gate_holds_under_whatever_gates(then: Policy | None, tmp_path: Path) -> None:
    """Given with the run, or not."""
    in_a_file(DENIES, then, str(tmp_path / "runs.db"))

    assert [5] == PAID


@pytest.mark.parametrize(
    ("then", "paid"),
    [
        (None, [5, 50]),
        (deny("pay") | allow("*"), []),
        (STRICT, [5]),
        (allow("pay", when=much) | deny("pay"), [50]),
    ],
)
def test_a_gate_that_is_given_to_resume_holds_as_well(
    then: Policy | None, paid: list[int], tmp_path: Path
) -> None:
    """With its conditions."""
    in_a_file("[{allow: '*'}]", then, str(tmp_path / "runs.db"))

    assert paid == PAID


def test_who_is_asked_by_a_gate_that_is_given_to_resume_is_asked(tmp_path: Path) -> None:
    """The run waits for a person."""
    result = in_a_file("[{allow: '*'}]", ask("pay") | allow("*"), str(tmp_path / "runs.db"))

    assert ["pay"] == [one.name for one in result.pending]
    assert [] == PAID


@pytest.mark.parametrize("outer", [None, allow("*"), allow("pay", "kid", "note")])
def test_a_gate_holds_below_though_one_above_ends_with_its_rules(outer: Policy | None) -> None:
    """`allow *` above does not loosen `deny pay | allow *`."""
    payer = Agent(ScriptedModel([called("pay", amount=50), "done"]), name="kid", tools=[pay])
    tools = (pay, note, transfer, payer.as_tool(description="pays"))
    graph = desk("[{deny: pay}, {allow: '*'}]", *tools)
    gate: RunOptions = {"gate": outer} if outer is not None else {}
    top = ScriptedModel([called("kid", prompt="go"), "over"])
    PAID.clear()

    result = asyncio.run(graph.run(None, model=top, prompt="go", **gate))

    assert "over" == result.text
    assert [] == PAID


@pytest.mark.parametrize(
    ("gate", "asks"),
    [
        (ask("pay") | allow("*"), True),
        (ask("pay", when=much) | allow("*"), True),
        (ask("refund") | allow("*"), False),
        (allow("*"), False),
    ],
)
def test_no_agent_approves_what_its_callers_must_be_asked(gate: Policy, asks: bool) -> None:
    """Its own approver answers for it only where no gate above asks."""
    payer = Agent(
        ScriptedModel([called("pay", amount=50), "done"], restart=True),
        name="kid",
        tools=[pay],
        gate=ask("pay"),
        approve_tool_call=lambda _: True,
    )
    model = ScriptedModel([called("kid", prompt="go"), "over"], restart=True)
    lead = Agent(model, tools=[payer.as_tool(description="pays"), refund], gate=gate)
    PAID.clear()

    result = asyncio.run(lead.generate("go"))

    assert asks is bool(result.pending)
    assert PAID == ([] if asks else [50])
    if asks:
        said = {one.key: True for one in result.pending}
        asyncio.run(lead.resume(result, approvals=said))
        assert [50] == PAID


def renamed(arguments: Mapping[str, Any], context: object) -> bool:
    """Whether much is paid, by another name."""
    return much(arguments, context)


@pytest.mark.parametrize(
    ("then", "paid"),
    [
        (STRICT, []),
        (deny("pay", when=renamed) | allow("*"), []),
        (ask("pay", when=renamed) | allow("*"), []),
        (allow("*"), [50]),
    ],
)
async def test_a_check_at_one_gate_lets_no_call_through_another(
    then: Policy, paid: list[int], tmp_path: Path
) -> None:
    """It waited with another for a person, and the gate is another one since."""
    batch = batch_of(("note", {}), ("pay", {"amount": 50}))

    def payer(gate: Policy) -> Agent:
        replies = ScriptedModel([batch, "done"], label="script")
        return Agent(replies, tools=[note, pay], gate=gate, store=str(tmp_path / "runs.db"))

    PAID.clear()
    result = await payer(STRICT).generate("go", run_id="r")
    assert ["note"] == [one.name for one in result.pending]
    await payer(then).resume("r", approvals={result.pending[0].key: True})

    assert paid == PAID


def in_hand(then: Policy, store: str, *calls: tuple[str, dict[str, object]]) -> RunResult:
    """Return the result of a run that waits about one call of some, and goes on under a gate."""
    batch = batch_of(("note", {}), *calls)
    tools = (pay, note, transfer, kid().as_tool(description="pays"))
    graph = desk("[{allow: '*'}]", *tools)
    asked = ScriptedModel([batch, "done"])

    async def scenario() -> RunResult:
        begun = await graph.run(None, model=asked, prompt="go", store=store, run_id="r")
        said = {one.key: True for one in begun.pending}
        assert 1 == len(said)
        return await graph.resume("r", model=asked, approvals=said, store=store, gate=then)

    PAID.clear()
    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("then", "paid"), [(deny("pay") | allow("*"), []), (ask("pay") | allow("*"), []), (STRICT, [5])]
)
def test_a_gate_given_to_resume_holds_for_the_calls_in_hand(
    then: Policy, paid: list[int], tmp_path: Path
) -> None:
    """They were let through before, and have not begun."""
    in_hand(then, str(tmp_path / "runs.db"), ("pay", {"amount": 5}), ("pay", {"amount": 50}))

    assert paid == PAID


@pytest.mark.parametrize("rule", [deny, ask])
@pytest.mark.parametrize(("name", "arguments"), [("transfer", {}), ("kid", {"prompt": "go"})])
def test_it_holds_for_calls_of_clients_and_agents_in_hand(
    name: str, arguments: dict[str, object], rule: Callable[[str], Policy], tmp_path: Path
) -> None:
    """No client is told to run it, and no agent begins."""
    result = in_hand(rule(name) | allow("*"), str(tmp_path / "runs.db"), (name, arguments))

    assert () == result.pending
    assert ["ok", "denied"] == [one.status for one in result.steps[0].tool_results]
    assert [] == PAID


def test_a_client_s_call_that_it_allows_goes_to_the_client(tmp_path: Path) -> None:
    """As if the gate had been there from the beginning."""
    result = in_hand(deny("pay") | allow("*"), str(tmp_path / "runs.db"), ("transfer", {}))

    assert [("client_tool", "transfer")] == [(one.kind, one.name) for one in result.pending]
