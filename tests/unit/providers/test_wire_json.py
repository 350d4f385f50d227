"""JSON as servers really write it, and as they accept it back."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.providers.text import whole_text
from graphloop.providers.wire_json import (
    json_bytes,
    json_text,
    parse_json,
    quoted,
    sent_name,
)
from tests.transcripts import any_text

TOO_DEEP = b'{"a":' * 100_000


@pytest.mark.parametrize(
    "data", [b"", b"{", rb'["\ud83d"', rb'["\ud83d",' + b"[" * 100_000, TOO_DEEP, b'"\xff"']
)
def test_what_is_not_json_is_a_value_error(data: bytes) -> None:
    """Neither parser's other errors reach a caller."""
    with pytest.raises(ValueError):  # noqa: PT011 - the parsers' own words differ.
        parse_json(data)


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


BROKEN = (
    *("", "null", "[1]", '"{}"', '{"a":', "{} {}", '{"a": celsius"}', '{"a":NaN}'),
    *('{"a":"\\ud83d"}', '{"a":' * 5000),
)


@given(any_text | st.text(min_size=60))
def test_any_name_becomes_a_legal_one(name: str) -> None:
    """Whatever a model calls, the history it leaves can be sent."""
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", sent_name(name), re.ASCII)


def test_a_quotation_is_bounded_and_printable() -> None:
    """Messages go to terminals and journals."""
    assert quoted("a\x1b") == r"'a\x1b'"
    assert quoted(b"\xff") == "'\ufffd'"
    assert quoted("x" * 301) == f"'{'x' * 300}'…"
