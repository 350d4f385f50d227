"""spending: sums that add up, shares that never come to more than there is."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.errors import ConfigError
from graphloop.spending import Budget, Spent, budget
from graphloop.values import Usage
from tests.strategies import wrong

whole = st.integers(0, 10**6)
some = st.floats(0, 1e6)
budgets = st.builds(
    Budget, st.none() | whole, st.none() | some, st.none() | some, st.none() | whole
)
spents = st.builds(Spent, whole, whole, st.builds(Usage, whole, whole), whole, whole, whole)


def limits(one: Budget) -> tuple[float | None, ...]:
    """Return the limits in their order."""
    return (one.tokens, one.usd, one.seconds, one.tool_calls)


def used(one: Spent) -> tuple[float, ...]:
    """Return what counts against the limits, in their order."""
    return (one.usage.total_tokens, one.cost_usd, one.seconds, one.tool_calls)


@given(one=spents, other=spents, third=spents)
def test_what_was_spent_adds_up_in_any_order(one: Spent, other: Spent, third: Spent) -> None:
    """Children end in any order, and the bill is the same."""
    assert one + other == other + one
    assert (one + other) + third == one + (other + third)
    assert one + Spent() == one


@given(limit=budgets, spent=spents)
def test_a_limit_trips_exactly_when_nothing_is_left(limit: Budget, spent: Spent) -> None:
    """Two answers to one question would let a run go on with nothing, or stop with something."""
    names = ("budget.tokens", "budget.usd", "budget.seconds", "budget.tool_calls")

    left = limits(limit.left(spent))

    assert limit.tripped(spent) == tuple(
        name for name, rest in zip(names, left, strict=True) if rest == 0
    )
    assert all(rest is None or rest >= 0 for rest in left)


@given(limit=budgets, spent=spents)
def test_nothing_is_left_of_a_limit_but_what_was_not_spent(limit: Budget, spent: Spent) -> None:
    """And where there is no limit, there is none afterwards."""
    before, after = limits(limit), limits(limit.left(spent))

    for most, rest, gone in zip(before, after, used(spent), strict=True):
        assert (most is None) == (rest is None)
        assert most is None or rest == max(0, most - gone)


@given(limit=budgets, parts=st.integers(1, 50))
def test_shares_never_come_to_more_than_the_whole(limit: Budget, parts: int) -> None:
    """What is counted is rounded down; what is measured is exact to the last digit but one."""
    for most, part in zip(limits(limit), limits(limit.share(parts)), strict=True):
        assert (most is None) == (part is None)
        if most is not None and part is not None:
            assert part * parts <= most * (1 + 1e-12)
            assert isinstance(part, type(most))


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
    assert Budget(1, 0.5, 2, 3) == budget(tokens=1, usd=0.5, seconds=2, tool_calls=3)
    assert Budget() == budget()


@pytest.mark.parametrize("limit", [0, -1, nan, inf, "1", True])
@pytest.mark.parametrize("name", ["tokens", "usd", "seconds", "tool_calls"])
def test_a_limit_that_allows_nothing_or_everything_is_refused(name: str, limit: object) -> None:
    """Zero never means "no limit"."""
    build: Callable[..., Budget] = wrong(budget)

    with pytest.raises(ConfigError, match=f"`budget.{name}`"):
        build(**{name: limit})


@pytest.mark.parametrize("name", ["tokens", "tool_calls"])
def test_what_is_counted_is_whole(name: str) -> None:
    """There is no half of a call."""
    build: Callable[..., Budget] = wrong(budget)

    with pytest.raises(ConfigError, match="whole number"):
        build(**{name: 1.5})
