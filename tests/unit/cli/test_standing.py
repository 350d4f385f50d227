"""How a journal ends, and what that looks like."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from graphloop import Agent, ask
from graphloop.cli.standing import seems
from graphloop.events import (
    Begun,
    CallbackReturned,
    CallCheck,
    CallsChecked,
    Cancelled,
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
from graphloop.values import FinishReason
from tests.strategies import call, reply

STARTED = Started(1.0, "r", "agent", (), Setup())
ANSWERED = ModelReplied(2.0, 1, reply("It is noon."))
CALLED = ModelReplied(2.0, 1, reply(call()))
CHECKED = CallsChecked(3.0, 2, (CallCheck(),))
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
        ([CALLED, CHECKED], "suspended"),
        ([BROKE], "failed"),
        ([ANSWERED, BROKE], "failed"),
        ([CALLED, BROKE], "failed"),
        ([CALLED, Cancelled(3.0)], "cancelled"),
        ([CALLED, Cancelled(3.0, timeout=True)], "failed"),
        ([], None),
        ([Resumed(2.0)], None),
        ([CALLED], None),
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


def pay() -> str:
    """Pay."""
    return "paid"


@pytest.mark.parametrize(
    ("replies", "seen"),
    [
        (["It is noon."], "done"),
        ([reply(call("pay"))], "suspended"),
        ([{"error": "broke"}], "failed"),
    ],
)
def test_what_a_run_seems_to_be_is_what_it_is(
    replies: list[Entry], seen: str, tmp_path: Path
) -> None:
    """A store that keeps a status has the same word for it."""

    async def stored() -> tuple[str | None, str]:
        store = SqliteStore(tmp_path / "runs.db")
        agent = Agent(ScriptedModel(replies), tools=[pay], gate=ask("pay"), store=store)
        await agent.stream("go", run_id="r").consume()
        (record,) = await store.overview()
        events = await store.load("r")
        await store.aclose()
        return seems(events), record.status

    assert asyncio.run(stored()) == (seen, seen)
