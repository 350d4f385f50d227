"""Pairing: whether a conversation may go over a wire: each call has its one result, right after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from ..effects import CallModel
from ..events import ModelReplied, Steered
from ..history import History
from ..values import AssistantMessage, FinishReason, Message, ToolResult
from .story import Story
from .subject import Subject
from .violation import Violation

__all__ = ["lost_calls", "unpaired", "unpaired_conversations"]

S = TypeVar("S")

NAMES_MAX: Final = 4
ASKED: Final[frozenset[FinishReason]] = frozenset(
    {FinishReason.TOOL_CALLS, FinishReason.STOP, FinishReason.STOP_SEQUENCE}
)
"""Finish reasons of replies whose calls count, whatever a table does with the others."""


def unpaired(history: Sequence[Message]) -> Iterator[str]:
    """Yield what is wrong with the calls and results of a conversation."""
    at, size = 0, len(history)
    while at < size:
        message = history[at]
        at += 1
        if isinstance(message, ToolResult):
            yield f"message {at}: the result of {message.name!r} answers no call before it"
        if not isinstance(message, AssistantMessage):
            continue
        for place, call in enumerate(message.calls):
            result = history[at] if at < size else None
            if not isinstance(result, ToolResult):
                yield f"message {at + 1}: call {place + 1} of {call.name!r} has no result"
                break
            at += 1
            if (result.call_id, result.name) != (call.id, call.name):
                yield f"message {at}: a result of {result.name!r} answers a call of {call.name!r}"


def unpaired_conversations(story: Story[S]) -> Iterator[Violation]:
    """Yield what is wrong with what models were sent, and with what the run has added."""
    seen: History[Message] = History()
    for number, chapter in enumerate(story.chapters, 1):
        histories: list[Sequence[Message]] = [
            one.request.messages for one in chapter.effects if isinstance(one, CallModel)
        ]
        if chapter.run.messages is not seen:
            histories.append(chapter.run.messages)
        for history in histories:
            # What was looked at before, and has only grown, is not looked at again.
            grown = isinstance(history, History) and history.starts_with(seen)
            new = history[len(seen) :] if grown else history
            for what in unpaired(new):
                yield Violation("history", what, number)
                return
        seen = chapter.run.messages
    run = story.run
    keys = Counter(
        one.key for one in (run.record.added if run else ()) if isinstance(one, ToolResult)
    )
    for key, count in keys.items():
        if key and count > 1:
            yield Violation("history", f"call {key} has {count} results")


def lost_calls(subject: Subject[S], story: Story[S]) -> Iterator[Violation]:
    """Yield each reply with calls that is not in the history when the next one is asked for."""
    owed: AssistantMessage | None = None
    since = known = 0
    for number, chapter in enumerate(story.chapters, 1):
        match chapter.event:
            case ModelReplied(reply=reply) if subject.graph.nodes[chapter.node].kind == "model":
                if reply.message.calls and reply.finish_reason in ASKED:
                    owed, since = reply.message, known
            case Steered(messages=messages) if messages is not None:
                owed = None  # Its caller has another conversation in its place.
            case _:
                pass
        added, known = chapter.run.record.added, len(chapter.run.record.added)
        asks = any(isinstance(one, CallModel) for one in chapter.effects)
        of_a_model = asks and subject.graph.nodes[chapter.run.node].kind == "model"
        if owed is None or not (of_a_model or chapter.run.ended):
            continue
        if owed not in added[since:]:
            more = len(owed.calls) - NAMES_MAX
            names = ", ".join(repr(one.name) for one in owed.calls[:NAMES_MAX])
            lost = f"calls of {names}{f' and {more} more' if more > 0 else ''} are not answered"
            yield Violation("answers", f"{lost} in the history", number)
            return
        owed = None
