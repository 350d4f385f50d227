"""A real model on this machine: three endpoints of llama.cpp's server, where it is installed.

The other conformance tests replay what servers have sent. Here a server decides what it sends, with
a model that is small enough for a processor; `.ci/nightly` installs both.

The model has learned no tools. So the server gets a template of the conversation with a form for
calls, and the loop's first messages show three calls: then the model calls the tool itself, and
answers from its result.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, Literal

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
    ToolChoice,
    ToolResult,
    UserMessage,
)
from tests.llama_server import CONTEXT, KEY, MODEL, serving

PATIENT = Timeouts(first_content_s=500, silence_s=500, total_s=600)
"""A processor that others use, too, may take minutes to read a conversation."""
LOOKS_MAX = 2_000

pytestmark = pytest.mark.skipif(
    MODEL is None, reason="needs a real model, which `.ci/nightly` installs"
)
on_each_endpoint = pytest.mark.parametrize(
    ("label", "path"),
    [("openai:small", "/v1"), ("openai-responses:small", "/v1"), ("anthropic:small", "")],
    ids=["chat", "responses", "messages"],
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of a server with one slot, for all tests."""
    with serving() as address:
        yield address


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


class Shop:
    """A tool of an agent, and the shops that the model has asked it about."""

    def __init__(self, kettles: int) -> None:
        self.asked: list[str] = []

        @tool
        def count(shop: str) -> str:
            """Count the kettles of a shop."""
            self.asked.append(shop)
            return str(kettles)

        self.tool = count


def asked(shop: str) -> list[Message]:
    return [*SHOWN, UserMessage(f"How many kettles are in the shop {shop}?")]


@pytest.mark.deadline(600)
@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "buffered"])
@on_each_endpoint
async def test_a_loop_ends_with_the_number_that_a_tool_returned(
    url: str, label: str, path: str, *, streams: bool
) -> None:
    """A real model calls the tool by itself, and answers with a number that it cannot know."""
    shop = Shop(4711)

    model = connect(label, base_url=url + path, api_key=KEY, stream=streams, timeouts=PATIENT)
    async with Agent(model, tools=[shop.tool], max_steps=4, max_tokens=40) as one:
        result = await one.generate(messages=asked("Bob"))

    assert shop.asked == ["Bob"]
    assert result.text == "There are 4711 kettles."
    assert (result.end_reason, len(result.steps)) == ("completed", 2)


SHOPS = {
    "Bob": 4711, "Kim": 12, "Max": 530, "Tom": 9, "Lea": 86,
    "Ida": 1201, "Sam": 77, "Amy": 64, "Leo": 3400, "Una": 251,
}  # fmt: skip


@pytest.mark.deadline(900)
@pytest.mark.parametrize("mode", ["auto", "required"])
@on_each_endpoint
async def test_ten_of_ten_loops_end_with_the_tools_number(
    url: str, label: str, path: str, mode: Literal["auto", "required"]
) -> None:
    """`required` counts for the first turn only: in each turn, no answer could end the loop."""
    choice = ToolChoice(mode, scope="first_step")
    model = connect(label, base_url=url + path, api_key=KEY, timeouts=PATIENT)

    answers: dict[str, str] = {}
    for name, kettles in SHOPS.items():
        shop = Shop(kettles)
        one = Agent(model, tools=[shop.tool], tool_choice=choice, max_steps=4, max_tokens=40)
        result = await one.generate(messages=asked(name))
        assert (result.end_reason, len(shop.asked)) == ("completed", 1)
        answers[name] = result.text
    await model.aclose()

    assert answers == {name: f"There are {kettles} kettles." for name, kettles in SHOPS.items()}


@pytest.mark.deadline(600)
@on_each_endpoint
async def test_a_required_call_that_the_model_does_not_write_is_no_call(
    url: str, label: str, path: str
) -> None:
    """The server lets the model write before the call; the limit ends what the model writes."""
    shop = Shop(4711)

    one = agent(label, url + path, max_tokens=20)
    one = one.with_options(tools=[shop.tool], tool_choice="required", max_steps=2)
    result = await one.generate("How many kettles are in the shop Bob?")

    assert shop.asked == []
    assert result.usage is not None
    assert result.usage.output_tokens >= 20


@pytest.mark.deadline(600)
@pytest.mark.parametrize("max_tokens", range(2, 9))
@on_each_endpoint
async def test_a_call_that_the_limit_cuts_never_runs(
    url: str, label: str, path: str, max_tokens: int
) -> None:
    """Whatever word the server says of the end of such a reply."""
    shop = Shop(4711)

    one = agent(label, url + path, max_tokens=max_tokens)
    one = one.with_options(tools=[shop.tool], max_steps=1)
    result = await one.generate(messages=asked("Bob"))

    assert shop.asked == []
    assert result.end_reason != "completed" or not result.text


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the requests that reach the server."""
    paths: list[str] = []
    send = httpx.AsyncClient.send

    async def counted(client: httpx.AsyncClient, request: httpx.Request, **options: Any) -> Any:
        paths.append(request.url.path)
        return await send(client, request, **options)

    monkeypatch.setattr(httpx.AsyncClient, "send", counted)
    return paths


@on_each_endpoint
async def test_a_wrong_key_is_told(url: str, label: str, path: str, sent: list[str]) -> None:
    """It is no failure that may pass, so it is asked once."""
    with pytest.raises(AuthenticationFailed, match="Check the API key"):
        await agent(label, url + path, key="wrong").generate("Hi.")

    assert len(sent) == 1


@on_each_endpoint
async def test_a_conversation_that_does_not_fit_ends_the_run(
    url: str, label: str, path: str, sent: list[str]
) -> None:
    """The server says so by a word of its own, which is the run's end."""
    result = await agent(label, url + path).generate("word " * 3 * CONTEXT)

    assert result.end_reason == "context_window"
    assert len(sent) == 1


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
