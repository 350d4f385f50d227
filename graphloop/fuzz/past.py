"""Past: whether what stood in a conversation stays as it was, and is what a model is sent.

History only grows, from decision to decision. Only these may make it another: a node that leaves by
`Compacted`, as a Compact does, which shortens what is sent; a node that takes up calls that were
handed in open; the failed attempt of a Retry or Fallback, which takes back what it has told; the
caller of an iterated run. What a Compact leaves by itself is what was there.

So each request begins with the one before it, and prompt caches hit. A caller, or a `prepare_step`
function, may change the tools. A node of one's own may send less than the conversation, or more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from ..compaction import ORIGIN, PRUNED_NOTE
from ..contract import contract_of
from ..effects import CallModel
from ..events import CallbackReturned, Changes, Steered
from ..graph import Graph
from ..history import History
from ..node_protocol import unwrapped
from ..nodes.compact import Compact
from ..nodes.fallback import Fallback
from ..nodes.model_call import ModelCall
from ..nodes.retrying import Retrying
from ..outcomes import Compacted
from ..repair import open_calls
from ..values import AssistantMessage, Message, ModelRequest, ReasoningPart, ToolResult, evolve
from .moves import Move, moves, new_in
from .story import Story
from .subject import Subject
from .violation import Violation

__all__ = ["rewritten", "untrue_requests"]

S = TypeVar("S")


def rewritten(subject: Subject[S], story: Story[S]) -> Iterator[Violation]:
    """Yield each message of the past that is gone, or is another, though it had to stay."""
    for move in moves(subject, story):
        run, told = move.run, f"changed by node {move.node.name!r}"
        inner = [*unwrapped([move.node])]
        # What a failed attempt has told is its own to take back, from both.
        tries = any(isinstance(one, Retrying | Fallback) for one in inner)
        kept = move.entered if tries else move.before
        changed = list(_changed("what the run has added", kept.record.added, run.record.added))
        if new_in(run.messages, kept.messages) is None:
            if not _may_rewrite(move):
                changed += _changed("the conversation", kept.messages, run.messages)
            elif any(isinstance(one, Compact) and not one.callback for one in inner):
                changed += _untrue(kept.messages, run.messages)
        yield from (Violation("past", f"{what}, {told}", move.number) for what in changed)


def untrue_requests(subject: Subject[S], story: Story[S]) -> Iterator[Violation]:
    """Yield what a model is sent that the conversation does not hold, or that caches cannot."""
    before: ModelRequest | None = None
    steady = _is_steady(subject.graph)
    for move in moves(subject, story):
        run, by = move.run, f"by node {move.node.name!r}"
        if new_in(run.messages, move.before.messages) is None:
            before = None
        for request in [one.request for one in move.effects if isinstance(one, CallModel)]:
            for key in _other_results(request.messages, run.messages):
                found = f"the model is sent another result of call {key} than the conversation has"
                yield Violation("answers", f"{found}, {by}", move.number)
            if not any(isinstance(one, ModelCall) for one in unwrapped([move.node])):
                continue
            told = request.tools if steady and not run.setup.attended else ()
            if len(request.messages) != len(run.messages):
                yield Violation("prefix", f"not the conversation is sent, {by}", move.number)
            elif before is not None and not _grows(request.messages, before.messages):
                yield Violation("prefix", f"a request begins otherwise, {by}", move.number)
            elif before is not None and told and told != before.tools:
                yield Violation("prefix", f"a request has other tools, {by}", move.number)
            before = request


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
    """Yield the first message of a shorter conversation that was none before, nor is a summary."""
    remaining = iter(before)
    for place, one in enumerate(now, 1):
        summarizes = getattr(one, "origin", "") == ORIGIN
        if not summarizes and not any(_remains(one, old) for old in remaining):
            yield f"message {place} of the conversation is none that was there"
            return


def _remains(now: Message, before: Message) -> bool:
    """Whether a message is one of before, or what a Compact leaves of it."""
    if isinstance(now, ToolResult) and PRUNED_NOTE.fullmatch(now.text):
        return isinstance(before, ToolResult) and now == evolve(before, content=now.content)
    if not isinstance(before, AssistantMessage):
        return now == before
    parts = [one for one in before.parts if not isinstance(one, ReasoningPart)]
    return now in {before, evolve(before, parts=tuple(parts))}


def _is_steady(graph: Graph[S]) -> bool:
    """Whether all turns offer the same tools: one node opens them, and asks no function."""
    opening = [one for one in map(contract_of, graph.nodes.values()) if one and one.settles]
    return len(opening) == 1 and not opening[0].functions


def _grows(sent: Sequence[Message], history: Sequence[Message]) -> bool:
    return tuple(sent[: len(history)]) == tuple(history)


def _other_results(sent: Sequence[Message], history: Sequence[Message]) -> Iterator[str]:
    held = {one.key: one for one in history if isinstance(one, ToolResult) and one.key}
    for one in sent:
        if isinstance(one, ToolResult) and held.get(one.key, one) != one:
            yield one.key
