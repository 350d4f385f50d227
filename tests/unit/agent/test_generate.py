"""generate_text and stream_chat: one question, one agent, closed afterwards."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphloop import (
    EndReason,
    RunResult,
    StepChanges,
    Tool,
    generate_text,
    generate_text_sync,
    stream_chat,
    tool,
)
from graphloop.errors import ConfigError
from graphloop.parts.parts import ErrorPart
from graphloop.providers.script import Entry
from graphloop.testing import ScriptedModel
from graphloop.values import Message, ToolResult, UserMessage
from tests.agents import drain
from tests.strategies import call, reply, said, wrong


def test_the_three_doors_lead_to_one_answer() -> None:
    """Awaited, synchronous, streamed."""

    async def streamed() -> str:
        return "".join(
            [text async for text in stream_chat(ScriptedModel(["hi there"]), "go").text_stream]
        )

    assert "hi there" == asyncio.run(generate_text(ScriptedModel(["hi there"]), "go")).text
    assert "hi there" == generate_text_sync(ScriptedModel(["hi there"]), "go").text
    assert "hi there" == asyncio.run(streamed())


def test_a_model_by_name_is_opened_and_closed(tmp_path: Path) -> None:
    """Whoever gave a string holds nothing to close."""
    script = tmp_path / "script.yaml"
    script.write_text("- hi\n", encoding="utf-8")

    async def streamed() -> str:
        return (await stream_chat(f"script:{script}", "go").result()).text

    assert "hi" == generate_text_sync(f"script:{script}", "go").text
    assert "hi" == asyncio.run(streamed())


@pytest.mark.parametrize(
    "options",
    [
        {"max_steps": 0},
        {"tools": [5]},
        {"nonsense": 1},
    ],
    ids=str,
)
def test_a_stream_never_raises_before_it_is_looked_at(options: dict[str, object]) -> None:
    """Whatever is wrong becomes its error part, and the error of its result."""
    stream = stream_chat(ScriptedModel([]), "go", **wrong(options))

    parts, error = asyncio.run(drain(stream))

    assert isinstance(error, ConfigError)
    assert [ErrorPart(error)] == parts


def test_a_model_that_is_none_is_the_stream_s_error_too() -> None:
    """It is the first thing that a caller who forgot to configure one hands in."""
    _, error = asyncio.run(drain(stream_chat(wrong(None), "go")))

    assert isinstance(error, ConfigError)


def test_what_a_caller_s_own_object_raises_is_the_stream_s_error_too() -> None:
    """Whatever it is: a stream never raises before it is looked at."""

    def tools() -> Iterator[object]:
        raise LookupError("no tools today")
        yield

    _, error = asyncio.run(drain(stream_chat(ScriptedModel([]), "go", tools=wrong(tools()))))

    assert isinstance(error, LookupError)


def test_a_question_that_is_none_is_the_stream_s_error_too() -> None:
    """Neither prompt nor messages."""
    _, error = asyncio.run(drain(stream_chat(ScriptedModel([]))))

    assert isinstance(error, ConfigError)


@tool
def read() -> str:
    """Read."""
    return "text"


class Counting:
    """A provider of the user's that counts how often it is closed."""

    def __init__(self, *replies: Entry, label: str = "script") -> None:
        self.label = label
        self.session = ScriptedModel(replies, label=label).session
        self.closed = 0

    async def aclose(self) -> None:
        """Count."""
        self.closed += 1


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the labels of all scripted models that are closed."""
    labels: list[str] = []

    async def note(model: ScriptedModel) -> None:
        labels.append(model.label)

    monkeypatch.setattr(ScriptedModel, "aclose", note)
    return labels


def script(tmp_path: Path, text: str = "- hi\n") -> str:
    """Return the name of a model scripted in a file."""
    path = tmp_path / "script.yaml"
    path.write_text(text, encoding="utf-8")
    return f"script:{path}"


def test_what_was_opened_by_name_is_closed_once(tmp_path: Path, closed: list[str]) -> None:
    """However the question was asked: the caller has nothing to close it with."""
    name = script(tmp_path)

    asyncio.run(generate_text(name, "go"))
    assert [name] == closed
    asyncio.run(drain(stream_chat(name, "go")))
    assert [name] * 2 == closed


def test_what_was_opened_by_name_is_closed_when_the_run_fails(
    tmp_path: Path, closed: list[str]
) -> None:
    """An error must not cost a connection."""
    name = script(tmp_path, "- error: broken\n")

    with pytest.raises(Exception, match="broken"):
        asyncio.run(generate_text(name, "go"))
    asyncio.run(drain(stream_chat(name, "go")))

    assert [name] * 2 == closed


async def test_a_stream_that_is_left_closes_what_was_opened_by_name(
    tmp_path: Path, closed: list[str]
) -> None:
    """Looked at, and left."""
    name = script(tmp_path)

    stream = stream_chat(name, "go")
    await anext(stream.full_stream)
    assert [] == closed
    await stream.aclose()
    assert [name] == closed


def test_a_provider_that_was_given_stays_open() -> None:
    """It is the caller's, who may ask it the next question."""
    mine = Counting("one", "two", "three")

    asyncio.run(generate_text(mine, "go"))
    asyncio.run(drain(stream_chat(mine, "go")))
    generate_text_sync(mine, "go")

    assert 0 == mine.closed


