"""What a model reads of a tool's result, and what only programs read, over real sockets."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import pytest
from anthropic.types import MessageParam
from google.genai.types import Content
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputParam
from pydantic import TypeAdapter

from graphloop import Agent, ToolError, tool
from graphloop.media import image
from graphloop.providers.anthropic.wire import AnthropicMessages
from graphloop.providers.base import Wire
from graphloop.providers.google.wire import GoogleGemini
from graphloop.providers.http import Endpoint, HttpProvider
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.providers.openai_responses.wire import OpenAIResponses
from graphloop.testing import ScriptedModel
from graphloop.tools import ToolReturn
from graphloop.values import TextPart
from tests import google_talk
from tests.property.test_request_bytes import Call, on_anthropic, on_openai
from tests.responses_talk import call, message, recorded, stream, text
from tests.wire_server import Answer, WireServer


def on_google(said: str, calls: tuple[Call, ...], at: int) -> Answer:
    """Return a turn as the Gemini wire streams it."""
    parts: list[dict[str, Any]] = [{"text": said}] if said else []
    parts += [google_talk.call(name, {"text": about}, f"call_{at}") for name, about in calls]
    return Answer([google_talk.recorded(google_talk.stream(parts))])


def on_responses(said: str, calls: tuple[Call, ...], at: int) -> Answer:
    """Return a turn as the Responses wire streams it."""
    items = [call(f"fc_{at}", f"call_{at}", name, {"text": about}) for name, about in calls]
    items += [message(f"msg_{at}", text(said))] if said else []
    return Answer([recorded(stream(items))])


@final
@dataclass(frozen=True)
class Case:
    """A wire, a server that speaks it, and the SDK's own type of its messages."""

    wire: Wire
    published: TypeAdapter[Any]

    def answers(self) -> list[Answer]:
        """Return a turn with a call of `look`, and a turn with the final answer."""
        turn = {
            "anthropic": on_anthropic,
            "google": on_google,
            "openai": on_openai,
            "openai-responses": on_responses,
        }[self.wire.name]
        return [turn("", (("look", "x"),), 0), turn("Done.", (), 1)]

    def messages(self, body: bytes) -> list[dict[str, Any]]:
        """Return the messages of a request, which the SDK's own types accept."""
        sent = json.loads(body)
        (field,) = sent.keys() & {"contents", "input", "messages"}
        messages: list[dict[str, Any]] = sent[field]
        # The vendors' types check lists while they are read, so the messages are written again.
        assert self.published.dump_json(self.published.validate_python(messages))
        return messages


CASES: Mapping[str, Case] = {
    "anthropic": Case(AnthropicMessages("m"), TypeAdapter(list[MessageParam])),
    "google": Case(GoogleGemini("m"), TypeAdapter(list[Content])),
    "openai": Case(OpenAIChat("m"), TypeAdapter(list[ChatCompletionMessageParam])),
    "openai-responses": Case(OpenAIResponses("gpt-5"), TypeAdapter(ResponseInputParam)),
}
PNG = b"\x89PNG\r\n\x1a\n rest"
SAID = "No such button.\nLog: 404"
on_every_wire = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))


async def last_messages(case: Case, look: Any, store: str | None = None) -> list[dict[str, Any]]:
    """Return the messages of the second request of an agent whose model calls `look` once."""
    async with WireServer(case.answers()) as server:
        provider = HttpProvider(case.wire, Endpoint(server.url, "k"))
        async with Agent(provider, tools=[look], store=store) as agent:
            await agent.generate("Look at it.", run_id="r")
        return case.messages(server.requests[1].body)


@on_every_wire
async def test_a_tool_error_with_an_image_reaches_the_model_as_an_error(case: Case) -> None:
    """A screenshot shows why a click failed; Anthropic's API refuses it inside a failed result."""

    @tool
    def look(text: str) -> str:
        """Look."""
        raise ToolError("No such button.", content=[TextPart("Log: 404"), image(PNG)])

    messages = await last_messages(case, look)

    if case.wire.name == "openai-responses":
        said, *about, picture = messages[-1]["output"]
        assert said["text"] == "Error:"
        assert SAID == "\n".join(part["text"] for part in about)
        assert picture["image_url"].endswith(b64encode(PNG).decode())
        return
    if case.wire.name == "google":
        result, about, picture = messages[-1]["parts"]
        assert result["functionResponse"]["response"] == {"error": SAID}
    elif case.wire.name == "anthropic":
        result, about, picture = messages[-1]["content"]
        assert result["is_error"] is True
        assert [SAID] == [block["text"] for block in result["content"]]
        assert result["tool_use_id"] in about["text"]
        assert picture["type"] == "image"
    else:
        result, followed = messages[-2:]
        assert result["role"] == "tool"
        assert result["content"] == f"Error: {SAID}"
        about, picture = followed["content"]
        assert result["tool_call_id"] in about["text"]
        assert picture["type"] == "image_url"
    assert about["text"].startswith("Attached to the result of tool look")
    assert b64encode(PNG).decode() in json.dumps(picture)


@on_every_wire
async def test_data_for_programs_reaches_no_model(case: Case, tmp_path: Path) -> None:
    """A page draws the rows; the model reads a line. The journal keeps both."""
    rows = [{"canary": number} for number in range(3)]

    @tool
    def look(text: str) -> ToolReturn:
        """Look."""
        return ToolReturn("3 rows.", data=rows)

    store = str(tmp_path / "runs")
    messages = await last_messages(case, look, store)

    assert "3 rows." in json.dumps(messages)
    assert "canary" not in json.dumps(messages)
    other = Agent(ScriptedModel([]), tools=[look], store=store)
    (result,) = (await other.runs.replay("r")).record.steps[0].tool_results
    assert (rows, "3 rows.") == (result.value, result.text)
