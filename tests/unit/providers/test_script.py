"""The scripted model: the order of its replies, its record, its streams."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from graphloop import Agent, ask
from graphloop.errors import BadReply, Overloaded, ScriptExhausted
from graphloop.providers.base import (
    ModelSession,
    Provider,
    StreamItem,
    TextDelta,
)
from graphloop.providers.script import ScriptedModel
from graphloop.values import (
    AssistantMessage,
    FinishReason,
    Message,
    ModelRequest,
    ReasoningPart,
    Reply,
    TextPart,
    ToolCall,
    Usage,
    UserMessage,
)

ASK = ModelRequest((UserMessage("Hello"),))
READY = Reply(
    AssistantMessage((ReasoningPart("Hm"), TextPart("a b"), ToolCall("x", "look", "{}"))),
    FinishReason.TOOL_CALLS,
)


def heard(session: ModelSession, request: ModelRequest = ASK) -> list[StreamItem]:
    async def drained() -> list[StreamItem]:
        return [part async for part in session.stream(request)]

    return asyncio.run(drained())


def text(session: ModelSession, request: ModelRequest = ASK) -> str:
    reply = heard(session, request)[-1]
    assert isinstance(reply, Reply)
    return reply.message.text


def test_a_text_is_streamed_word_by_word_and_then_whole() -> None:
    """Listeners meet several deltas; their join is the text."""
    model: Provider = ScriptedModel(["  Hello, big world.\n"], model="m1")

    *deltas, reply = heard(model.session())

    words = ["  ", "Hello, ", "big ", "world.\n"]
    assert deltas == [TextDelta(word) for word in words]
    assert reply == Reply(
        AssistantMessage((TextPart("  Hello, big world.\n"),), "script"),
        FinishReason.STOP,
        Usage(10, 4),
        "stop",
        "m1",
    )
    assert model.label == "script"


def test_a_function_sees_the_request_and_answers_in_any_form() -> None:
    """A scripted model may react to what it is told."""

    def echo(request: ModelRequest) -> str:
        return f"{len(request.messages)} message"

    model = ScriptedModel([echo, lambda _: {"text": "two"}, lambda _: READY])
    session = model.session()

    assert text(session) == "1 message"
    assert text(session) == "two"
    assert heard(session)[-1] is READY


def test_an_exception_is_raised_as_it_is() -> None:
    """Tests choose the class: retryable or not, with a status or without."""
    overloaded = Overloaded("too much", status=529)

    with pytest.raises(Overloaded) as caught:
        heard(ScriptedModel([overloaded]).session())

    assert caught.value is overloaded


async def test_an_error_comes_after_the_deltas_before_it() -> None:
    """A stream that breaks in the middle is the hard case for whoever listens."""

    stream = ScriptedModel([{"text": "half an", "error": "broke"}]).session().stream(ASK)
    seen = [await anext(stream), await anext(stream)]
    with pytest.raises(BadReply, match=r"^broke$"):
        await anext(stream)
    assert seen == [TextDelta("half "), TextDelta("an")]


def test_sessions_share_one_list_and_replies_are_marked() -> None:
    """A list is one conversation's script; a reply that a caller made keeps its own `extra`."""
    shared = ScriptedModel(["one", "two"])
    own = Reply(AssistantMessage((TextPart("x"),), "anthropic", "{}"), FinishReason.STOP)
    session = ScriptedModel([lambda _: "x", own], restart=True).session()

    assert [text(shared.session()), text(shared.session())] == ["one", "two"]
    first, second = heard(session)[-1], heard(session)[-1]
    assert isinstance(first, Reply)
    assert (first.message.extra, second) == ('{"script": "script"}', own)


def test_every_request_is_written_down_even_the_one_too_many() -> None:
    """What the model was asked is what a test wants to look at."""
    model = ScriptedModel(["one"], label="demo")
    session = model.session()
    first, second = ASK, ModelRequest((UserMessage("And?"), UserMessage("Well?")))
    heard(session, first)

    with pytest.raises(ScriptExhausted, match=r"demo holds 1 replies.*Add reply 2.*2 messages"):
        heard(session, second)

    assert model.requests == [first, second]
    assert asyncio.run(model.aclose()) is None


