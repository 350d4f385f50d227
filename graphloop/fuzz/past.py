"""Past: whether what stood in a conversation, or in what a run has added, was left as it was.

History only grows. Only these may make it another: a node that leaves by `Compacted`, as a Compact
does, which shortens what is sent; a node that takes up calls that were handed in open; the failed
attempt of a Retry or Fallback, which takes back what it has told; the caller of an iterated run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from ..events import CallbackReturned, Changes, Started, Steered
from ..history import History
from ..node_protocol import Node, unwrapped
from ..nodes.fallback import Fallback
from ..nodes.retrying import Retrying
from ..outcomes import Compacted, Outcome
from ..repair import open_calls
from ..values import Message
from .story import Chapter, Story
from .subject import Subject
from .violation import Violation

__all__ = ["rewritten"]

S = TypeVar("S")


def rewritten(subject: Subject[S], story: Story[S]) -> Iterator[Violation]:
    """Yield the first message of the past that is gone, or is another, though it had to stay."""
    messages: History[Message] = History()
    added: History[Message] = History()
    for number, chapter in enumerate(story.chapters, 1):
        if isinstance(chapter.event, Started):
            messages = History(chapter.event.messages)
        run, nodes = chapter.run, _passed(subject, chapter)
        # What a failed attempt has told is in both.
        if not any(isinstance(one, Retrying | Fallback) for one in unwrapped(nodes)):
            told = f"changed by one of the nodes {', '.join(repr(one.name) for one in nodes)}"
            compacts = any(Compacted in one.outcomes for one in nodes)
            if not compacts and not _may_rewrite(chapter, messages):
                yield from _changed("the conversation", messages, run.messages, told, number)
            yield from _changed("what the run has added", added, run.added, told, number)
        messages, added = run.messages, run.added


def _changed(
    what: str, before: History[Message], now: History[Message], told: str, number: int
) -> Iterator[Violation]:
    if now is before or now.starts_with(before):
        return
    pairs = enumerate(zip(before, now, strict=False), 1)
    place = next((at for at, (old, new) in pairs if old != new), len(now) + 1)
    if place <= len(before):
        how = "is gone" if place > len(now) else "is another one now"
        yield Violation("past", f"message {place} of {what} {how}, {told}", number)


def _may_rewrite(chapter: Chapter[S], before: History[Message]) -> bool:
    match chapter.event:
        case Steered(messages=messages) if messages is not None:
            return True
        case CallbackReturned(answer=Changes(messages=messages)) if messages is not None:
            return True
        case _:
            # What was handed in with open calls is taken up, and mended, by the next turn.
            return bool(open_calls(before))


def _passed(subject: Subject[S], chapter: Chapter[S]) -> list[Node[S, Outcome]]:
    """Return the nodes that had the run in their hands."""
    names = dict.fromkeys([chapter.node, *[one.node for one in chapter.passages], chapter.run.node])
    return [subject.graph.nodes[one] for one in names if one in subject.graph.nodes]
