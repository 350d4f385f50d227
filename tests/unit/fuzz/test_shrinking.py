"""Shrinking lists of choices."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.fuzz.shrinking import TRIALS_MAX, shrunk

Values = tuple[int, ...]


CASES: list[tuple[Callable[[Values], bool], Values]] = [
    (lambda one: True, ()),
    (lambda one: max(one, default=0) >= 10, (10,)),
    (lambda one: 7 in one, (7,)),
    (lambda one: one[2:3] > (4,), (0, 0, 5)),
    (lambda one: 3 in one and 9 in one, (3, 9)),
    # The first number says how many pairs come before the one that matters.
    (lambda one: one[:1] != () and one[1 + 2 * one[0] : 2 + 2 * one[0]] == (9,), (0, 9)),
]


@pytest.mark.parametrize(("condition", "simplest"), CASES)
def test_the_simplest_list_is_found(condition: Callable[[Values], bool], simplest: Values) -> None:
    """Short, and of small numbers."""
    start = (4, 9, 7, 0, 3, 9, 200, 7, 1, 9, 0, 9, 3, 1)

    found = shrunk(start, lambda one: one if condition(one) else None)

    assert simplest == found


@given(values=st.lists(st.integers(0, 255), max_size=60).map(tuple))
def test_what_is_returned_fails_and_is_no_longer(values: Values) -> None:
    """And the search ends, whatever it is asked."""
    trials = 0

    def fails(one: Values) -> Values | None:
        nonlocal trials
        trials += 1
        return one if sum(one) % 3 == sum(values) % 3 else None

    found = shrunk(values, fails)

    assert sum(values) % 3 == sum(found) % 3
    assert (len(found), found) <= (len(values), values)
    assert trials <= TRIALS_MAX


def test_what_was_not_taken_is_left_out() -> None:
    """A world that asks for three choices needs no fourth."""
    assert (0, 0, 9) == shrunk((5, 5, 9, 1, 1), lambda one: one[:3] if one[2:3] == (9,) else None)
