"""A model with a plan: what it says depends on the conversation alone.

So a process that comes after a dead one, a fork, and a replay hear the same, whoever was asked how
often before: the n-th answer of a conversation is the n-th line of its plan.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence

from graphloop.providers.base import StreamItem, TextDelta
from graphloop.values import (
    AssistantMessage,
    FinishReason,
    Message,
    ModelRequest,
    Reply,
    TextPart,
    ToolCall,
    Usage,
    UserMessage,
)

__all__ = ["Line", "PlannedModel", "call", "line", "prompted"]

USAGE = Usage(10, 5)


def call(name: str, call_id: str = "", **arguments: object) -> ToolCall:
    """Return a call."""
    return ToolCall(call_id, name, json.dumps(arguments))


Line = Sequence[ToolCall] | str
"""One answer: calls, or the last words."""


def line(said: Line) -> Reply:
    """Return a line of a plan as a reply."""
    if isinstance(said, str):
        return Reply(AssistantMessage((TextPart(said),)), FinishReason.STOP, USAGE, model="planned")
    message = AssistantMessage((TextPart("So:"), *said))
    return Reply(message, FinishReason.TOOL_CALLS, USAGE, model="planned")


def prompted(messages: Sequence[Message]) -> str:
    """Return the first thing that a user said in a conversation."""
    first = next(one for one in messages if isinstance(one, UserMessage))
    assert isinstance(first.content, str)
    return first.content


class PlannedModel:
    """Answers by a plan.

    Args:
        plan: the lines for a conversation that begins with this prompt; "done" follows them.
        label: the name in journals.
    """

    def __init__(self, plan: Callable[[str], Sequence[Line]], label: str = "planned") -> None:
        self.label = label
        self._plan = plan

    def session(self) -> PlannedModel:
        """Return itself: it remembers nothing."""
        return self

    async def aclose(self) -> None:
        """Do nothing."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Say the line that the conversation has come to."""
        at = sum(isinstance(one, AssistantMessage) for one in request.messages)
        plan = self._plan(prompted(request.messages))
        reply = line(plan[at] if at < len(plan) else "done")
        for part in reply.message.parts:
            if isinstance(part, TextPart):
                yield TextDelta(part.text)
        yield reply
