"""Media from a caller's files to the body of a request, over a real socket."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

import pytest

from graphloop import Agent, Graph, StepChanges, Tool, allow, tool
from graphloop.errors import ConfigError, ToolError
from graphloop.loop import Standard, standard_edges
from graphloop.media import FileId, Inline, MediaPart, audio, file, image, video
from graphloop.nodes import ModelCall
from graphloop.providers.anthropic.wire import AnthropicMessages
from graphloop.providers.base import Wire
from graphloop.providers.google.wire import GoogleGemini
from graphloop.providers.http import Endpoint, HttpProvider
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.providers.openai_responses.wire import OpenAIResponses
from graphloop.stores import MemoryStore
from graphloop.values import TextPart
from tests.google_talk import GOOGLE
from tests.google_talk import ITEMS as PARTS
from tests.google_talk import recorded as recorded_by_google
from tests.google_talk import stream as google_stream
from tests.responses_talk import ITEMS, PIXEL, RESPONSES, recorded, stream
from tests.transcripts import ANTHROPIC, OPENAI
from tests.wire_server import Answer, WireServer, json_answer, sse

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

IMAGES = {
    "images": [
        {
            "type": "image_url",
            "index": 0,
            "image_url": {"url": f"data:image/png;base64,{b64encode(PIXEL).decode()}"},
        }
    ]
}
UNFIT: Mapping[str, MediaPart] = {
    "anthropic": file(b"\0\1", "application/octet-stream", name="made.bin"),
    "google": file(FileId("f", wire="openai"), "application/pdf", name="made.bin"),
    "openai": video(b"\0\1", "video/mp4", name="made.bin"),
    "openai-responses": audio(b"RIFF0000WAVE", name="made.bin"),
}
"""For each wire, a part that it cannot take."""
DRAWN: Mapping[str, list[bytes]] = {
    "google": [recorded_by_google(google_stream(PARTS["picture"]))],
    "openai": sse(
        json.dumps({"choices": [{"index": 0, "delta": IMAGES, "finish_reason": "stop"}]}), "[DONE]"
    ),
    "openai-responses": [recorded(stream(ITEMS["picture"]))],
}
"""A reply with a picture, on each wire that has such replies."""


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


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_run_survives_media_of_a_tool_that_its_model_cannot_take(
    wire: str, failed: bool, tmp_path: Path
) -> None:
    """A server of tools may return any bytes; in the journal, they would end each resume, too."""

    @tool
    async def get_weather(city: str) -> list[TextPart | MediaPart]:
        """Return what no model asked for."""
        if failed:
            raise ToolError(f"No weather in {city}.", content=[image(PNG), UNFIT[wire]])
        return [TextPart(city), image(PNG), UNFIT[wire]]

    form, recorded = WIRES[wire]
    answers = [Answer([recorded["tools"]]), Answer([recorded["text"]])]
    async with WireServer(answers) as server:
        agent = Agent(
            HttpProvider(form, Endpoint(server.url, "k")),
            tools=[get_weather],
            store=str(tmp_path / "runs.db"),
        )

        result = await agent.generate("What is the weather?")
        await agent.aclose()

    body = server.requests[1].body
    assert b64encode(PNG) in body
    assert b"[left out: " in body
    assert b"made.bin" in body
    warnings = [one for one in result.warnings if "made.bin" in one]
    assert all(f"the wire {wire!r}" in one and "Fix: " in one for one in warnings)
    assert warnings
    assert result.text


@pytest.mark.parametrize("wire", WIRES)
async def test_a_run_survives_media_of_its_caller_that_its_model_cannot_take(wire: str) -> None:
    """`resume` journals the result of a tool that the caller runs."""
    form, recorded = WIRES[wire]
    weather = Tool(name="get_weather", description="Weather.", parameters={"type": "object"})
    answers = [Answer([recorded["tools"]]), Answer([recorded["text"]])]
    async with WireServer(answers) as server:
        agent = Agent(
            HttpProvider(form, Endpoint(server.url, "k")), tools=[weather], store=MemoryStore()
        )
        asked = await agent.generate("What is the weather?")
        given = {one.key: [TextPart("See."), UNFIT[wire]] for one in asked.pending}
        result = await agent.resume(asked.run_id, tool_results=given)
        await agent.aclose()

    assert b"[left out: " in server.requests[1].body
    assert any("made.bin" in one for one in result.warnings)
    assert result.text


@pytest.mark.parametrize("by_node", [False, True])
async def test_a_model_other_than_the_usual_one_gets_the_media_that_only_it_takes(
    by_node: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The usual model is not asked then, so its refusal of a film must not lose the film."""

    @tool
    async def get_weather(city: str) -> list[TextPart | MediaPart]:
        """Return a film of the weather."""
        return [TextPart(city), video(b"\0\1", "video/mp4")]

    form, recorded = WIRES["google"]
    answers = [Answer([recorded["tools"]]), Answer([recorded["text"]])]
    async with WireServer(answers) as server:
        usual, viewer = (
            HttpProvider(each, Endpoint(server.url, "k")) for each in (OpenAIChat("m"), form)
        )
        if by_node:
            monkeypatch.setenv("GEMINI_API_KEY", "k")
            monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
            nodes = Standard(model=ModelCall(model=viewer.label))
            graph = Graph[None]("viewer", nodes.prepare, standard_edges(nodes))
            result = await graph.run(
                None,
                model=usual,
                tools=[get_weather],
                gate=allow("*"),
                prompt="What is the weather?",
            )
        else:
            agent = Agent(
                usual,
                tools=[get_weather],
                prepare_step=lambda _: StepChanges(model=viewer),
            )
            result = await agent.generate("What is the weather?")

    assert b64encode(b"\0\1") in server.requests[1].body
    assert not result.warnings


