"""Results: what the answers of an MCP server are for models and for programs."""

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
    GetPromptResult,
    ImageContent,
    ReadResourceResult,
    ResourceLink,
    TextContent,
)
from mcp.types import Prompt as McpPrompt
from mcp.types import Resource as McpResource
from mcp.types import Tool as McpTool

from ..errors import ToolError
from ..media import MediaPart, received
from ..tools import ToolReturn
from ..values import AssistantMessage, Message, TextPart, UserMessage
from .definitions import Definition
from .materials import Prompt, PromptArgument, Resource

__all__ = [
    "definition_of",
    "messages_of_prompt",
    "part_of",
    "parts_of_resource",
    "prompt_of",
    "resource_of",
    "value_of",
]


def value_of(result: CallToolResult) -> object:
    """Return a call's result in a form that a tool may return.

    Texts become one text; pictures, sound and blobs become media parts. Structured content is data
    for programs; a model reads it only where no other content came.

    Raises:
        ToolError: the server says that the call failed, or sent media that is not base64.
    """
    parts = _join_texts([part_of(block) for block in result.content])
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


def definition_of(tool: McpTool) -> Definition:
    """Return a server's description of a tool."""
    hints = tool.annotations
    return Definition(
        tool.name,
        tool.description or "",
        tool.input_schema,
        tool.output_schema,
        read_only=bool(hints and hints.read_only_hint),
        idempotent=bool(hints and hints.idempotent_hint),
    )


def resource_of(resource: McpResource) -> Resource:
    """Return what a server tells of a resource."""
    name, description = resource.name, resource.description or ""
    return Resource(resource.uri, name, description, resource.mime_type or "", resource.size)


def parts_of_resource(result: ReadResourceResult) -> tuple[TextPart | MediaPart, ...]:
    """Return the texts and media of a resource that was read, in order."""
    return tuple([part_of(EmbeddedResource(resource=content)) for content in result.contents])


def prompt_of(prompt: McpPrompt) -> Prompt:
    """Return what a server tells of a prompt."""
    arguments = [
        PromptArgument(each.name, each.description or "", bool(each.required))
        for each in prompt.arguments or ()
    ]
    return Prompt(prompt.name, prompt.description or "", tuple(arguments))


def messages_of_prompt(result: GetPromptResult) -> tuple[Message, ...]:
    """Return the messages of a prompt; consecutive messages of one role are not merged."""
    return tuple(
        [
            UserMessage(content) if message.role == "user" else AssistantMessage(content)
            for message in result.messages
            for content in [(part_of(message.content),)]
        ]
    )


def part_of(block: ContentBlock) -> TextPart | MediaPart:
    """Return a block of content as a part of a message.

    Raises:
        ToolError: it is media that is not base64.
    """
    match block:
        case TextContent():
            return TextPart(block.text)
        case ImageContent() | AudioContent():
            return _media_part(block.mime_type, block.data)
        case ResourceLink():
            about = f": {block.description}" if block.description else ""
            kind = f" ({block.mime_type})" if block.mime_type else ""
            return TextPart(f"[resource {block.name!r}{kind} at {block.uri}{about}]")
        case EmbeddedResource(resource=BlobResourceContents() as blob):
            name = str(blob.uri).rstrip("/").rpartition("/")[2]
            return _media_part(blob.mime_type or "", blob.blob, name)
        case EmbeddedResource():
            return TextPart(getattr(block.resource, "text", ""))


def _media_part(media_type: str, text: str, name: str = "") -> TextPart | MediaPart:
    try:
        data = b64decode(text, validate=True)
    except NotBase64 as error:
        raise ToolError(f"The tool's server sent {media_type} that is not base64.") from error
    # Models' servers refuse a file without bytes.
    return received(data, media_type, name) if data else TextPart(f"[{name or media_type}: empty]")


def _join_texts(parts: list[TextPart | MediaPart]) -> list[TextPart | MediaPart]:
    """Return the parts, with neighbouring texts joined by a line break."""
    joined: list[TextPart | MediaPart] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, TextPart) and isinstance(last, TextPart):
            joined[-1] = TextPart(f"{last.text}\n{part.text}")
        else:
            joined.append(part)
    return joined
