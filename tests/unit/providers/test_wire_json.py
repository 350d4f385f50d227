"""JSON as servers really write it, and as they accept it back."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.errors import BadReply, ConfigError
from graphloop.providers.text import whole_text
from graphloop.providers.wire_json import (
    as_list,
    as_object,
    is_list,
    is_object,
    json_bytes,
    json_text,
    object_in,
    object_or_empty,
    object_text,
    parse_json,
    parse_object,
    quoted,
    sent_name,
)
from tests.transcripts import any_text

TOO_DEEP = b'{"a":' * 100_000


def test_parsed_json_is_told_apart() -> None:
    """Servers put anything anywhere; each reader asks before it looks inside."""
    values: tuple[object, ...] = ({}, [], "", None)

    assert [is_object(value) for value in values] == [True, False, False, False]
    assert [is_list(value) for value in values] == [False, True, False, False]


def test_escapes_of_half_a_character_are_parsed() -> None:
    """The fast parser refuses them; the other half may come in the next event."""
    assert parse_json(rb'{"a":"\ud83d"}') == {"a": "\ud83d"}
    assert parse_object(rb'{"a":"\uD83D"}') == {"a": "\ud83d"}
    assert parse_json(rb'"\\ud83d \ud83d"') == "\\ud83d \ud83d"


@pytest.mark.parametrize(
    "data", [b"", b"{", rb'["\ud83d"', rb'["\ud83d",' + b"[" * 100_000, TOO_DEEP, b'"\xff"']
)
def test_what_is_not_json_is_a_value_error(data: bytes) -> None:
    """Neither parser's other errors reach a caller."""
    with pytest.raises(ValueError):  # noqa: PT011 - the parsers' own words differ.
        parse_json(data)


@pytest.mark.parametrize("data", [b"<html>", b"[1]", b"null", TOO_DEEP])
def test_an_event_that_is_no_object_is_a_bad_reply(data: bytes) -> None:
    """The message says what was expected, what came, and what to look at."""
    with pytest.raises(BadReply, match=r"expected .* found .*heck that the base URL"):
        parse_object(data)


def test_null_stands_for_nothing() -> None:
    """Servers write null where others leave a field out."""
    assert as_object(None, "here") == {}
    assert as_list(None, "here") == []
    assert as_object({"a": 1}, "here") == {"a": 1}
    assert as_list([1], "here") == [1]


def test_a_wrong_shape_is_reported_with_its_place() -> None:
    """Whoever reads it must find it in a recording."""
    with pytest.raises(BadReply, match="an object or null at here"):
        as_object([], "here")
    with pytest.raises(BadReply, match="an array or null at here"):
        as_list({}, "here")


def test_everything_can_be_written() -> None:
    """Pairs of halves become their character, lone halves the replacement character."""
    assert json_text({"a": ["\ud83d\udc69", "\ud83d", "é"]}) == '{"a":["👩","\ufffd","é"]}'
    assert json_text({"a": [1.5, None, True, "\n"]}) == r'{"a":[1.5,null,true,"\n"]}'


def test_numbers_json_does_not_have_are_written_as_null() -> None:
    """Either writer: a request with NaN in it is refused as a whole."""
    odd = [float("nan"), float("inf"), -float("inf"), 1e300, 10**30]

    assert json_text(odd) == "[null,null,null,1e300,1000000000000000000000000000000]"
    assert json_text(["\ud83d", *odd]) == f'["\ufffd",{json_text(odd)[1:]}'


@given(any_text)
def test_any_text_can_be_sent(text: str) -> None:
    """Encoding must not raise for what a tool happened to return."""
    assert json.loads(json_bytes(text)) == whole_text(text)


@pytest.mark.parametrize("text", ["{}", ' {"a": 1.50}\n', '{"a":"\\u00e9\\ud83d\\udc69"}'])
def test_a_json_object_is_returned_verbatim(text: str) -> None:
    """The model wrote it so; another spelling would break the prompt cache."""
    assert object_or_empty(text) == text


BROKEN = (
    *("", "null", "[1]", '"{}"', '{"a":', "{} {}", '{"a": celsius"}', '{"a":NaN}'),
    *('{"a":"\\ud83d"}', '{"a":' * 5000),
)


@pytest.mark.parametrize("text", [*BROKEN, '{"a":"\ud83d"}'])
def test_what_is_no_json_object_becomes_the_empty_object(text: str) -> None:
    """Servers refuse every later request of a history that holds broken arguments."""
    assert object_or_empty(text) == "{}"


@pytest.mark.parametrize("text", BROKEN)
def test_a_text_of_ours_that_is_no_object_is_refused_with_its_place(text: str) -> None:
    """Spliced into a request it would break the whole body, at the server, in other words."""
    with pytest.raises(ConfigError, match=r"here: expected the text of one JSON object"):
        object_text(text, place="here")


def test_a_text_of_ours_is_sent_as_it_is_but_for_halves() -> None:
    """Text from a tool or a person may hold them; what is sent may not."""
    assert object_text(' {"a":1.50,"b":"\ud83d"}', place="here") == ' {"a":1.50,"b":"\ufffd"}'


def test_a_text_of_ours_is_read_with_halves_of_either_form() -> None:
    """Provider data comes from journals, and has been through other hands."""
    assert object_in('{"a":"\ud83d"}', place="here") == {"a": "\ufffd"}
    assert object_in(r'{"a":"\ud83d"}', place="here") == {"a": "\ud83d"}
    with pytest.raises(ConfigError, match="here: expected the text of one JSON object"):
        object_in("[1]", place="here")


@pytest.mark.parametrize("name", ["get_weather", "a-B_9", "x" * 64])
def test_a_legal_name_stays_as_it_is(name: str) -> None:
    """It is what the server knows the tool by."""
    assert sent_name(name) == name


@given(any_text | st.text(min_size=60))
def test_any_name_becomes_a_legal_one(name: str) -> None:
    """Whatever a model calls, the history it leaves can be sent."""
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", sent_name(name), re.ASCII)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("functions.get weather", "functions_get_weather"), ("", "_"), ("f\n", "f_"), ("é", "_")],
)
def test_an_illegal_name_stays_recognisable(name: str, expected: str) -> None:
    """The model reads it beside the answer that there is no such tool."""
    assert sent_name(name) == expected


def test_a_quotation_is_bounded_and_printable() -> None:
    """Messages go to terminals and journals."""
    assert quoted("a\x1b") == r"'a\x1b'"
    assert quoted(b"\xff") == "'\ufffd'"
    assert quoted("x" * 301) == f"'{'x' * 300}'…"
