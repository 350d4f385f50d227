"""How a journal ends, and what that looks like."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from graphloop import Agent, tool
from graphloop.cli.standing import seems
from graphloop.events import (
    Begun,
    CallbackReturned,
    CallCheck,
    CallsChecked,
    Cancelled,
    Decided,
    EffectFailed,
    Event,
    Failure,
    Judged,
    ModelReplied,
    Resumed,
    Setup,
    Started,
    ToolReturned,
)
from graphloop.providers.script import Entry
from graphloop.stores.sqlite import SqliteStore
from graphloop.testing import ScriptedModel
from graphloop.tools import Tool
from graphloop.values import FinishReason
from tests.strategies import call, reply, spec

STARTED = Started(1.0, "r", "agent", (), Setup())
ANSWERED = ModelReplied(2.0, 1, reply("It is noon."))
CALLED = ModelReplied(2.0, 1, reply(call()))
CHECKED = CallsChecked(3.0, 2, (CallCheck(),))
ASKED = CallsChecked(3.0, 2, (CallCheck(needs_approval=True),))
BROKE = EffectFailed(4.0, 3, Failure("ProviderError", "no"))


def replied(text: str, reason: FinishReason) -> ModelReplied:
    """Return a reply that ended for this reason."""
    return ModelReplied(2.0, 1, reply(text, finish=reason))


@pytest.mark.parametrize(
    ("ending", "seen"),
    [
        ([ANSWERED], "done"),
        ([replied("No.", FinishReason.REFUSAL)], "done"),
        ([ANSWERED, CallbackReturned(3.0, 2, Judged(accepted=True))], "done"),
        ([CALLED, ASKED], "suspended"),
        ([BROKE], "failed"),
        ([ANSWERED, BROKE], "failed"),
        ([CALLED, BROKE], "failed"),
        ([CALLED, Cancelled(3.0)], "cancelled"),
        ([CALLED, Cancelled(3.0, timeout=True)], "failed"),
        ([], None),
        ([Resumed(2.0)], None),
        ([CALLED], None),
        ([CALLED, CHECKED], None),
        ([CALLED, Decided(4.0, 3, True, "", "{}"), ASKED], None),
        ([CALLED, CHECKED, Begun(4.0, (3,))], None),
        ([CALLED, CHECKED, BROKE], None),
        ([CALLED, CHECKED, ToolReturned(4.0, 3, "x")], None),
        ([CALLED, Cancelled(3.0, after_step=True)], None),
        ([ANSWERED, CallbackReturned(3.0, 2, Judged(accepted=False))], None),
        ([replied("Wait.", FinishReason.PAUSE)], None),
        ([replied("Half", FinishReason.LENGTH)], None),
        ([replied("", FinishReason.STOP)], None),
    ],
)
def test_only_an_end_that_shows_it_says_how_a_run_stands(
    ending: list[Event], seen: str | None
) -> None:
    """A run in the middle of its work may have a driver, or may have lost it."""
    assert seems([STARTED, *ending]) == seen


@pytest.mark.parametrize(
    ("checks", "seen"),
    [
        ([("pay", CallCheck(needs_approval=True)), ("pay", CallCheck("no such tool"))], True),
        ([("pay", CallCheck(needs_approval=True)), ("pay", CallCheck())], False),
        ([("pay", CallCheck("no such tool"))], False),
        ([("pay", CallCheck(held=((),)))], False),
        ([("pay", CallCheck(held=(("dear",),)))], False),
        ([("client", CallCheck()), ("pay", CallCheck(needs_approval=True))], True),
        ([("client", CallCheck()), ("pay", CallCheck())], False),
        ([("client", CallCheck(held=((),)))], False),
        ([("agent", CallCheck())], False),
    ],
)
def test_calls_wait_where_none_of_them_may_be_running(
    checks: list[tuple[str, CallCheck]], *, seen: bool
) -> None:
    """Whoever is sent to approve what nobody was asked waits for ever."""
    tools = (spec("pay"), spec("client", "client"), spec("agent", "agent"))
    events: list[Event] = [
        Started(1.0, "r", "agent", (), Setup(tools=tools)),
        ModelReplied(2.0, 1, reply(*(call(name) for name, _ in checks))),
        CallsChecked(3.0, 2, tuple(check for _, check in checks)),
    ]

    assert ("suspended" if seen else None) == seems(events)


def test_who_runs_a_child_that_waits_waits_with_it() -> None:
    """Its own journal ends where the child was begun."""
    events: list[Event] = [
        Started(1.0, "r", "agent", (), Setup(tools=(spec("agent", "agent"),))),
        ModelReplied(2.0, 1, reply(call("agent"))),
        CallsChecked(3.0, 2, (CallCheck(),)),
    ]

    assert "suspended" == seems(events, child_waits=True)
    assert seems(events) is None


def test_which_calls_a_further_gate_has_checked_is_not_told() -> None:
    """One of two calls may be refused by then; a tool that runs must not seem to wait."""
    events: list[Event] = [
        Started(1.0, "r", "agent", (), Setup(tools=(spec("client", "client"), spec("pay")))),
        ModelReplied(2.0, 1, reply(call("client"), call("pay"))),
        CallsChecked(3.0, 2, (CallCheck("no"), CallCheck())),
        CallsChecked(4.0, 3, (CallCheck(),)),
    ]

    assert seems(events) is None


@tool(needs_approval=True)
def pay() -> str:
    """Pay."""
    return "paid"


@pytest.mark.parametrize(
    ("replies", "seen"),
    [
        (["It is noon."], "done"),
        ([reply(call("pay"))], "suspended"),
        ([reply(call("client"))], "suspended"),
        ([reply(call("client"), call("pay"))], "suspended"),
        ([{"error": "broke"}], "failed"),
    ],
)
def test_what_a_run_seems_to_be_is_what_it_is(
    replies: list[Entry], seen: str, tmp_path: Path
) -> None:
    """A store that keeps a status has the same word for it."""

    async def stored() -> tuple[str | None, str]:
        store = SqliteStore(tmp_path / "runs.db")
        client = Tool(name="client", parameters={"type": "object"})
        agent = Agent(ScriptedModel(replies), tools=[pay, client], store=store)
        await agent.stream("go", run_id="r").consume()
        (record,) = await store.overview()
        events = await store.load("r")
        await store.aclose()
        return seems(events), record.status

    assert asyncio.run(stored()) == (seen, seen)
