"""Worlds for the failures of others: tools that write down that they ran, and what to look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Unpack

from graphloop import Tool, ToolContext
from graphloop.tools.options import ToolOptions
from graphloop.values import AssistantMessage, Message, ToolResult

__all__ = ["NUMBER", "call", "calls", "counting", "paired", "results_of"]

NUMBER: Mapping[str, object] = {
    "type": "object",
    "properties": {"x": {"type": "integer"}},
    "required": ["x"],
}


def call(name: str, x: int = 1, id: str = "") -> dict[str, object]:  # noqa: A002 - the wire's word
    """Return a call of a tool that takes a number."""
    return {"name": name, "arguments": {"x": x}, "id": id or f"{name}-{x}"}


def calls(*those: Mapping[str, object]) -> dict[str, object]:
    """Return a reply that makes these calls."""
    return {"calls": list(those)}


def counting(ran: list[str], name: str = "pay", **options: Unpack[ToolOptions]) -> Tool:
    """Return a tool that writes down each time it runs."""

    async def execute(arguments: Mapping[str, int], _: ToolContext) -> str:
        ran.append(f"{name} {arguments['x']}")
        return f"{name} {arguments['x']} done"

    return Tool(name=name, parameters=NUMBER, execute=execute, **options)


def paired(messages: Iterable[Message]) -> bool:
    """Assert that every call is answered right behind it, in order, and nothing else is."""
    open_calls: list[str] = []
    for message in messages:
        if isinstance(message, ToolResult):
            assert open_calls, f"nobody asked for {message}"
            assert message.call_id == open_calls.pop(0)
            continue
        assert not open_calls, f"unanswered: {open_calls}"
        if isinstance(message, AssistantMessage):
            open_calls = [one.id for one in message.calls]
    return not open_calls


def results_of(messages: Sequence[Message]) -> list[str]:
    """Return what tools said, in order."""
    return [str(one.content) for one in messages if isinstance(one, ToolResult)]
