"""Steering: functions that apply a caller's messages and changes to a run.

A model's reply is recorded before control returns to the caller. Each call of the reply gets
exactly one result, whatever the caller changes.

No provider accepts a message between a turn's calls and their results. So the notes of a node wait
while a turn is in progress, and are appended after its results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from ..effects import AwaitCaller, Note
from ..errors import IllegalEvent
from ..events import Setup, Steered
from ..node_protocol import Wait
from ..run import History, Run, evolve, with_conversation, with_count, with_messages
from ..turn import Turn
from ..values import (
    AssistantMessage,
    FinishReason,
    Message,
    Reply,
    ToolResult,
    UserMessage,
    call_key,
    call_place,
)
from .repair import open_calls, repaired

__all__ = [
    "BLOCKED_NOTE",
    "add_notes",
    "adopt_open_calls",
    "apply_steering",
    "hand_over",
    "mark_screened",
    "steered",
    "unanswered",
    "unscreened",
    "with_screens",
    "withhold",
]

S = TypeVar("S")


def hand_over(run: Run[S], *, tools_ran: bool = False) -> Wait[S]:
    """Wait for the caller of an iterated run, who may change the turn (`AwaitCaller`)."""
    return Wait(run, (AwaitCaller(run.next_effect, tools_ran),))


SCREENS: Final = "screens"
"""The counter that marks a run whose screens alone read the inbox."""

BLOCKED_NOTE: Final = "(This message was blocked.)"
"""What a model reads in place of a message that a screen blocked."""

CALLERS: Final = frozenset({"", "steering", "follow_up"})
"""The origins of messages that a caller adds to a run; a node's notes have the node's name."""


def apply_steering(run: Run[S], *, screens: bool = False) -> Run[S]:
    """Return the run with its inbox's steering messages at the end of the conversation.

    In a run with a screen, only the screen (`screens`) reads the inbox, so no node can add a
    message that no screen has judged.
    """
    if not run.inbox.steering or (not screens and SCREENS in run.counters.by_node):
        return run
    run = with_messages(run, *run.inbox.steering)
    return evolve(run, inbox=evolve(run.inbox, steering=()))


def with_screens(run: Run[S]) -> Run[S]:
    """Return the run as one whose screens alone read the inbox."""
    return run if SCREENS in run.counters.by_node else with_count(run, SCREENS, 1)


def mark_screened(run: Run[S], node: str) -> Run[S]:
    """Return the run with all messages of the user marked as judged by the screen `node`."""
    return with_count(run, f"screened:{node}", len(run.record.added))


def unscreened(run: Run[S], node: str) -> tuple[UserMessage, ...]:
    """Return the messages of the user that the screen `node` has not judged yet.

    Before its first verdict these are the messages since the last answer.
    """
    seen = run.counters.by_node.get(f"screened:{node}")
    if seen is not None:
        added = run.record.added[seen:]
        return tuple(
            [one for one in added if isinstance(one, UserMessage) and one.origin in CALLERS]
        )
    said: list[UserMessage] = []
    for at in range(len(run.messages) - 1, -1, -1):
        message = run.messages[at]
        if isinstance(message, AssistantMessage):
            break
        if isinstance(message, UserMessage):
            said.insert(0, message)
    return tuple(said)


def withhold(run: Run[S], node: str) -> Run[S]:
    """Return the run with a note in place of the messages that the screen `node` now blocks.

    So no model reads the messages, also where a later run continues the conversation.
    """
    blocked = unscreened(run, node)

    def noted(messages: Sequence[Message]) -> list[Message]:
        return [evolve(one, content=BLOCKED_NOTE) if one in blocked else one for one in messages]

    record = evolve(run.record, added=History(noted(run.record.added)))
    run = with_conversation(evolve(run, record=record), noted(run.messages))
    return mark_screened(run, node)


def steered(run: Run[S], event: Steered) -> Run[S]:
    """Return the run with the caller's changes applied: setup, results, messages and notes."""
    if event.setup is not None:
        run = evolve(run, setup=_allowed_changes(run.setup, event.setup))
    if event.results:
        run = evolve(run, turn=_override_results(run, event.results))
    if event.messages is not None:
        run = _replace_conversation(
            run, event.messages, keep_open=not (event.append or run.turn.notes)
        )
    return evolve(run, turn=evolve(run.turn, notes=(*run.turn.notes, *event.append)))