@pytest.mark.parametrize("made_by", DRAWN)
@pytest.mark.parametrize("wire", WIRES)
async def test_a_picture_that_a_model_made_can_be_shown_to_any_model(
    wire: str, made_by: str
) -> None:
    """What only its own wire knows of it, such as a signature or an id, stays with the reply."""
    (painter, _), (form, recorded) = WIRES[made_by], WIRES[wire]
    answers = [Answer(DRAWN[made_by]), Answer([recorded["text"]])]
    async with WireServer(answers) as server:
        endpoint = Endpoint(server.url, "k")
        async with Agent(HttpProvider(painter, endpoint)) as first:
            drawn = await first.generate("Draw a fox.")

        async with Agent(HttpProvider(form, endpoint)) as second:
            await second.generate(["Judge it.", *drawn.media])

    kept = [part for part in drawn.steps[0].reply.message.parts if isinstance(part, MediaPart)]
    assert all(part.extra for part in kept)
    assert b64encode(PIXEL) in server.requests[1].body


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


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_chat_goes_on_after_an_answer_that_was_spoken(
    streamed: bool, tmp_path: Path
) -> None:
    """The user reads the words and has the sound; the server gets its id, also from a journal."""
    sound = b"RIFF\0\0\0\0WAVE" + bytes(range(256)) * 80  # Too long for a journal's line.
    data = b64encode(sound).decode()
    about = {"id": "audio_1", "expires_at": 9_999_999_999}
    pieces: list[object] = [
        {"id": "audio_1", "transcript": "It "},
        {"data": data[:4001]},
        {"transcript": "rains."},
        {"data": data[4001:]},
        {"expires_at": 9_999_999_999},
    ]
    whole: object = {"content": None, "audio": {**about, "data": data, "transcript": "It rains."}}
    spoken: list[object] = [
        *({"choices": [{"index": 0, "delta": {"audio": each}}]} for each in pieces),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    choice = {"index": 0, "message": whole, "finish_reason": "stop"}
    answer = (
        Answer(sse(*map(json.dumps, spoken), "[DONE]"))
        if streamed
        else json_answer(200, json.dumps({"choices": [choice]}))
    )
    async with WireServer([answer, answer]) as server:
        agents = [
            Agent(
                HttpProvider(OpenAIChat("m", stream=streamed), Endpoint(server.url, "k")),
                store=str(tmp_path / "runs.db"),
            )
            for _ in range(2)
        ]

        results = [await agent.chat("me").send("The weather?") for agent in agents]
        for agent in agents:
            await agent.aclose()

    assert ["It rains."] * 2 == [result.text for result in results]
    assert [("audio/wav", sound)] == [
        (each.media_type, each.source.data)
        for each in results[0].media
        if isinstance(each.source, Inline)
    ]
    sent = json.loads(server.requests[1].body)["messages"]
    assert {"role": "assistant", "audio": {"id": "audio_1"}} == sent[1]
    assert not any(set(one) - {"role", "content", "audio"} for one in sent)
