"""Pictures, sounds and files of served agents, as clients of both protocols get them."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from a2a.helpers import get_artifact_text, new_text_part
from a2a.types import Part
from mcp import Client

from graphloop import Agent, tool
from graphloop.media import FileId, Inline, MediaPart, Url
from graphloop.serve import McpServer
from graphloop.stores import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.values import AssistantMessage, FinishReason, Reply, TextPart
from tests.unit.serve.test_a2a import events, sent
from tests.unit.serve.test_a2a_processes import served, told

PNG, PDF = b"\x89PNG\r\n\x1a\n", b"%PDF-1.4"
PICTURE = MediaPart("image/png", Inline(PNG), "a.png")
MADE = (
    PICTURE,
    MediaPart("audio/wav", Inline(b"RIFF")),
    MediaPart("application/pdf", Inline(PDF), "a b.pdf"),
    MediaPart("image/png", Url("https://a.example/b.png")),
    MediaPart("image/png", FileId("f1")),
)
NAMED = "[image of type 'image/png']"


def painter(words: str) -> Agent:
    """Return an agent whose model answers by words and media."""
    said = TextPart(words) if words else None
    parts = MADE if said is None else (said, *MADE)
    reply = Reply(AssistantMessage(parts), FinishReason.STOP)
    return Agent(ScriptedModel([reply], restart=True), name="painter")


def printer() -> Agent:
    """Return an agent that ends with the picture of a tool."""

    @tool(ends_run=True)
    async def paint() -> MediaPart:
        """Paint."""
        return PICTURE

    return Agent(ScriptedModel([{"calls": [{"name": "paint"}]}]), tools=[paint], name="painter")


async def results(agent: Agent) -> tuple[list[Any], list[Any]]:
    """Return what a call of an agent over MCP says, and what the status of its run says later."""
    async with Client(McpServer([agent], store=MemoryStore()).connection) as client:
        called = await client.call_tool("painter", {"prompt": "Paint."})
        assert isinstance(called, types.CallToolResult)
        assert called.structured_content is not None
        run_id = called.structured_content["run_id"]
        status = await client.call_tool("run_status", {"run_id": run_id})
        assert isinstance(status, types.CallToolResult)
    return called.content, status.content


@pytest.mark.parametrize("words", ["Here.", ""])
async def test_an_mcp_client_gets_media_as_blocks(words: str) -> None:
    blocks = [
        types.ImageContent(data=b64encode(PNG).decode(), mime_type="image/png"),
        types.AudioContent(data=b64encode(b"RIFF").decode(), mime_type="audio/wav"),
        types.EmbeddedResource(
            resource=types.BlobResourceContents(
                uri="attachment:///a%20b.pdf",
                mime_type="application/pdf",
                blob=b64encode(PDF).decode(),
            )
        ),
        types.ResourceLink(name="image-4", uri="https://a.example/b.png", mime_type="image/png"),
        types.TextContent(text=NAMED),
    ]
    called, status = await results(painter(words))

    assert called == [*([types.TextContent(text=words)] if words else []), *blocks]
    assert status == [types.TextContent(text=f"done: {words}"), *blocks]


async def test_the_picture_of_the_last_tool_is_the_answer() -> None:
    called, _ = await results(printer())

    assert called == [types.ImageContent(data=b64encode(PNG).decode(), mime_type="image/png")]


@pytest.mark.parametrize("words", ["Here.", ""])
async def test_an_a2a_client_gets_media_as_parts(tmp_path: Path, words: str) -> None:
    """A stream has them at its end; a later process tells the same of the finished task."""
    media = [
        Part(raw=PNG, media_type="image/png", filename="a.png"),
        Part(raw=b"RIFF", media_type="audio/wav"),
        Part(raw=PDF, media_type="application/pdf", filename="a b.pdf"),
        Part(url="https://a.example/b.png", media_type="image/png"),
    ]
    agent = painter(words)
    async with served(agent, tmp_path / "runs.db") as client:
        task = await sent(client, new_text_part("Paint."))
    async with served(agent, tmp_path / "runs.db", streaming=True) as client:
        later = await told(client, task)
        *_, last, _ = await events(client, new_text_part("Paint."))

    for found in (task, later):
        (artifact,) = found.artifacts
        assert [part for part in artifact.parts if not part.HasField("text")] == media
        assert get_artifact_text(artifact, delimiter="").startswith(words)
        assert NAMED in get_artifact_text(artifact)
    assert last.artifact_update.append == bool(words)
    assert [part for part in last.artifact_update.artifact.parts if part.HasField("raw")] == media[
        :3
    ]
