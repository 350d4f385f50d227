"""Results: what the answer of an MCP server to a call is for a model and for programs."""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as NotBase64

from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)

from ..errors import ToolError
from ..media import Inline, MediaPart
from ..tools import ToolReturn
from ..values import TextPart

__all__ = ["value_of"]


def value_of(result: CallToolResult) -> object:
    """Return a call's result in a form that a tool may return.

    Texts become one text; pictures, sound and blobs become media parts. Structured content is data
    for programs; a model reads it only where no other content came.

    Raises:
        ToolError: the server says that the call failed, or sent media that is not base64.
    """
    parts = _joined([_part(block) for block in result.content])
    structured: object = result.structured_content
    if result.is_error:
        text = parts[0].text if parts and isinstance(parts[0], TextPart) else ""
        rest = parts[1:] if text else parts
        raise ToolError(text or "The tool failed.", content=rest or None)
    if not parts:
        content: object = "" if structured is None else json.dumps(structured, ensure_ascii=False)
    elif len(parts) == 1 and isinstance(parts[0], TextPart):
        content = parts[0].text
    else:
        content = parts
    return content if structured is None else ToolReturn(content, structured)


def _part(block: ContentBlock) -> TextPart | MediaPart:
    match block:
        case TextContent():
            return TextPart(block.text)
        case ImageContent() | AudioContent():
            return _media(block.mime_type, block.data)
        case ResourceLink():
            about = f": {block.description}" if block.description else ""
            kind = f" ({block.mime_type})" if block.mime_type else ""
            return TextPart(f"[resource {block.name!r}{kind} at {block.uri}{about}]")
        case EmbeddedResource(resource=BlobResourceContents() as blob):
            name = str(blob.uri).rstrip("/").rpartition("/")[2]
            return _media(blob.mime_type or "application/octet-stream", blob.blob, name)
        case EmbeddedResource():
            return TextPart(getattr(block.resource, "text", ""))


def _media(media_type: str, text: str, name: str = "") -> MediaPart:
    try:
        return MediaPart(media_type, Inline(b64decode(text, validate=True)), name)
    except NotBase64 as error:
        raise ToolError(f"The tool's server sent {media_type} that is not base64.") from error


def _joined(parts: list[TextPart | MediaPart]) -> list[TextPart | MediaPart]:
    """Return the parts, with neighbouring texts joined by a line break."""
    joined: list[TextPart | MediaPart] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, TextPart) and isinstance(last, TextPart):
            joined[-1] = TextPart(f"{last.text}\n{part.text}")
        else:
            joined.append(part)
    return joined
