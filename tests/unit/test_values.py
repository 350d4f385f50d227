"""Values: what is read from messages, calls, results and usage."""

from __future__ import annotations

import pytest

from graphloop.media import MediaPart, Url
from graphloop.values import (
    AssistantMessage,
    OpaquePart,
    ReasoningPart,
    TextPart,
    ToolResult,
    ToolSpec,
    ToolSpecs,
    Usage,
    UserPart,
    call_key,
    evolve,
)
from tests.strategies import call, said


def test_a_message_tells_its_text_reasoning_and_calls_apart() -> None:
    """Whatever the order in which they came."""
    first, second = call("a", "1"), call("a", "1")
    message = said(
        "x", ReasoningPart("r"), first, "y", OpaquePart("{}"), second, ReasoningPart("s")
    )

    assert ("xy", "rs", (first, second)) == (message.text, message.reasoning, message.calls)


@pytest.mark.parametrize(
    ("message", "blank"),
    [
        (said(), True),
        (said("", " \n"), True),
        (said(" ", "x"), False),
        (said(ReasoningPart("")), False),
        (said(OpaquePart("{}")), False),
        (said(call()), False),
    ],
)
def test_only_white_space_is_blank(message: AssistantMessage, blank: bool) -> None:
    """Hidden reasoning and server blocks are something, though nobody can read them."""
    assert blank == message.is_blank


def result(content: str | tuple[UserPart, ...]) -> ToolResult:
    """Return a result."""
    return ToolResult("c0.0", "", "read", content)


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("12", 12),
        ("twelve", "twelve"),
        ("", ""),
        ("[" * 100_000, "[" * 100_000),
    ],
    ids=["object", "number", "text", "nothing", "too deep"],
)
def test_a_result_s_value_is_json_where_it_is_json(content: str, value: object) -> None:
    """And the text where it is not; reading a result never raises."""
    assert value == result(content).value


def test_the_text_of_parts_is_their_text() -> None:
    """Images have none."""
    parts = (TextPart("a"), MediaPart("image/*", Url("https://example.org/x.png")), TextPart("b"))

    assert "ab" == result(parts).text


def test_every_status_but_ok_is_an_error() -> None:
    """The model is told so on the wire."""
    assert not result("").is_error
    assert evolve(result(""), status="denied").is_error


def test_keys_tell_turns_and_places_apart() -> None:
    """Turn 1, call 11 is not turn 11, call 1."""
    assert len({call_key(turn, at) for turn in range(20) for at in range(20)}) == 400
    assert "c1.11" == call_key(1, 11)


def test_usage_adds_up_bucket_by_bucket() -> None:
    """Reasoning is part of the output and is not counted twice."""
    usage = Usage(1, 2, 3, 4, 5) + Usage(10, 20, 30, 40, 50)

    assert Usage(11, 22, 33, 44, 55) == usage
    assert 110 == usage.total_tokens


def test_tools_on_offer_are_a_tuple_with_look_ups() -> None:
    """A journal that holds the plain tuple gives the same run."""
    end, search = ToolSpec("end", "", "{}", ends=True), ToolSpec("s", "", "{}", kind="provider")

    tools = ToolSpecs((end, search))

    assert {"end": end, "s": search} == tools.by_name
    assert {"end": end} == tools.callable
    assert (end,) == tools.ending
    assert (end, search) == tools
