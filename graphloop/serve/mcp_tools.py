"""Tools: what an MCP server's clients see of its agents: their tools, arguments and results."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import mcp_types as types

from ..agent import RunResult
from ..conversation import ended_answer, ended_media
from ..media import FileId, Inline, MediaPart, Url
from ..stores import RunRecord
from .served import WHOLE, RequestRefused

__all__ = [
    "RUN_STATUS",
    "STATUS",
    "ToolAnswer",
    "end_result",
    "error_result",
    "status_result",
    "text_argument",
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
    text, media = ended_answer(result.run), ended_media(result.run)
    data = {"text": text, "end_reason": result.end_reason, "run_id": result.run_id}
    if result.end_reason in WHOLE:
        return _tool_result(text, data, media)
    said = f"run {result.run_id} ended: {result.end_reason}. {text}".strip()
    return _tool_result(said, data, media, is_error=True)


def status_result(record: RunRecord, ended: RunResult[Any] | None) -> types.CallToolResult:
    """Return how a run stands, with its answer once it is over."""
    asked = [ask.name for ask in record.asks]
    data: dict[str, Any] = {"run_id": record.run_id, "status": record.status, "waits_for": asked}
    said = f"{record.status}, waits for {', '.join(asked)}" if asked else record.status
    if ended is None:
        return _tool_result(said, data)
    data |= {"text": ended_answer(ended.run), "end_reason": ended.end_reason}
    return _tool_result(f"{said}: {data['text']}", data, ended_media(ended.run))


def error_result(text: str) -> types.CallToolResult:
    """Return an error that the client's model reads."""
    return _tool_result(text, None, is_error=True)


def _tool_result(
    text: str,
    data: dict[str, Any] | None,
    media: Iterable[MediaPart] = (),
    *,
    is_error: bool = False,
) -> types.CallToolResult:
    """Return a result with its text and media; with structured content unless `data` is None."""
    blocks = [_media_block(part, place) for place, part in enumerate(media, 1)]
    # Models' servers refuse a text without words.
    words: list[types.ContentBlock] = [types.TextContent(text=text)] if text or not blocks else []
    return types.CallToolResult(
        content=[*words, *blocks], structured_content=data, is_error=is_error
    )


def _media_block(part: MediaPart, place: int) -> types.ContentBlock:
    """Return media as a block of a result; a file of the model's server is only named."""
    name, media_type = part.name or f"{part.kind}-{place}", part.media_type
    match part.source:
        case Inline(data=data) if part.kind == "image":
            return types.ImageContent(data=b64encode(data).decode(), mime_type=media_type)
        case Inline(data=data) if part.kind == "audio":
            return types.AudioContent(data=b64encode(data).decode(), mime_type=media_type)
        case Inline(data=data):
            return types.EmbeddedResource(
                resource=types.BlobResourceContents(
                    uri=f"attachment:///{quote(name, safe='')}",
                    mime_type=media_type,
                    blob=b64encode(data).decode(),
                )
            )
        case Url(url=url):
            return types.ResourceLink(name=name, uri=url, mime_type=media_type)
        case FileId():
            return types.TextContent(text=f"[{part.label}]")


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
