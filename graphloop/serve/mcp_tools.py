"""Tools: what an MCP server's clients see of its agents: their tools, arguments and results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import mcp_types as types

from ..agent import RunResult
from ..conversation import ended_answer
from .served import WHOLE, RequestRefused

__all__ = [
    "RUN_STATUS",
    "STATUS",
    "ToolAnswer",
    "end_result",
    "error_result",
    "text_argument",
    "tool_result",
    "tools_of_agents",
]

ToolAnswer: TypeAlias = types.CallToolResult | types.InputRequiredResult

STATUS: Final = "run_status"
"""The tool that tells how a run stands."""
AGENT_INPUT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"prompt": {"type": "string", "description": "The task, in words."}},
    "required": ["prompt"],
    "additionalProperties": False,
}
AGENT_OUTPUT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "end_reason": {"type": "string"},
        "run_id": {"type": "string"},
    },
    "required": ["text", "end_reason", "run_id"],
}
STATUS_INPUT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"run_id": {"type": "string"}},
    "required": ["run_id"],
    "additionalProperties": False,
}
STATUS_OUTPUT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "run_id": {"type": "string"},
        "status": {"type": "string"},
        "waits_for": {"type": "array", "items": {"type": "string"}},
        "text": {"type": "string", "description": "The answer, once the run is over."},
        "end_reason": {"type": "string"},
    },
    "required": ["run_id", "status", "waits_for"],
}
RUN_STATUS: Final = types.Tool(
    name=STATUS,
    description="Tell whether a run is over, its answer, and what it waits for.",
    input_schema=STATUS_INPUT,
    output_schema=STATUS_OUTPUT,
    annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
)


def tools_of_agents(agents: Iterable[str], descriptions: Mapping[str, str]) -> Iterator[types.Tool]:
    """Yield the tool of each agent, by its name."""
    for name in agents:
        text = descriptions.get(name, f"Ask the agent {name!r} to do a task.")
        yield types.Tool(
            name=name, description=text, input_schema=AGENT_INPUT, output_schema=AGENT_OUTPUT
        )


def end_result(result: RunResult[Any]) -> types.CallToolResult:
    """Return the result of a run that is over; an answer that is not complete is an error."""
    text = ended_answer(result.run)
    data = {"text": text, "end_reason": result.end_reason, "run_id": result.run_id}
    if result.end_reason in WHOLE:
        return tool_result(text, data)
    said = f"run {result.run_id} ended: {result.end_reason}. {text}".strip()
    return tool_result(said, data, is_error=True)


def error_result(text: str) -> types.CallToolResult:
    """Return an error that the client's model reads."""
    return tool_result(text, None, is_error=True)


def tool_result(
    text: str, data: dict[str, Any] | None, *, is_error: bool = False
) -> types.CallToolResult:
    """Return a result with its text, and with structured content unless `data` is None."""
    content: list[types.ContentBlock] = [types.TextContent(text=text)]
    return types.CallToolResult(content=content, structured_content=data, is_error=is_error)


def text_argument(arguments: Mapping[str, object], name: str) -> str:
    """Return the one argument of a call.

    Raises:
        RequestRefused: the argument is missing or blank, or there are others.
    """
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip() or len(arguments) > 1:
        raise RequestRefused(
            f"`{name}`: expected this argument alone, a text with words, found {arguments!r:.200}. "
            "Fix: give it."
        )
    return value
