"""Requests: whether a model is sent the conversation, and each time the one of before, grown.

A prompt cache hits where a request begins as the one before it. It does unless the conversation
became another one (`past` says who may do that), or the caller or a `prepare_step` function changed
the tools. What a node of one's own sends may be less than the conversation, or more; a result that
both have is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from ..contract import contract_of
from ..effects import CallModel
from ..graph import Graph
from ..history import History
from ..node_protocol import unwrapped
from ..nodes.model_call import ModelCall
from ..values import Message, ModelRequest, ToolResult
from .moves import Move, moves, new_in
from .story import Story
from .subject import Subject
from .violation import Violation

__all__ = ["untrue_requests"]

S = TypeVar("S")


def untrue_requests(subject: Subject[S], story: Story[S]) -> Iterator[Violation]:
    """Yield what a model is sent that the conversation does not hold, or held otherwise before."""
    before: ModelRequest | None = None
    steady = _is_steady(subject.graph)
    for move in moves(subject, story):
        if new_in(move.run.messages, move.before.messages) is None:
            before = None
        is_turn = any(isinstance(one, ModelCall) for one in unwrapped([move.node]))
        requests = [one.request for one in move.effects if isinstance(one, CallModel)]
        by = f"by node {move.node.name!r}"
        for request in requests:
            yield from _other_results(request, move, by)
            if not is_turn:
                continue
            if len(request.messages) != len(move.run.messages):
                yield Violation("prefix", f"not the conversation is sent, {by}", move.number)
            told = steady and not move.run.setup.attended
            if before is not None and not _continues(request, before, tools=told):
                found = f"a request does not begin with the request of before, {by}"
                yield Violation("prefix", found, move.number)
            before = request


def _is_steady(graph: Graph[S]) -> bool:
    """Whether all turns offer the same tools: one node opens them, and asks no function."""
    opening = [one for one in map(contract_of, graph.nodes.values()) if one and one.settles]
    return len(opening) == 1 and not opening[0].functions


def _continues(request: ModelRequest, before: ModelRequest, *, tools: bool) -> bool:
    if tools and (request.tools, request.output) != (before.tools, before.output):
        return False
    return _grows(request.messages, before.messages)


def _grows(sent: Sequence[Message], history: Sequence[Message]) -> bool:
    if isinstance(sent, History) and isinstance(history, History):
        return sent is history or sent.starts_with(history)
    return tuple(sent[: len(history)]) == tuple(history)


def _other_results(request: ModelRequest, move: Move[S], by: str) -> Iterator[Violation]:
    """Yield each result that a model is sent, and that is another one in the conversation."""
    if _grows(request.messages, move.run.messages):
        return
    history = move.run.messages
    held = {one.key: one for one in history if isinstance(one, ToolResult) and one.key}
    for one in request.messages:
        if isinstance(one, ToolResult) and held.get(one.key, one) != one:
            found = f"the model is sent another result of call {one.key} than the conversation has"
            yield Violation("answers", f"{found}, {by}", move.number)
