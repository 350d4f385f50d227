"""Conversations: calls and results pair, the past stays, and requests are the conversation.

Only four may change the past: a node that leaves by `Compacted`, which shortens what is sent; a
node that adopts open calls of the input; a `Retrying` or `Fallback`, which takes back what a
failed attempt added; and the caller of an iterated run. A `Compact` without a function of the
user's keeps old messages only.

So each request begins with the request before it, and prompt caches hit. A caller or a
`prepare_step` function may change the tools; a node of the user's own may send anything.
"""

from __future__ import annotations

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
from .trace import Move, Trace, new_in
from .violation import Violation

__all__ = ["rewritten", "unpaired", "unpaired_conversations", "untrue_requests"]

S = TypeVar("S")


def unpaired_conversations(trace: Trace[S]) -> Iterator[Violation]:
    """Yield the unpaired calls of the conversations, and of what models were sent."""
    judged: History[Message] = History()
    for number, step in enumerate(trace.steps, 1):
        requests = [effect.request for effect in step.effects if isinstance(effect, CallModel)]
        for history in [*[request.messages for request in requests], step.run.messages]:
            # A history that has only grown is not judged from its beginning again.
            grown = isinstance(history, History) and history.starts_with(judged)
            for text in unpaired(history[len(judged) :] if grown else history):
                yield Violation("history", text, number)
                return
        judged = step.run.messages


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
    within = {name: [*unwrapped([node])] for name, node in subject.graph.nodes.items()}
    for move in trace.moves:
        run, nodes = move.run, within[move.node.name]
        # A failed attempt may take back what it has added, from both records.
        retries = any(isinstance(node, Retrying | Fallback) for node in nodes)
        kept = move.entered if retries else move.before
        changes = list(_changes("what the run has added", kept.record.added, run.record.added))
        if new_in(run.messages, kept.messages) is None:
            if not _may_rewrite(move):
                changes += _changes("the conversation", kept.messages, run.messages)
            elif any(isinstance(node, Compact) and not node.callback for node in nodes):
                changes += _untrue(kept.messages, run.messages)
        for text in changes:
            yield Violation("past", f"{text}, changed by node {move.node.name!r}", move.number)


def _changes(record: str, before: History[Message], now: History[Message]) -> Iterator[str]:
    """Yield the first message of a record that is gone or changed."""
    if new_in(now, before) is None:
        pairs = enumerate(zip(before, now, strict=False), 1)
        place = next((at for at, (old, new) in pairs if old != new), len(now) + 1)
        yield f"message {place} of {record} is {'gone' if place > len(now) else 'another one now'}"


def _may_rewrite(move: Move[S]) -> bool:
    """Whether a move may change the past of the conversation."""
    match move.event:
        case Steered(messages=messages) if messages is not None:
            return True
        case CallbackReturned(answer=Changes(messages=messages)) if messages is not None:
            return True
        case _:
            # A node that waits for a summary may shorten the past before.
            shortens = move.outcome is None and Compacted in move.node.outcomes
            # The next turn adopts calls that were open in the input, and repairs the conversation.
            repairs = bool(open_calls(move.before.messages))
            return shortens or isinstance(move.outcome, Compacted) or repairs


def _untrue(before: Sequence[Message], now: Sequence[Message]) -> Iterator[str]:
    """Yield the first message of a shorter conversation that is neither old nor a summary."""
    remaining = iter(before)
    for place, message in enumerate(now, 1):
        is_summary = getattr(message, "origin", "") == ORIGIN
        if not is_summary and not any(_remains(message, old) for old in remaining):
            yield f"message {place} of the conversation is none that was there"
            return


def _remains(now: Message, before: Message) -> bool:
    """Whether a message is an old one, as far as a Compact leaves it."""
    if isinstance(now, ToolResult) and PRUNED_NOTE.fullmatch(now.text):
        return isinstance(before, ToolResult) and now == evolve(before, content=now.content)
    if not isinstance(before, AssistantMessage):
        return now == before
    parts = [part for part in before.parts if not isinstance(part, ReasoningPart)]
    return now in {before, evolve(before, parts=tuple(parts))}


def untrue_requests(subject: Subject[S], trace: Trace[S]) -> Iterator[Violation]:
    """Yield each request that differs from the conversation, or that no prompt cache can hit."""
    before: ModelRequest | None = None
    steady = _has_steady_tools(subject.graph)
    for move in trace.moves:
        run, by = move.run, f"by node {move.node.name!r}"
        if new_in(run.messages, move.before.messages) is None:
            before = None
        for request in [effect.request for effect in move.effects if isinstance(effect, CallModel)]:
            sent = request.messages
            for key in () if sent is run.messages else _other_results(sent, run.messages):
                text = f"the model is sent another result of call {key} than the conversation has"
                yield Violation("answers", f"{text}, {by}", move.number)
            if not any(isinstance(node, ModelCall) for node in unwrapped([move.node])):
                continue
            tools = request.tools if steady and not run.setup.attended else ()
            if len(sent) != len(run.messages):
                yield Violation("prefix", f"not the conversation is sent, {by}", move.number)
            elif before is not None and not _begins_with(sent, before.messages):
                yield Violation("prefix", f"a request begins otherwise, {by}", move.number)
            elif before is not None and tools and tools != before.tools:
                yield Violation("prefix", f"a request has other tools, {by}", move.number)
            before = request


def _has_steady_tools(graph: NodeGraph[S]) -> bool:
    """Whether a single node opens every turn, and calls no function that may change the tools."""
    contracts = map(contract_of, graph.nodes.values())
    opening = [known for known in contracts if known is not None and known.takes_up_calls]
    return len(opening) == 1 and not opening[0].functions


def _begins_with(sent: Sequence[Message], before: Sequence[Message]) -> bool:
    if isinstance(sent, History) and isinstance(before, History):
        return sent.starts_with(before)
    return tuple(sent[: len(before)]) == tuple(before)


def _other_results(sent: Sequence[Message], history: Sequence[Message]) -> Iterator[str]:
    known = {message.key: message for message in history if isinstance(message, ToolResult)}
    known.pop("", None)
    for message in sent:
        if isinstance(message, ToolResult) and known.get(message.key, message) != message:
            yield message.key
