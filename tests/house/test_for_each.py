"""A test for each of many values runs them all, and names the one that fails."""

from __future__ import annotations

import inspect

import pytest

from tests.for_each import for_each


def test_each_value_is_tried_and_the_one_that_fails_is_named() -> None:
    """A loop that says nothing of the value would be worth less than what it replaces."""
    seen: list[tuple[str, int]] = []

    @for_each("number", (1, 2, 3))
    @for_each("word", "ab")
    def holds(word: str, number: int, *, most: int) -> None:
        seen.append((word, number))
        assert number <= most

    holds(most=3)
    with pytest.raises(AssertionError) as failed:
        holds(most=1)

    assert [(word, number) for number in (1, 2, 3) for word in "ab"] == seen[:6]
    assert ["word: 'a'", "number: 2"] == failed.value.__notes__
    assert ["most"] == [*inspect.signature(holds).parameters]
