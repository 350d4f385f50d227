"""What a model reads of a call: text, compact JSON or parts, never more than its limit."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

import pytest
from pydantic import TypeAdapter, ValidationError

from graphloop.errors import ToolError
from graphloop.media import Inline, MediaPart
from graphloop.tools.outcome import (
    ToolOutcome,
    ToolReturn,
    join_issues,
    outcome_of_error,
    outcome_of_value,
    rejection,
    unknown_outcome,
)
from graphloop.values import TextPart
from tests.unit.tools.doubles import Query, Unspeakable


class Colour(StrEnum):
    RED = "red"


@dataclass
class Booking:
    day: date
    seats: list[int]


class Opaque:
    def __repr__(self) -> str:
        return "<opaque>"


def returning(value: object, **options: int) -> ToolOutcome:
    return outcome_of_value(value, options.get("limit", 100_000))


LOOP: list[object] = []
LOOP.append(LOOP)
PICTURE = MediaPart("image/png", Inline(b"png"))


@pytest.mark.parametrize(
    ("content", "data", "expected"),
    [
        ("3 rows", [{"a": 1}], ToolOutcome("3 rows", "ok", '[{"a":1}]')),
        ([PICTURE], None, ToolOutcome((PICTURE,), "ok", "null")),
        ({"a": 1}, "text", ToolOutcome('{"a":1}', "ok", '"text"')),
        (
            "long",
            "x" * 9,
            ToolOutcome("lo\n[cut: 2 of 4 characters left out]", "ok", f'"{"x" * 9}"'),
        ),
        ("", float("nan"), ToolOutcome("", "ok", "null")),
        ("", Opaque(), ToolOutcome("", "ok", '"<opaque>"')),
        ("", LOOP, ToolOutcome("", "ok", '"[[...]]"')),
    ],
)
def test_data_for_programs_is_json_beside_the_content(
    content: object, data: object, expected: ToolOutcome
) -> None:
    """A table for a page is too long for a model; only the model's part is cut."""
    limit = 2 if content == "long" else 100

    assert expected == outcome_of_value(ToolReturn(content, data), limit)


@pytest.mark.parametrize(
    ("error", "content"),
    [
        (ToolError("no", content=[PICTURE]), (TextPart("no"), PICTURE)),
        (ToolError("no", content=(TextPart("log"), PICTURE)), (TextPart("no\nlog"), PICTURE)),
        (ToolError(content=PICTURE), (TextPart("ToolError"), PICTURE)),
        (ToolError("no", content={"code": 3}), 'no\n{"code":3}'),
        (ToolError(content={"code": 3}), '{"code":3}'),
        (ToolError("no", content=""), "no"),
        (ToolError("no"), "no"),
        (ToolError(content="x" * 200), "x" * 100 + "\n[cut: 100 of 200 characters left out]"),
    ],
)
def test_a_tool_error_may_have_parts(error: ToolError, content: object) -> None:
    """A screenshot of the page that failed says more than its message."""
    assert ToolOutcome(content, "error") == outcome_of_error(error, 100)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - a table of contents
    assert content == outcome_of_error(pickle.loads(pickle.dumps(error)), 100).content  # noqa: S301 - our own


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("as it is", "as it is"),
        ("", ""),
        (None, "null"),
        (True, "true"),
        ({"a": [1, 2.5, None]}, '{"a":[1,2.5,null]}'),
        (Query(text="x"), '{"text":"x","limit":10}'),
        (Booking(date(2026, 1, 2), [1]), '{"day":"2026-01-02","seats":[1]}'),
        ({"x": Opaque()}, '{"x":"<opaque>"}'),
        (b"caf\xc3\xa9", "café"),
        (b"", ""),
        (Colour.RED, "red"),
        ("half \ud800", "half ?"),
        ([], "[]"),
        (["a", TextPart("b")], '["a",{"type":"text","text":"b","extra":""}]'),
    ],
)
def test_a_result_is_text_or_compact_json(value: object, expected: str) -> None:
    """The model reads text; what is no text must become some, and stay encodable."""
    outcome = returning(value)

    assert outcome == ToolOutcome(expected, "ok")
    assert type(outcome.content) is str


