"""Performing effects: whatever a user's function does, an event comes out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from graphloop import Approval, Tool, ToolContext
from graphloop.drivers.perform import Performer, cancelled_inside, failed
from graphloop.drivers.ports import Approver, Callback, Ports
from graphloop.effects import AskHuman, CallModel, CallTool, CheckCalls, Effect, Invoke
from graphloop.events import (
    CallbackReturned,
    CallsChecked,
    Changes,
    Decided,
    EffectFailed,
    Event,
    ToolReturned,
)
from graphloop.run import Run, Verdict
from graphloop.stores.memory import MemoryStore
from graphloop.tools import Toolbox
from graphloop.values import ModelRequest
from tests.strategies import call, fresh, replied, reply, wrong

SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}}
SEEN: list[str] = []


async def echo(arguments: dict[str, object], context: ToolContext) -> str:
    """Return what was asked, and by which key."""
    return f"{context.key} {arguments}"


def picky(arguments: dict[str, object], context: ToolContext) -> bool:
    """Remember who asked; only 1 needs nobody."""
    SEEN.append(context.key)
    return arguments.get("x") != 1


TOOLS = [
    Tool(name="read", parameters=SCHEMA, execute=echo),
    Tool(name="write", parameters=SCHEMA, execute=echo, needs_approval=True),
    Tool(name="picky", parameters=SCHEMA, execute=echo, needs_approval=picky),
]


def performer(
    approve: Approver[None] | None = None, callbacks: Mapping[str, Callback[None]] | None = None
) -> Performer[None]:
    """Return a performer with the tools above."""
    ports = Ports(
        store=MemoryStore(),
        models={},
        toolbox=Toolbox(TOOLS),
        callbacks=callbacks or {},
        approve=approve,
        clock=lambda: 5.0,
    )
    return Performer(ports)


def performed(
    effect: CheckCalls | CallTool | AskHuman | Invoke,
    one: Performer[None] | None = None,
    run: Run[None] | None = None,
) -> Event:
    """Return the event that answers an effect."""
    return asyncio.run((one or performer()).perform(effect, run or fresh()))


@pytest.mark.parametrize(
    ("effect", "alone", "attended"),
    [
        (CallModel(1, "m", ModelRequest(())), True, True),
        (CallTool(1, "c0.0", call()), True, True),
        (CallTool(1, "c0.0", call(), client=True), False, False),
        (AskHuman(1, "c0.0", call()), False, True),
        (Invoke(1, "f"), True, True),
    ],
)
def test_what_nobody_here_can_do_is_left_pending(
    effect: Effect, alone: bool, attended: bool
) -> None:
    """Client tools always, questions where nobody can be asked."""

    async def yes(effect: AskHuman, run: Run[None]) -> Approval:
        return Approval(True)

    assert alone == performer().can_perform(effect)
    assert attended == performer(yes).can_perform(effect)


def test_a_tool_knows_its_key_and_its_arguments() -> None:
    """The key is ours: ids repeat."""
    run = replied(reply(call(), call()), Verdict("run"), Verdict("run"))

    event = performed(CallTool(3, "c0.1", call(arguments='{"x": 1}')), run=run)

    assert ToolReturned(5.0, 3, "c0.1 {'x': 1}") == event


@pytest.mark.parametrize("verdicts", [(), (None,), (Verdict("deny", "no"),)])
def test_no_node_can_run_a_tool_past_its_gate(verdicts: tuple[Verdict | None, ...]) -> None:
    """A node of a user's own may ask for anything; the driver is the last door."""
    event = performed(CallTool(3, "c0.0", call()), run=replied(reply(call()), *verdicts))

    assert isinstance(event, EffectFailed)
    assert "no gate has let call c0.0" in event.failure.message


def test_a_tool_that_is_not_there_fails_with_a_remedy() -> None:
    """A resumed run needs the tools it was started with."""
    one = performer()

    event = performed(CallTool(3, "c0.1", call("gone")), one)

    assert isinstance(event, EffectFailed)
    assert "resume with the tools" in event.failure.message
    assert one.exception is not None


