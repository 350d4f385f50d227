"""What is told of a run that waits."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from graphloop import Agent, Approval, RunResult, Tool, tool
from graphloop.cli.parked import answered, pending_lines
from graphloop.cli.place import Place
from graphloop.effects import AskHuman
from graphloop.front.answers import Answers
from graphloop.stores.base import Store
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.values import evolve

CLICK = Tool(name="click", description="Clicks.", parameters={"type": "object"})


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"{amount} paid"


def parked(*calls: str, store: Store | None = None) -> RunResult[None]:
    asked = [{"name": name, "arguments": {"amount": 5}} for name in calls]
    model = ScriptedModel([{"calls": asked}, "done"])
    return Agent(model, tools=[pay, CLICK], store=store).generate_sync("pay", run_id="r")


def test_a_parked_run_is_gone_on_with_by_commands() -> None:
    """Whoever reads it hours later has only these lines."""
    store = MemoryStore()

    lines = list(pending_lines(parked("pay", "pay"), Place(store, "a b.db", "pay")))

    assert lines == [
        "parked: the run waits for 2 answers",
        "  c0.0  approval of pay(amount=5)",
        "  c0.1  approval of pay(amount=5)",
        "Go on, here or in another process:",
        "  graphloop approve r c0.0 --store 'a b.db'",
        "  graphloop approve r c0.1 --store 'a b.db'",
        "  graphloop resume r --store 'a b.db'",
        "To deny a call, add --deny; to change its arguments, --edit JSON.",
    ]


def test_an_edit_is_offered_only_where_one_is_taken() -> None:
    """A call that may have run already runs as it was, or not."""
    result, place = parked("pay"), Place(MemoryStore(), "runs.db", "pay")
    (asked,) = result.run.pending.values()
    assert isinstance(asked, AskHuman)
    again = evolve(result.run, pending={7: evolve(asked, id=7, unknown=True)})

    lines = list(pending_lines(replace(result, run=again), place))

    assert lines[1] == "  c0.0#7  approval of pay(amount=5); it may have run already"
    assert lines[-1] == "To deny a call, add --deny."


def test_a_store_without_a_mailbox_is_answered_while_the_run_is_driven(tmp_path: Path) -> None:
    """`graphloop approve` would only say that it cannot."""
    lines = list(pending_lines(parked("pay"), Place(JsonlStore(tmp_path), "runs", "/x/pay")))

    assert lines[2:] == [
        "Go on in a terminal, which asks; or with --approve always, or never:",
        "  graphloop resume r --target /x/pay --store runs",
    ]


def test_what_a_client_tool_returns_comes_from_python() -> None:
    """What the line says goes on indeed: an instruction that does not work is worse than none."""
    store = MemoryStore()
    result = parked("click", store=store)

    lines = list(pending_lines(result, Place(store, "runs.db", "pay")))

    assert lines == [
        "parked: the run waits for 1 answer",
        "  c0.0  the result of click(amount=5)",
        'Go on from Python, with the agent made with store="runs.db":',
        '  await agent.resume("r", tool_results={"c0.0": …})',
    ]
    agent = Agent(ScriptedModel(["done"]), tools=[pay, CLICK], store=store)
    assert asyncio.run(agent.resume("r", tool_results={"c0.0": "ok"})).text == "done"


def test_a_store_that_no_command_can_open_is_answered_from_python() -> None:
    """Its path is empty: it was made by the target's own code."""
    lines = list(pending_lines(parked("pay"), Place(MemoryStore(), "", "pay")))

    assert lines[2:] == [
        "Go on from Python:",
        '  await agent.resume("r", approvals={"c0.0": True})',
    ]


def test_a_run_kept_in_memory_cannot_be_promised_to_go_on() -> None:
    """Its journal ends with the process."""
    assert "--store runs.db" in list(pending_lines(parked("pay"), None))[-1]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Approval(True), "approved"),
        (Approval(True, arguments='{"amount": 4}'), 'approved, edited: {"amount": 4}'),
        (Approval(False, "no"), "denied"),
    ],
)
def test_an_answer_is_told_as_what_it_was(answer: Approval, told: str) -> None:
    """Who comes second wants to know what the first has said."""
    posted = dict(Answers({"c0.0": answer}, {"c0.1": "ok"}).posts(9.0))

    assert answered(posted) == {"c0.0": told, "c0.1": "answered"}
