"""Patterns of JSON Schemas are JavaScript's, and most servers' schemas rely on it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import SchemaError

from graphloop.tools.patterns import is_pattern, matches


@pytest.mark.parametrize(
    ("pattern", "fits", "fails"),
    [
        ("^a+$", "aa", "ab"),
        ("b", "abc", "ac"),
        (r"^\p{L}+$", "Ærø", "a1"),
        (r"^[\p{Lu}\p{N}]", "É", "é"),
        (r"^(?<year>\d{4})$", "2026", "26"),
        (r"^(?=a)a", "a", "b"),
    ],
)
def test_a_pattern_is_searched_for_in_a_text(pattern: str, fits: str, fails: str) -> None:
    """Whichever engine knows it."""
    assert is_pattern(pattern)
    assert matches(pattern, fits)
    assert not matches(pattern, fails)


@pytest.mark.parametrize("pattern", ["(", r"\p{Nothing}", r"(?=a)\p{L}", "a{2,1}"])
def test_what_no_engine_knows_is_no_pattern(pattern: str) -> None:
    """A schema with it is refused when its tool is defined."""
    assert not is_pattern(pattern)
    with pytest.raises(SchemaError):
        matches(pattern, "a")


def test_what_is_no_text_is_for_others_to_refuse() -> None:
    """A format is a rule for texts only."""
    assert is_pattern(3)


@given(st.text(), st.text())
def test_where_python_knows_a_pattern_python_decides(pattern: str, text: str) -> None:
    """The second engine changes nothing for schemas that worked without it."""
    try:
        expected = re.search(pattern, text) is not None
    except re.error:
        return

    assert is_pattern(pattern)
    assert matches(pattern, text) == expected
