"""Partial JSON: no prefix is a surprise, and reading it stays cheap."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphloop.parts.objects import PartialObjects, partial

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
documents = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(document=documents, ascii_only=st.booleans(), indent=st.none() | st.just(1))
@example(document={"a": "\U0001f600\\"}, ascii_only=True, indent=None)
@example(document=[1.5e-300, -0.0, True, None], ascii_only=True, indent=None)
def test_no_prefix_of_a_document_raises_and_the_whole_is_itself(
    document: object, ascii_only: bool, indent: int | None
) -> None:
    """A stream may be cut anywhere: in an escape, a number, a word."""
    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent)

    for end in range(len(text)):
        partial(text[:end])

    assert json.loads(text) == partial(text)


@given(st.text(st.characters(), max_size=12))
@example("\ud800")
@example("[" * 300)
@example("NaN")
def test_no_text_at_all_raises(text: str) -> None:
    """A model may write prose where JSON was wanted; it is still shown as it comes."""
    partial(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        (" ", None),
        ("-", None),
        ("tru", None),
        ("prose", None),
        ("[NaN", None),
        ("[" * 300, None),
        ('{"a', {}),
        ('{"a": ', {}),
        ('{"a": tru', {}),
        ('{"a": "b', {"a": "b"}),
        ('{"a": "b\\', {"a": "b"}),
        ('{"a": "b\\u00', {"a": "b"}),
        ('["\\ud83d', [""]),
        ('["\\ud83d\\ude00', ["\U0001f600"]),
        ("[1, 12", [1, 12]),
        ("[1, -", [1]),
        ("[[1], [2", [[1], [2]]),
        ('\n{"a": [1, {"b": "c', {"a": [1, {"b": "c"}]}),
        ('["\ud800"]', ["?"]),
    ],
)
def test_a_prefix_has_the_value_of_what_is_certain(text: str, value: object) -> None:
    """Users see strings grow and never see a key without a value."""
    assert value == partial(text)


def test_a_value_is_told_once() -> None:
    """An interface draws at each; white space and keys are no news."""
    partials = PartialObjects()

    told = [partials.feed(piece) for piece in '{"a": "b", "c']

    assert [{}, {"a": ""}, {"a": "b"}] == [one for one in told if one is not None]
    assert partials.finish() is None


@given(document=documents, cuts=st.lists(st.integers(1, 9), max_size=30))
def test_the_last_value_told_is_the_whole_one(document: object, cuts: list[int]) -> None:
    """However the stream was cut, and whatever was not read on the way."""
    text = json.dumps(document)
    partials = PartialObjects()
    told: list[object] = []
    at = 0

    for size in [*cuts, len(text)]:
        told.append(partials.feed(text[at : at + size]))
        at += size
    told.append(partials.finish())

    told = [one for one in told if one is not None]
    assert [document] == told[-1:] or (document is None and not told)
    assert all(first != second for first, second in pairwise(told))


def test_reading_costs_no_more_than_some_times_the_length() -> None:
    """Reading all of it at every character would take minutes for a long answer."""
    partials = PartialObjects()
    text = "x" * 50_000

    told = [partials.feed(piece) for piece in f'"{text}"'] + [partials.finish()]

    lengths = [len(str(value)) for value in told if value is not None]
    assert len(text) == lengths[-1]
    assert 100 < len(lengths)
    assert sum(lengths) <= 70 * len(text)
