"""Checks on the conversation of a run: results follow their calls, and old messages stay.

Five changes of old messages are allowed:

- A node that leaves by `Compacted` shortens the conversation. A `Compact` without a user's function
  only drops messages.
- A node that leaves by `Blocked` puts a note in place of a message of the user.
- A node gives results to calls that were pending in the input.
- A `Retrying` or `Fallback` removes the messages of a failed attempt.
- The caller of an iterated run may replace the conversation.

Each request to a model holds the whole conversation and begins with the request before it, so that
prompt caches work. A caller or a `prepare_step` function may change the tools. Requests of a
user's own node are not checked for this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TypeVar

from ..contract import contract_of
from ..conversation import BLOCKED_NOTE, ORIGIN, PRUNED_NOTE, open_calls, without_media
from ..effects import CallModel
from ..events import CallbackReturned, Changes, Steered
from ..graph import NodeGraph
from ..node_protocol import unwrapped
from ..nodes import Compact, Fallback, ModelCall, Retrying
from ..outcomes import Blocked, Compacted
from ..run import History
from ..values import (
    AssistantMessage,
    Message,
    ModelRequest,
    ReasoningPart,
    ToolResult,
    UserMessage,
    evolve,
)
from .subject import Subject
from .trace import Move, Trace, new_in
from .violation import Violation

__all__ = ["rewritten", "unpaired", "unpaired_conversations", "untrue_requests"]

S = TypeVar("S")


def unpaired_conversations(trace: Trace[S]) -> Iterator[Violation]:
    """Yield a violation for the first unpaired call or result in a conversation or a request."""
    judged: History[Message] = History()
    for number, step in enumerate(trace.steps, 1):
        requests = [effect.request for effect in step.effects if isinstance(effect, CallModel)]
        for history in [*[request.messages for request in requests], step.run.messages]:
            # If the history has only grown, checking its new messages is enough.
            grown = isinstance(history, History) and history.starts_with(judged)
            for text in unpaired(history[len(judged) :] if grown else history):
                yield Violation("history", text, number)
                return
        judged = step.run.messages


def unpaired(history: Sequence[Message]) -> Iterator[str]:
    """Yield a text for each call without a result, and each result without a call."""
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
    """Yield a violation for each old message that a node removed or changed without permission."""
    within = {name: [*unwrapped([node])] for name, node in subject.graph.nodes.items()}
    for move in trace.moves:
        run, nodes = move.run, within[move.node.name]
        # A retry may remove the messages of the failed attempt, so it compares from the entry.
        retries = any(isinstance(node, Retrying | Fallback) for node in nodes)
        kept = move.entered if retries else move.before
        added, said = kept.record.added, kept.messages
        if isinstance(move.outcome, Blocked):
            added, said = _before_block(added, run.record.added), _before_block(said, run.messages)
        changes = list(_changed_messages("what the run has added", added, run.record.added))
        if new_in(run.messages, said) is None:
            if not _may_rewrite(move):
                changes += _changed_messages("the conversation", said, run.messages)
            elif any(isinstance(node, Compact) and not node.callback for node in nodes):
                changes += _invented_messages(said, run.messages)
        for text in changes:
            yield Violation("past", f"{text}, changed by node {move.node.name!r}", move.number)


def _changed_messages(
    record: str, before: History[Message], now: History[Message]
) -> Iterator[str]:
    """Yield a text that names the first message of `before` that `now` lacks or has changed."""
    if new_in(now, before) is None:
        pairs = enumerate(zip(before, now, strict=False), 1)
        place = next((at for at, (old, new) in pairs if old != new), len(now) + 1)
        yield f"message {place} of {record} is {'gone' if place > len(now) else 'another one now'}"


def _before_block(before: History[Message], now: History[Message]) -> History[Message]:
    """Return the messages before a screen blocked, with its note where `now` has the note."""
    pairs = zip_longest(before, now[: len(before)])
    return History(
        new if isinstance(old, UserMessage) and new == evolve(old, content=BLOCKED_NOTE) else old
        for old, new in pairs
    )


def _may_rewrite(move: Move[S]) -> bool:
    """Whether a node's move is allowed to remove or change old messages of the conversation."""
    match move.event:
        case Steered(messages=messages) if messages is not None:
            return True
        case CallbackReturned(answer=Changes(messages=messages)) if messages is not None:
            return True
        case _:
            # A compacting node may already shorten the conversation when it requests a summary.
            shortens = move.outcome is None and Compacted in move.node.outcomes
            # The next turn adds the missing results of calls that were pending in the input.
            repairs = bool(open_calls(move.before.messages))
            return shortens or isinstance(move.outcome, Compacted) or repairs


def _invented_messages(before: Sequence[Message], now: Sequence[Message]) -> Iterator[str]:
    """Yield a text for the first message of `now` that is neither in `before` nor a summary."""
    remaining = iter(before)
    for place, message in enumerate(now, 1):
        is_summary = getattr(message, "origin", "") == ORIGIN
        if not is_summary and not any(_is_compaction_of(message, old) for old in remaining):
            yield f"message {place} of the conversation is none that was there"
            return


def _is_compaction_of(now: Message, before: Message) -> bool:
    """Whether `now` equals `before`, or what the layers of a compaction may leave of `before`."""
    if isinstance(now, ToolResult) and PRUNED_NOTE.fullmatch(now.text):
        return isinstance(before, ToolResult) and now == evolve(before, content=now.content)
    forms = {before, without_media(before)}
    if isinstance(before, AssistantMessage):
        parts = tuple([part for part in before.parts if not isinstance(part, ReasoningPart)])
        forms |= {evolve(before, parts=parts), without_media(evolve(before, parts=parts))}
    return now in forms


def untrue_requests(subject: Subject[S], trace: Trace[S]) -> Iterator[Violation]:
    """Yield a violation for each request that differs from the conversation or from its prefix."""
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
    """Whether only one node starts turns, and invokes no function that could change the tools."""
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
