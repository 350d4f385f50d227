"""Media from a caller's files to the body of a request, over a real socket."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

import pytest

from graphloop import Agent, tool
from graphloop.errors import ConfigError
from graphloop.media import MediaPart, audio, file, image, video
from graphloop.providers.anthropic.wire import AnthropicMessages
from graphloop.providers.base import Wire
from graphloop.providers.google.wire import GoogleGemini
from graphloop.providers.http import Endpoint, HttpProvider
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.providers.openai_responses.wire import OpenAIResponses
from graphloop.values import TextPart
from tests.google_talk import GOOGLE
from tests.responses_talk import ITEMS, RESPONSES, recorded, stream
from tests.transcripts import ANTHROPIC, OPENAI
from tests.wire_server import Answer, WireServer

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
PDF = b"%PDF-1.7\n" + bytes(range(255, -1, -1))

WIRES: Mapping[str, tuple[Wire, Mapping[str, bytes]]] = {
    "anthropic": (AnthropicMessages("m"), ANTHROPIC),
    "google": (GoogleGemini("m"), {**GOOGLE, "tools": GOOGLE["call"]}),
    "openai": (OpenAIChat("m"), OPENAI),
    "openai-responses": (
        OpenAIResponses("gpt-5"),
        {**RESPONSES, "tools": recorded(stream(ITEMS["call"]))},
    ),
}


@pytest.mark.parametrize("wire", WIRES)
async def test_the_files_of_a_question_reach_the_server(wire: str, tmp_path: Path) -> None:
    """Bytes that are given, read from a path or returned by a tool arrive byte for byte."""
    scan = tmp_path / "scan.pdf"
    scan.write_bytes(PDF)
    form, recorded = WIRES[wire]
    async with WireServer([Answer([recorded["text"]])]) as server:
        agent = Agent(HttpProvider(form, Endpoint(server.url, "k")))

        await agent.generate(["What is on it?", scan, PNG])
        await agent.aclose()

    body = json.dumps(json.loads(server.requests[0].body))
    assert ("scan.pdf" in body) == (wire != "google")  # Its API has no field for a name.
    assert b64encode(PDF).decode() in body
    assert b64encode(PNG).decode() in body


@pytest.mark.parametrize("wire", WIRES)
async def test_a_picture_of_a_tool_reaches_the_model(wire: str) -> None:
    @tool
    async def get_weather(city: str) -> list[TextPart | MediaPart]:
        """Return a chart of the weather."""
        return [TextPart(city), image(PNG)]

    form, recorded = WIRES[wire]
    answers = [Answer([recorded["tools"]]), Answer([recorded["text"]])]
    async with WireServer(answers) as server:
        agent = Agent(HttpProvider(form, Endpoint(server.url, "k")), tools=[get_weather])

        await agent.generate("What is the weather?")
        await agent.aclose()

    assert b64encode(PNG) in server.requests[1].body


@pytest.mark.parametrize(
    ("wire", "part", "found"),
    [
        ("anthropic", video(b"x", "video/mp4"), "the wire 'anthropic' takes there: image/png"),
        ("anthropic", audio(b"RIFF0000WAVE"), "found audio of type 'audio/wav' (inline). Fix: con"),
        ("openai", video("https://x/a.mp4"), "found video of type 'video/*' (URL). Fix: convert"),
        ("openai", file("https://x/a.pdf", "application/pdf"), "Fix: give it in another way that"),
        ("openai-responses", audio(b"RIFF0000WAVE"), "the wire 'openai-responses' takes there: im"),
        ("openai", image(b"II*\0", name="a.tif"), "found image 'a.tif' of type 'image/tiff'"),
    ],
)
async def test_media_that_the_wire_cannot_take_is_refused_before_sending(
    wire: str, part: MediaPart, found: str
) -> None:
    """The server would refuse it after the upload, or leave it out and answer without it."""
    form, _ = WIRES[wire]
    async with WireServer([]) as server:
        agent = Agent(HttpProvider(form, Endpoint(server.url, "k")))

        with pytest.raises(ConfigError) as caught:
            await agent.generate(["What is it?", part])
        await agent.aclose()

    assert found in str(caught.value)
    assert not server.requests
