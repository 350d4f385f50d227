"""Conversations: whether calls and results pair, the past stays, and requests are what stands.

Only these may make the past another: a node that leaves by `Compacted`, which shortens what is
sent; a node that adopts calls handed in open; the failed attempt of a `Retrying` or `Fallback`,
which takes back what it has added; the caller of an iterated run. A `Compact` without a function
of the user's leaves messages that were there.

So each request begins with the request before it, and prompt caches hit. A caller or a
`prepare_step` function may change the tools; a node of the user's own may send anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeVar

from ..contract import contract_of
from ..conversation import ORIGIN, PRUNED_NOTE, open_calls
from ..effects import CallModel
from ..events import CallbackReturned, Changes, Steered
from ..graph import NodeGraph
from ..node_protocol import unwrapped
from ..nodes import Compact, Fallback, ModelCall, Retrying
from ..outcomes import Compacted
from ..run import History
from ..values import AssistantMessage, Message, ModelRequest, ReasoningPart, ToolResult, evolve
from .subject import Subject
from .trace import Move, Trace, moves, new_in
from .violation import Violation

__all__ = ["rewritten", "unpaired", "unpaired_conversations", "untrue_requests"]

S = TypeVar("S")


def unpaired_conversations(trace: Trace[S]) -> Iterator[Violation]:
    """Yield the faults of the conversations that models were sent, and of the run's record."""
    seen: History[Message] = History()
    for number, one in enumerate(trace.steps, 1):
        histories: list[Sequence[Message]] = [
            effect.request.messages for effect in one.effects if isinstance(effect, CallModel)
        ]
        if one.run.messages is not seen:
            histories.append(one.run.messages)
        for history in histories:
            # A history that was judged before, and has only grown, is not judged again.
            grown = isinstance(history, History) and history.starts_with(seen)
            for what in unpaired(history[len(seen) :] if grown else history):
                yield Violation("history", what, number)
                return
        seen = one.run.messages
    added = trace.run.record.added if trace.run else ()
    keys = Counter(one.key for one in added if isinstance(one, ToolResult))
    for key, count in keys.items():
        if key and count > 1:
            yield Violation("history", f"call {key} has {count} results")


def unpaired(history: Sequence[Message]) -> Iterator[str]:
    """Yield the calls without results, and the results without calls, of a conversation."""
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


def rewritten(subject: Subject[S], trace: Trace[S]) -> Iterator[Violation]:
    """Yield each message of the past that is gone or changed, though it had to stay."""
    for move in moves(subject, trace):
        run, inner = move.run, [*unwrapped([move.node])]
        # A failed attempt may take back what it has added, from both records.
        tries = any(isinstance(one, Retrying | Fallback) for one in inner)
        kept = move.entered if tries else move.before
        changed = list(_changed("what the run has added", kept.record.added, run.record.added))
        if new_in(run.messages, kept.messages) is None:
            if not _may_rewrite(move):
                changed += _changed("the conversation", kept.messages, run.messages)
            elif any(isinstance(one, Compact) and not one.callback for one in inner):
                changed += _untrue(kept.messages, run.messages)
        for what in changed:
            yield Violation("past", f"{what}, changed by node {move.node.name!r}", move.number)


def _changed(what: str, before: History[Message], now: History[Message]) -> Iterator[str]:
    """Yield the first message of a record that is not the same any more."""
    if new_in(now, before) is None:
        pairs = enumerate(zip(before, now, strict=False), 1)
        place = next((at for at, (old, new) in pairs if old != new), len(now) + 1)
        yield f"message {place} of {what} is {'gone' if place > len(now) else 'another one now'}"


def _may_rewrite(move: Move[S]) -> bool:
    """Whether the conversation may be another one after a move."""
    match move.event:
        case Steered(messages=messages) if messages is not None:
            return True
        case CallbackReturned(answer=Changes(messages=messages)) if messages is not None:
            return True
        case _:
            # A shorter past may become shorter still: by a summary, which the node waits for.
            shortens = move.outcome is None and Compacted in move.node.outcomes
            # The next turn adopts calls that were handed in open, and repairs the conversation.
            mends = bool(open_calls(move.before.messages))
            return shortens or isinstance(move.outcome, Compacted) or mends


def _untrue(before: Sequence[Message], now: Sequence[Message]) -> Iterator[str]:
    """Yield the first message of a shorter conversation that is neither old nor a summary."""
    remaining = iter(before)
    for place, one in enumerate(now, 1):
        summarizes = getattr(one, "origin", "") == ORIGIN
        if not summarizes and not any(_remains(one, old) for old in remaining):
            yield f"message {place} of the conversation is none that was there"
            return


def _remains(now: Message, before: Message) -> bool:
    """Whether a message is an old one, as far as a Compact leaves it."""
    if isinstance(now, ToolResult) and PRUNED_NOTE.fullmatch(now.text):
        return isinstance(before, ToolResult) and now == evolve(before, content=now.content)
    if not isinstance(before, AssistantMessage):
        return now == before
    parts = [one for one in before.parts if not isinstance(one, ReasoningPart)]
    return now in {before, evolve(before, parts=tuple(parts))}


def untrue_requests(subject: Subject[S], trace: Trace[S]) -> Iterator[Violation]:
    """Yield each request that differs from the conversation, or that no prompt cache can hit."""
    before: ModelRequest | None = None
    steady = _is_steady(subject.graph)
    for move in moves(subject, trace):
        run, by = move.run, f"by node {move.node.name!r}"
        if new_in(run.messages, move.before.messages) is None:
            before = None
        for request in [one.request for one in move.effects if isinstance(one, CallModel)]:
            sent, stands = request.messages, run.messages
            for key in () if sent is stands else _other_results(sent, stands):
                found = f"the model is sent another result of call {key} than the conversation has"
                yield Violation("answers", f"{found}, {by}", move.number)
            if not any(isinstance(one, ModelCall) for one in unwrapped([move.node])):
                continue
            tools = request.tools if steady and not run.setup.attended else ()
            if len(sent) != len(stands):
                yield Violation("prefix", f"not the conversation is sent, {by}", move.number)
            elif before is not None and not _grows(sent, before.messages):
                yield Violation("prefix", f"a request begins otherwise, {by}", move.number)
            elif before is not None and tools and tools != before.tools:
                yield Violation("prefix", f"a request has other tools, {by}", move.number)
            before = request


def _is_steady(graph: NodeGraph[S]) -> bool:
    """Whether the offered tools cannot change: one node opens every turn, and calls no function."""
    known = map(contract_of, graph.nodes.values())
    opening = [one for one in known if one is not None and one.takes_up_calls]
    return len(opening) == 1 and not opening[0].functions


def _grows(sent: Sequence[Message], before: Sequence[Message]) -> bool:
    if isinstance(sent, History) and isinstance(before, History):
        return sent.starts_with(before)
    return tuple(sent[: len(before)]) == tuple(before)


def _other_results(sent: Sequence[Message], history: Sequence[Message]) -> Iterator[str]:
    held = {one.key: one for one in history if isinstance(one, ToolResult) and one.key}
    for one in sent:
        if isinstance(one, ToolResult) and held.get(one.key, one) != one:
            yield one.key
