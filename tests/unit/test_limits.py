"""Limits: numbers that bound something."""

from __future__ import annotations

import pytest

from graphloop.errors import ConfigError
from graphloop.spending import is_number, positive_number, stricter, whole_number


@pytest.mark.parametrize("value", [0, -1, True, False, 1.0, "1", None, float("inf")])
def test_what_is_no_bound_is_refused_by_name(value: object) -> None:
    """`True` is not 1, and 0 is not "no limit"."""
    with pytest.raises(ConfigError, match="`max_steps` is a whole number of at least 1"):
        whole_number("max_steps", value)


def test_a_bound_is_returned_as_it_is() -> None:
    """With its own least value."""
    assert (1, 0) == (whole_number("n", 1), whole_number("n", 0, least=0))


@pytest.mark.parametrize("value", [0, -0.5, True, "1", None, float("inf"), float("nan")])
def test_what_measures_nothing_is_refused_by_name(value: object) -> None:
    """A comparison with NaN never holds, and one with a string fails in the middle of a run."""
    with pytest.raises(ConfigError, match="`seconds` is a finite number above 0"):
        positive_number("seconds", value)


def test_a_measure_is_returned_as_it_is() -> None:
    """Whole or not."""
    assert (1, 0.5) == (positive_number("n", 1), positive_number("n", 0.5))


@pytest.mark.parametrize(
    ("value", "number"),
    [(0, True), (-1.5, True), (True, False), (float("nan"), False), (float("-inf"), False)],
)
def test_only_finite_numbers_are_numbers(value: object, number: bool) -> None:
    """JSON has no other, and `True` is a word."""
    assert number == is_number(value)


def test_the_stricter_of_two_limits_is_the_one_there_is_or_the_smaller() -> None:
    """None is no limit, and never the stricter."""
    assert (1, 1, 1) == (stricter(1, 2), stricter(None, 1), stricter(1, None))
    assert stricter(None, None) is None
