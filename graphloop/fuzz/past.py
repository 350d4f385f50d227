"""Past: whether what stood in a conversation, or in what a run has added, was left as it was.

History only grows, from decision to decision. Only these may make it another: a node that leaves by
`Compacted`, as a Compact does, which shortens what is sent; a node that takes up calls that were
handed in open; the failed attempt of a Retry or Fallback, which takes back what it has told; the
caller of an iterated run. A Compact without a function of the user's own leaves out, and says so:
all that it leaves is as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from ..compaction import ORIGIN, PRUNED_NOTE
from ..events import CallbackReturned, Changes, Steered
from ..history import History
from ..node_protocol import unwrapped
from ..nodes.compact import Compact
from ..nodes.fallback import Fallback
from ..nodes.retrying import Retrying
from ..outcomes import Compacted
from ..repair import open_calls
from ..values import (
    AssistantMessage,
    Message,
    ReasoningPart,
    SystemMessage,
    ToolResult,
    UserMessage,
    evolve,
)
from .moves import Move, moves, new_in
from .story import Story
from .subject import Subject
from .violation import Violation

__all__ = ["rewritten"]

S = TypeVar("S")


def rewritten(subject: Subject[S], story: Story[S]) -> Iterator[Violation]:
    """Yield each message of the past that is gone, or is another, though it had to stay."""
    for move in moves(subject, story):
        run, told = move.run, f"changed by node {move.node.name!r}"
        # What a failed attempt has told is its own to take back, from both.
        tries = any(isinstance(one, Retrying | Fallback) for one in unwrapped([move.node]))
        kept = move.entered if tries else move.before
        changed = list(_changed("what the run has added", kept.added, run.added))
        if new_in(run.messages, kept.messages) is None:
            compacts = any(
                isinstance(one, Compact) and not one.callback for one in unwrapped([move.node])
            )
            if not _may_rewrite(move):
                changed += _changed("the conversation", kept.messages, run.messages)
            elif compacts:
                changed += _untrue(kept.messages, run.messages)
        yield from (Violation("past", f"{what}, {told}", move.number) for what in changed)


def _changed(what: str, before: History[Message], now: History[Message]) -> Iterator[str]:
    if new_in(now, before) is not None:
        return
    pairs = enumerate(zip(before, now, strict=False), 1)
    place = next((at for at, (old, new) in pairs if old != new), len(now) + 1)
    how = "is gone" if place > len(now) else "is another one now"
    yield f"message {place} of {what} {how}"


def _may_rewrite(move: Move[S]) -> bool:
    """Whether the conversation may be another one after a move."""
    match move.event:
        case Steered(messages=messages) if messages is not None:
            return True
        case CallbackReturned(answer=Changes(messages=messages)) if messages is not None:
            return True
        case _:
            # What is shortened may be shortened further: by a summary, which is waited for.
            shortens = move.outcome is None and Compacted in move.node.outcomes
            # What was handed in with open calls is taken up, and mended, by the next turn.
            mends = bool(open_calls(move.before.messages))
            return shortens or isinstance(move.outcome, Compacted) or mends


def _untrue(before: Sequence[Message], now: Sequence[Message]) -> Iterator[str]:
    """Yield what stands in a conversation that was made shorter, and not in the one before."""
    remaining = iter(before)
    for place, one in enumerate(now, 1):
        summarizes = isinstance(one, UserMessage) and one.origin == ORIGIN
        if not summarizes and not any(_remains(one, old) for old in remaining):
            yield f"message {place} of the conversation is none that was there"
            return
    kept = [*[one for one in before if isinstance(one, SystemMessage)], *before[-1:]]
    if any(one not in now for one in kept):
        yield "a message of the conversation that has to stay is gone"


def _remains(now: Message, before: Message) -> bool:
    """Whether a message is what a Compact leaves of one before."""
    match now, before:
        case ToolResult(), ToolResult() if PRUNED_NOTE.fullmatch(now.text):
            return now == evolve(before, content=now.content)
        case AssistantMessage(), AssistantMessage():
            parts = [one for one in before.parts if not isinstance(one, ReasoningPart)]
            return now in {before, evolve(before, parts=tuple(parts))}
        case _:
            return now == before