def test_all_doors_take_the_options_of_an_agent() -> None:
    """One definition: what an agent does, each door does."""
    told: list[int] = []

    def changes(_: object) -> StepChanges:
        told.append(1)
        return StepChanges(tool_choice="none")

    def asked() -> ScriptedModel:
        return ScriptedModel([reply(call())] * 2)

    async def streamed(model: ScriptedModel) -> EndReason:
        stream = stream_chat(model, "go", tools=[read], max_steps=2, prepare_step=changes)
        return (await stream.result()).end_reason

    models = [asked(), asked(), asked()]
    first = asyncio.run(
        generate_text(models[0], "go", tools=[read], max_steps=2, prepare_step=changes)
    )
    second = generate_text_sync(models[1], "go", tools=[read], max_steps=2, prepare_step=changes)

    assert {EndReason.MAX_STEPS} == {
        first.end_reason,
        second.end_reason,
        asyncio.run(streamed(models[2])),
    }
    assert [1] * 6 == told
    assert [["none", "none"]] * 3 == [
        [one.tool_choice.mode for one in model.requests] for model in models
    ]


def test_a_conversation_may_take_the_place_of_a_prompt() -> None:
    """At every door; the caller's list stays as it is."""
    model = ScriptedModel(["done"], restart=True)
    messages = [{"role": "user", "content": "go"}]

    asyncio.run(generate_text(model, messages=messages))
    generate_text_sync(model, messages=messages)
    asyncio.run(drain(stream_chat(model, messages=messages)))

    assert [{"role": "user", "content": "go"}] == messages
    assert [(UserMessage("go"),)] * 3 == [tuple(one.messages) for one in model.requests]


def test_a_wrong_option_is_refused_before_anything_is_asked() -> None:
    """By the buffered doors as an exception."""
    model = ScriptedModel(["done"])

    with pytest.raises(ConfigError, match="max_steps"):
        asyncio.run(generate_text(model, "go", max_steps=0))
    with pytest.raises(ConfigError, match="max_steps"):
        generate_text_sync(model, "go", max_steps=0)
    with pytest.raises(ConfigError, match="both"):
        generate_text_sync(model, "go", messages=[UserMessage("go")])

    assert [] == model.requests


def test_a_stream_asks_nothing_until_it_is_looked_at() -> None:
    """It returns at once, outside of any event loop, too."""
    model = ScriptedModel(["done"])

    stream = stream_chat(model, "go")

    assert [] == model.requests
    assert stream.run is None


def test_a_model_that_cannot_be_found_is_the_stream_s_error() -> None:
    """One place to handle errors."""
    parts, error = asyncio.run(drain(stream_chat("nobody:x", "go")))

    assert isinstance(error, ConfigError)
    assert [ErrorPart(error)] == parts


async def test_a_synchronous_question_in_an_event_loop_says_what_to_await() -> None:
    """A notebook has a loop already; and nothing is left behind that was never awaited."""
    model = ScriptedModel(["done"])

    with pytest.raises(ConfigError, match="await generate_text"):
        generate_text_sync(model, "go")
    # A coroutine that was never awaited warns when it is collected: an error in this suite.
    gc.collect()
    assert [] == model.requests


@tool(needs_approval=True)
def pay() -> str:
    """Pay."""
    return "paid"


def test_the_three_doors_take_answers_for_the_calls_of_a_conversation() -> None:
    """A conversation that is kept elsewhere goes on without an agent of one's own."""
    asks = Tool(name="ask", parameters={"type": "object", "properties": {}}, kind="client")
    history: list[Message] = [UserMessage("go"), said(call("pay", "p"), call("ask", "a"))]
    tools, approvals, results = [pay, asks], {"p": True}, {"a": "yes"}

    async def main() -> list[RunResult[None]]:
        stream = stream_chat(
            ScriptedModel(["done"]),
            messages=history,
            approvals=approvals,
            tool_results=results,
            tools=tools,
        )
        awaited = await generate_text(
            ScriptedModel(["done"]),
            messages=history,
            approvals=approvals,
            tool_results=results,
            tools=tools,
        )
        return [await stream.result(), awaited]

    synchronous = generate_text_sync(
        ScriptedModel(["done"]),
        messages=history,
        approvals=approvals,
        tool_results=results,
        tools=tools,
    )

    for result in (synchronous, *asyncio.run(main())):
        assert [one.content for one in result.messages if isinstance(one, ToolResult)] == [
            "paid",
            "yes",
        ]