def test_a_script_goes_on_where_a_run_has_come_to(tmp_path: Path) -> None:
    """A run that is taken up in another process must not be told the first reply again."""
    path = tmp_path / "own.yaml"
    path.write_text("model: tiny\nreplies: [One., {text: Two.}]\n", encoding="utf-8")
    script = ScriptedModel.from_file(path)
    assert script.label == f"script:{path}"
    first = [heard(script.session())[-1] for _ in range(2)]
    assert [(one.message.text, one.model) for one in first if isinstance(one, Reply)] == (
        [("One.", "tiny")] * 2
    )

    rest = script.after(1)

    assert rest.label == script.label
    for session in (rest.session(), rest.session()):
        last = heard(session)[-1]
        assert isinstance(last, Reply)
        assert last.message.text == "Two."
    with pytest.raises(ScriptExhausted, match="holds 2 replies"):
        heard(script.after(2).session())


def asked(*words: str) -> ModelRequest:
    return ModelRequest(tuple([UserMessage(one) for one in words]))


def test_a_script_with_to_answers_by_the_conversation() -> None:
    """So one script serves several agents, in any order, and runs that are taken up again."""
    model = ScriptedModel(
        [
            {"to": ["poem", "shorter"], "text": "short"},
            {"to": "poem", "text": "long"},
            "what?",
        ]
    )
    session = model.session()
    questions = (("a poem",), ("a poem", "shorter"), ("hello",), ("a poem",))

    answers = [text(session, asked(*one)) for one in questions]

    assert ["long", "short", "what?", "long"] == answers
    assert "short" == text(model.after(3).session(), asked("shorter, a poem"))


def test_a_script_that_has_no_answer_says_what_it_was_asked() -> None:
    """The entry that is missing can be written from the message."""
    session = ScriptedModel([{"to": "poem", "text": "long"}]).session()

    with pytest.raises(ScriptExhausted, match=r"no reply to what it was asked.*a song.*`to`"):
        heard(session, asked("a song"))


def next_text(script: ScriptedModel, *messages: Message) -> str:
    """Return what a new session of the script says to this history."""
    return text(script.session(), ModelRequest(messages))


def test_a_script_goes_on_where_the_history_stands() -> None:
    """Another process has nothing else; a second run of a conversation begins anew."""
    made = [ScriptedModel(["One.", "Two."], label=label, restart=True) for label in ("a", "b")]
    mine, other = (heard(one.session())[-1] for one in made)
    assert isinstance(mine, Reply)
    assert isinstance(other, Reply)
    one, another, question = mine.message, other.message, UserMessage("?")
    told = UserMessage("Not so.", origin="verify")
    script = made[0]

    assert next_text(script, question) == "One."
    assert next_text(script, question, one) == "Two."
    assert next_text(script, question, one, told) == "Two."
    assert next_text(script, question, another) == "One."
    assert next_text(script, question, AssistantMessage(one.parts, one.wire)) == "One."
    assert next_text(script, question, one, question) == "One."
    assert next_text(script, one) == "Two."
    with pytest.raises(ScriptExhausted):
        next_text(script, question, one, told, one)


async def test_an_agent_of_a_script_is_resumed_in_a_new_process(tmp_path: Path) -> None:
    """By its name alone: the journal says how far the script has come."""
    path = tmp_path / "pay.yaml"
    path.write_text("- calls: [{name: pay}]\n- text: Paid.\n", encoding="utf-8")

    def pay() -> str:
        """Pay."""
        return "paid"

    def made() -> Agent:
        return Agent(
            f"script:{path}", tools=[pay], gate=ask("pay"), store=str(tmp_path / "runs.db")
        )

    await made().generate("Pay.", run_id="r")
    paid = await made().resume("r", approvals={"c0.0": True})
    again = await made().generate(messages=[*paid.messages, UserMessage("Again.")])
    assert (paid.text, again.end_reason.value) == ("Paid.", "parked")