def test_each_call_is_checked_in_its_place() -> None:
    """One check a call, whatever is wrong with the others."""
    calls = (call("read"), call("gone"), call("read", arguments="{"), call("write"), call("picky"))

    event = performed(CheckCalls(1, 0, calls), run=replied(reply(*calls)))

    assert isinstance(event, CallsChecked)
    assert [False, False, False, True, True] == [one.needs_approval for one in event.checks]
    assert [False, True, True, False, False] == [bool(one.problem) for one in event.checks]


def test_a_predicate_is_told_the_place_of_its_call_even_among_equal_calls() -> None:
    """The very same object twice is still two calls; refused ones keep their place."""
    SEEN.clear()
    twin = call("picky", arguments='{"x": 1}')
    run = replied(reply(call("nowhere"), twin, twin), Verdict("unknown", "?"), None, None)

    event = performed(CheckCalls(1, 0, (twin, twin)), run=run)

    assert isinstance(event, CallsChecked)
    assert ["c0.1", "c0.2"] == SEEN
    assert not any(one.needs_approval for one in event.checks)


@pytest.mark.parametrize(
    ("approval", "approved", "reason"),
    [
        (Approval(True), True, ""),
        (Approval(False, "no"), False, "no"),
        (Approval(True, "fixed", '{"x": 2}'), True, "fixed"),
        (Approval(True, "", '{"x": "two"}'), False, "edited arguments: Invalid"),
        (Approval(True, "", "{"), False, "edited arguments: Invalid"),
    ],
)
def test_a_decision_is_taken_as_it_is_unless_it_could_not_run(
    approval: Approval, approved: bool, reason: str
) -> None:
    """Arguments that a human edited are checked like the model's."""

    async def approve(effect: AskHuman, run: Run[None]) -> Approval:
        return approval

    event = performed(AskHuman(2, "c0.0", call("write")), performer(approve))

    assert isinstance(event, Decided)
    assert approved == event.approved
    assert event.reason.startswith(reason)


def test_an_approver_that_raises_has_failed() -> None:
    """The traceback is kept for people."""

    async def approve(effect: AskHuman, run: Run[None]) -> Approval:
        raise ValueError("asleep")

    event = performed(AskHuman(2, "c0.0", call("write")), performer(approve))

    assert isinstance(event, EffectFailed)
    assert ("ValueError", "asleep") == (event.failure.error, event.failure.message)
    assert "asleep" in event.failure.traceback


async def changes(run: Run[None]) -> Changes:
    """Return an answer."""
    return Changes(model="other")


async def nothing(run: Run[None]) -> Changes:
    """Return no answer."""
    answer: Changes = wrong(None)
    return answer


def test_a_callback_s_answer_is_a_fact() -> None:
    """And a missing or wrong one is a failure that says what was expected."""
    callbacks = {"changes": changes, "nothing": nothing}
    one = performer(callbacks=callbacks)

    assert CallbackReturned(5.0, 1, Changes(model="other")) == performed(Invoke(1, "changes"), one)
    for name, message in (("nothing", "found NoneType"), ("gone", "it has ['changes', 'nothing']")):
        event = performed(Invoke(1, name), one)
        assert isinstance(event, EffectFailed)
        assert message in event.failure.message
    event = performed(Invoke(1, "gone"))
    assert isinstance(event, EffectFailed)
    assert "no callbacks" in event.failure.message


def test_a_cancellation_of_this_task_passes_through() -> None:
    """Only a cancellation that nobody asked for is a failure."""

    async def scenario() -> None:
        task = asyncio.current_task()
        assert task is not None
        assert "from inside" in str(cancelled_inside(asyncio.CancelledError()))
        task.cancel()
        try:
            with pytest.raises(asyncio.CancelledError):
                await asyncio.sleep(0)
            with pytest.raises(asyncio.CancelledError):
                cancelled_inside(asyncio.CancelledError())
        finally:
            task.uncancel()

    asyncio.run(scenario())


def test_a_failure_names_the_error_and_keeps_its_trace() -> None:
    """For people; the model never sees the trace."""
    event = failed(1.0, Invoke(7, "f"), KeyError("x"))

    assert (7, "KeyError", "'x'") == (event.effect, event.failure.error, event.failure.message)
    assert "KeyError: 'x'" in event.failure.traceback
