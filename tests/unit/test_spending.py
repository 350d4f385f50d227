"""spending: sums that add up, shares that never come to more than there is."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.errors import ConfigError
from graphloop.spending import (
    Budget,
    Spent,
    budget,
    is_number,
    positive_number,
    stricter,
    whole_number,
)
from graphloop.values import Usage
from tests.strategies import wrong

whole = st.integers(0, 10**6)
some = st.floats(0, 1e6)
budgets = st.builds(
    Budget,
    st.none() | whole,
    st.none() | some,
    st.none() | some,
    st.none() | whole,
    st.none() | whole,
)
spents = st.builds(Spent, whole, whole, st.builds(Usage, whole, whole), whole, whole, whole, whole)


def limits(one: Budget) -> tuple[float | None, ...]:
    """Return the limits in their order."""
    return (one.tokens, one.usd, one.seconds, one.tool_calls, one.agent_calls)


def used(one: Spent) -> tuple[float, ...]:
    """Return what counts against the limits, in their order."""
    return (
        one.usage.total_tokens,
        one.cost_usd,
        one.seconds,
        one.tool_calls,
        one.agent_calls,
    )


@given(one=spents, other=spents, third=spents)
def test_what_was_spent_adds_up_in_any_order(one: Spent, other: Spent, third: Spent) -> None:
    """Children end in any order, and the bill is the same."""
    assert one + other == other + one
    assert (one + other) + third == one + (other + third)
    assert one + Spent() == one


@given(limit=budgets, spent=spents)
def test_a_limit_trips_exactly_when_nothing_is_left(limit: Budget, spent: Spent) -> None:
    """Two answers to one question would let a run go on with nothing, or stop with something.

    Calls are not measured but counted: a run without any left may still answer.
    """
    names = ("budget.tokens", "budget.usd", "budget.seconds")

    left = limits(limit.remaining(spent))

    assert limit.tripped(spent) == tuple(
        name for name, rest in zip(names, left[:3], strict=True) if rest == 0
    )
    assert all(rest is None or rest >= 0 for rest in left)


@given(limit=budgets, spent=spents)
def test_nothing_is_left_of_a_limit_but_what_was_not_spent(limit: Budget, spent: Spent) -> None:
    """And where there is no limit, there is none afterwards."""
    before, after = limits(limit), limits(limit.remaining(spent))

    for most, rest, gone in zip(before, after, used(spent), strict=True):
        assert (most is None) == (rest is None)
        assert most is None or rest == max(0, most - gone)


@given(limit=budgets, parts=st.integers(1, 50))
def test_shares_come_to_the_whole_and_never_to_more(limit: Budget, parts: int) -> None:
    """What is counted to the last one; what is measured to the last digit but one."""
    shares = tuple(limit.share(parts, at) for at in range(parts))

    assert parts == len(shares)
    for most, *each in zip(limits(limit), *map(limits, shares), strict=True):
        given = [one for one in each if one is not None]
        if most is None:
            assert [] == given
        else:
            assert parts == len(given)
            assert all(isinstance(one, type(most)) for one in given)
            whole = isinstance(most, int)
            assert sum(given) == (most if whole else pytest.approx(most, rel=1e-12))
            assert given == sorted(given, reverse=True)
            assert max(given) - min(given) <= whole


def test_what_cannot_be_parted_goes_to_the_first() -> None:
    """Three calls for five agents are three agents with one each, not five with none."""
    shares = [Budget(tokens=7, tool_calls=3).share(5, at) for at in range(5)]

    assert [1, 1, 1, 0, 0] == [one.tool_calls for one in shares]
    assert [2, 2, 1, 1, 1] == [one.tokens for one in shares]


@given(limit=budgets, other=budgets)
def test_what_is_set_aside_is_gone(limit: Budget, other: Budget) -> None:
    """A limit that the other lacks stays, and none falls below nothing."""
    for most, aside, rest in zip(
        limits(limit), limits(other), limits(limit.without(other)), strict=True
    ):
        if most is None or aside is None:
            assert rest == most
        else:
            assert rest == max(0, most - aside)


@given(one=budgets, other=budgets)
def test_the_stricter_of_two_budgets_is_stricter_in_everything(one: Budget, other: Budget) -> None:
    """A child has its own budget and its parent's, and may break neither."""
    both = limits(one.tightened(other))

    for first, second, least in zip(limits(one), limits(other), both, strict=True):
        assert least == min((x for x in (first, second) if x is not None), default=None)
    assert one.tightened(other) == other.tightened(one)
    assert one.tightened(one) == one


def test_a_budget_holds_what_it_was_given() -> None:
    """And has no limit where none was given."""
    assert Budget(1, 0.5, 2, 3, 4) == budget(
        tokens=1, usd=0.5, seconds=2, tool_calls=3, agent_calls=4
    )
    assert Budget() == budget()


@pytest.mark.parametrize("limit", [0, -1, nan, inf, "1", True])
@pytest.mark.parametrize("name", ["tokens", "usd", "seconds", "tool_calls", "agent_calls"])
def test_a_limit_that_allows_nothing_or_everything_is_refused(name: str, limit: object) -> None:
    """Zero never means "no limit"."""
    build: Callable[..., Budget] = wrong(budget)

    with pytest.raises(ConfigError, match=f"`budget.{name}`"):
        build(**{name: limit})


@pytest.mark.parametrize("value", [0, -1, True, False, 1.0, "1", None, float("inf")])
def test_what_is_no_bound_is_refused_by_name(value: object) -> None:
    """`True` is not 1, and 0 is not "no limit"."""
    with pytest.raises(ConfigError, match=r"`max_steps` .* at least 1"):
        whole_number("max_steps", value)


@pytest.mark.parametrize("value", [0, -0.5, True, "1", None, float("inf"), float("nan")])
def test_what_measures_nothing_is_refused_by_name(value: object) -> None:
    """A comparison with NaN never holds, and one with a string fails in the middle of a run."""
    with pytest.raises(ConfigError, match="`seconds` to be a finite number above 0"):
        positive_number("seconds", value)


@pytest.mark.parametrize(
    ("value", "number"),
    [(0, True), (-1.5, True), (True, False), (float("nan"), False), (float("-inf"), False)],
)
def test_only_finite_numbers_are_numbers(value: object, number: bool) -> None:
    """JSON has no other, and `True` is a word."""
    assert number == is_number(value)


def test_the_stricter_limit_is_the_only_one_or_the_smaller() -> None:
    """None is no limit, and never the stricter."""
    assert (1, 1, 1) == (stricter(1, 2), stricter(None, 1), stricter(1, None))
    assert stricter(None, None) is None