def test_a_result_that_is_no_json_is_shown() -> None:
    """The tool has run: its call must be answered, and not as an error."""
    circle: list[object] = []
    circle.append(circle)

    assert returning(circle) == ToolOutcome("[[...]]", "ok")
    assert returning([Unspeakable(), "\ud800"]) == ToolOutcome("<list>", "ok")


def test_parts_stay_parts() -> None:
    """A tool may show the model an image."""
    image, file = MediaPart("image/png", Inline(b"hi")), MediaPart("text/plain", Inline(b"hi"))

    assert returning(image).content == (image,)
    assert returning([TextPart("see"), image]).content == (TextPart("see"), image)
    assert returning((file,)).content == (file,)


def test_bytes_are_the_media_that_they_are() -> None:
    """As in a prompt; their repr would tell the model nothing, at the price of thousands of tokens.

    What no bytes tell is left out before a model reads it, with a warning.
    """
    image, unknown = b"\x89PNG\r\n\x1a\n", b"\x00\xff"

    assert returning(image).content == (MediaPart("image/png", Inline(image)),)
    assert returning(unknown).content == (MediaPart("application/octet-stream", Inline(unknown)),)


def test_a_long_result_is_cut_with_a_marker() -> None:
    """One result must not fill the window; the model must know that it saw a part."""
    image = MediaPart("image/png", Inline(b"hi"))

    assert returning("x" * 9, limit=9).content == "x" * 9
    assert returning("x" * 10, limit=9).content == (
        "x" * 9 + "\n[cut: 1 of 10 characters left out]"
    )
    assert returning([TextPart("abc"), image, TextPart("defg")], limit=5).content == (
        TextPart("abc"),
        image,
        TextPart("de\n[cut: 2 of 4 characters left out]"),
    )
    assert returning([TextPart("abcd"), TextPart("ef")], limit=3).content == (
        TextPart("abc\n[cut: 1 of 4 characters left out]"),
        TextPart("\n[cut: 2 of 2 characters left out]"),
    )


def test_a_call_that_may_have_happened_is_told_as_such() -> None:
    """The model must neither take it for done nor simply try again."""
    outcome = unknown_outcome("pay")

    assert outcome.status == "unknown"
    assert "'pay'" in str(outcome.content)
    assert "is not known" in str(outcome.content)
    assert "Check before" in str(outcome.content)


def refused(arguments: str) -> str:
    adapter: TypeAdapter[object] = TypeAdapter(Query)
    with pytest.raises(ValidationError) as caught:
        adapter.validate_json(arguments)
    return rejection("find", arguments, caught.value)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("{}", "text: Field required"),
        ('{"text": 3}', "text: Input should be a valid string, found 3"),
        ("[1]", """expected one JSON object, such as {"name": "value"}, found '[1]'"""),
        ('{"text": ', "not valid JSON (EOF while parsing a value at line 1 column 9)"),
        ('"\ud800"', "half of a surrogate pair is no Unicode text"),
        ("[" + "x" * 1_000, " … "),
    ],
)
def test_a_refusal_tells_what_is_wrong_and_what_to_do(arguments: str, expected: str) -> None:
    """It is the model's only way to do better."""
    told = refused(arguments)

    assert told.startswith("Invalid arguments for tool 'find': ")
    assert expected in told
    assert told.endswith(". Correct the arguments and call the tool again.")


def test_findings_are_joined_up_to_a_number() -> None:
    """A model that writes nonsense at length must not get it back at length."""
    assert join_issues([("a.b", "is wrong"), ("", "is odd")]) == "a.b: is wrong; is odd"
    assert join_issues([("a", "x" * 1_000)] * 12).endswith("; and 2 more")
    assert len(refused(json.dumps({"text": ["y" * 50_000]}))) < 4_000