def adopt_open_calls(run: Run[S], messages: Sequence[Message]) -> Run[S] | None:
    """Return the run with the open calls of `messages` as its turn; None if no call is open.

    The assistant message and its results leave the history, and are appended again once the turn is
    complete. If the calls are the calls of the run's own turn, the turn's results are kept: a call
    with a result never runs again.
    """
    if not open_calls(messages):
        return None
    messages = repaired(messages, keep_open=True).messages
    at = len(messages) - 1
    while not isinstance(message := messages[at], AssistantMessage):
        at -= 1
    present = iter([result for result in messages[at + 1 :] if isinstance(result, ToolResult)])
    unanswered = {place for place, _ in open_calls(messages)}
    calls, turn = message.calls, run.turn
    known = turn.results if turn.calls == calls and turn.results else (None,) * len(calls)
    results = tuple(
        [result if place in unanswered else next(present) for place, result in enumerate(known)]
    )
    reply = run.turn.reply or Reply(message, FinishReason.TOOL_CALLS)
    turn = evolve(
        turn,
        reply=evolve(reply, message=message, finish_reason=FinishReason.TOOL_CALLS),
        calls=calls,
        verdicts=turn.verdicts if turn.calls == calls else (),
        results=results if any(result is not None for result in results) else (),
        given=frozenset(range(len(calls))) - unanswered,
        dropped=False,
    )
    return evolve(with_conversation(run, messages[:at]), turn=turn)


def _allowed_changes(own: Setup, wanted: Setup) -> Setup:
    """Return the run's setup with the caller's model, tools, settings and tool choice only."""
    return evolve(
        own,
        model=wanted.model,
        tools=wanted.tools,
        settings=wanted.settings,
        tool_choice=wanted.tool_choice,
    )


def _override_results(run: Run[S], results: tuple[ToolResult, ...]) -> Turn:
    turn = run.turn
    slots = list(turn.results or (None,) * len(turn.calls))
    for result in results:
        place = call_place(result.key)
        if not 0 <= place < len(slots) or result.key != call_key(turn.number, place):
            raise IllegalEvent(
                f"Steered answers call {result.key!r} of run {run.id!r}, whose turn {turn.number} "
                f"makes {len(slots)} call(s)"
            )
        slots[place] = result
    return evolve(turn, results=tuple(slots))


def _replace_conversation(run: Run[S], messages: tuple[Message, ...], *, keep_open: bool) -> Run[S]:
    """Return the run with another conversation, whose open calls become this turn's calls.

    If other calls of this turn have run, the open calls wait for the next turn, because two calls
    must never share a key. If `keep_open` is false, a message follows the open calls, so they get
    results now.
    """
    turn = run.turn
    taken = adopt_open_calls(run, messages)
    if taken is not None and (not turn.results or taken.turn.calls == turn.calls):
        return taken
    if not keep_open:
        messages = repaired(messages).messages
    return evolve(with_conversation(run, messages), turn=_drop_turn(turn))


def _drop_turn(turn: Turn) -> Turn:
    """Return the turn marked as dropped, without its calls unless all of them have results."""
    if turn.verdicts and turn.results and None not in turn.results:
        return evolve(turn, verdicts=(), dropped=True)
    return evolve(turn, calls=(), verdicts=(), results=(), dropped=True)


def unanswered(run: Run[S]) -> str:
    """Return an error message if the conversation ends in calls without results; else empty."""
    calls = open_calls(run.messages)
    if not calls:
        return ""
    names = ", ".join(repr(call.name) for _, call in calls)
    return (
        f"the conversation ends in calls without results ({names}), and no message may stand "
        "between calls and their results. Lead the run through a Gate, an Execute and an Append, "
        "which answer them, before this node"
    )


def add_notes(run: Run[S], notes: Sequence[Note]) -> Run[S]:
    """Return the run with these notes in its conversation.

    While a turn is in progress, the notes wait for its end. The calling node must have checked
    `unanswered` before.
    """
    if not notes:
        return run
    if run.turn.reply is not None:
        return evolve(run, turn=evolve(run.turn, notes=(*run.turn.notes, *notes)))
    return with_messages(run, *notes)
