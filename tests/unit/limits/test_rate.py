"""A fleet never sends more than its rate and a burst, however its processes ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphloop.errors import ConfigError
from graphloop.limits.rate import (
    Demand,
    Rate,
    charged,
    check_rates,
    demands,
    request_costs,
    reserved,
    those_for,
    token_costs,
)

AHEAD_S = 0.25
SLACK_S = 1e-6  # Unix seconds as floats are exact to a microsecond

Asked = tuple[float, int, float]
"""How long after the last reservation, for how many requests, and the cost of each in tokens."""

COSTS = st.sampled_from([0.01, 0.2, 1.0, 3.0])
ASKED = st.lists(st.tuples(st.floats(0, 2), st.integers(0, 6), COSTS), min_size=1, max_size=25)


def slots_of(
    asked: Sequence[Asked], bursts: Mapping[str, float], every: float
) -> list[tuple[float, Mapping[str, float]]]:
    """Return the slots that processes get from one row of meters: the time of each, and its costs.

    A process that gets fewer slots than it wants asks for the others with its next call.
    """
    meters: dict[str, float] = {}
    slots: list[tuple[float, Mapping[str, float]]] = []
    waiting: list[float] = []
    now = 1_000.0
    for after, number, tokens in asked:
        now += after
        waiting += [tokens] * number
        if not waiting:
            continue
        costs = {"requests": (every,) * len(waiting), "tokens": tuple(waiting)}
        wanted = [Demand(name, costs[name], burst_s) for name, burst_s in bursts.items()]
        changed, found = reserved(meters, now, wanted, AHEAD_S)
        meters.update(changed)
        assert all(0 <= wait_s <= AHEAD_S for wait_s in found.waits_s)
        assert (found.next_s > 0) is (len(found.waits_s) < len(waiting))
        slots += [
            (now + wait_s, {"requests": every, "tokens": waiting.pop(0)})
            for wait_s in found.waits_s
        ]
    return slots


@given(asked=ASKED, burst_s=st.sampled_from([0.05, 0.5, 2.0]), every=st.sampled_from([0.02, 0.4]))
@example(asked=[(0.0, 6, 3.0), (0.0, 1, 0.01)], burst_s=0.5, every=0.02)
@example(asked=[(0.0, 1, 3.0), (2.7, 6, 0.01)], burst_s=0.05, every=0.02)
def test_no_window_has_more_than_the_rate_and_a_burst(
    asked: list[Asked], burst_s: float, every: float
) -> None:
    """Of requests and of tokens, whatever they cost and however long they wait for each other."""
    slots = slots_of(asked, {"requests": burst_s, "tokens": 2 * burst_s}, every)

    for name, most_s in (("requests", burst_s), ("tokens", 2 * burst_s)):
        spent = [(at, costs[name]) for at, costs in slots]
        burst = max([most_s, *[cost for _, cost in spent]])
        for start, (first, _) in enumerate(spent):
            total = 0.0
            for at, cost in spent[start:]:
                total += cost
                assert total <= at - first + burst + SLACK_S


@given(asked=ASKED, every=st.sampled_from([0.02, 0.4]))
def test_slots_come_in_the_order_of_the_line(asked: list[Asked], every: float) -> None:
    """So that no call waits for ever behind others."""
    slots = slots_of(asked, {"requests": every}, every)

    assert all(one <= other + SLACK_S for (one, _), (other, _) in pairwise(slots))


@given(number=st.integers(1, 200), every=st.floats(0.001, 0.2))
def test_a_line_that_never_rests_gets_all_of_its_rate(number: int, every: float) -> None:
    """A limiter that is safe because it sends little would be safe and useless."""
    asked = [(0.2, number if at == 0 else 0, 0.0) for at in range(int(number * every / 0.2) + 2)]

    slots = slots_of(asked, {"requests": every}, every)

    assert len(slots) == number


def test_tokens_that_were_not_used_are_given_back() -> None:
    """A meter ends where the tokens that were used put it, and not in the past."""
    (demand,) = demands({"m": Rate(tokens=60)}, [100.0])
    meters, _ = reserved({}, 1_000.0, [demand], AHEAD_S)
    costs = token_costs({"m": Rate(tokens=60)}, 40 - 100)

    settled, _ = charged(meters, 1_000.0, costs, 0.0)

    assert settled == {"m tokens": pytest.approx(1_040.0)}
    assert charged(settled, 2_000.0, costs, 0.0)[0] == {"m tokens": 2_000.0}


def test_a_refusal_closes_all_meters_until_its_time() -> None:
    """Told twice, by two processes, it counts once but for the requests."""
    limits = {"m": Rate(requests=60, tokens=600, burst_s=2.0)}
    meters, _ = charged({}, 1_000.0, request_costs(limits), 30.0 + 2.0)

    again, _ = charged(meters, 1_000.0, request_costs(limits), 30.0 + 2.0)
    _, found = reserved(again, 1_000.0, demands(limits, [1.0]), AHEAD_S)

    assert meters == {"m requests": 1_032.0, "m tokens": 1_032.0}
    assert again == {"m requests": 1_033.0, "m tokens": 1_032.0}
    assert found.waits_s == ()
    assert 30.0 <= found.next_s + AHEAD_S <= 33.0


def test_a_pattern_covers_the_labels_that_it_matches() -> None:
    """All patterns that match hold, each on its own meters."""
    limits = {"*": Rate(tokens=9), "openai:*": Rate(requests=1), "openai:gpt-5": Rate(requests=2)}

    assert {*those_for(limits, "openai:gpt-5")} == {*limits}
    assert {*those_for(limits, "anthropic:x")} == {"*"}
    assert {demand.meter for demand in demands(those_for(limits, "openai:o"), [1.0])} == {
        "* tokens",
        "openai:* requests",
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "`requests`, `tokens` or both"),
        ({"requests": 0}, "Rate.requests: expected a positive number, found 0"),
        ({"requests": True}, "Rate.requests: .* found True"),
        ({"tokens": float("inf")}, "Rate.tokens: .* found inf"),
        ({"requests": 1, "per_s": None}, "Rate.per_s: .* found None"),
        ({"requests": 1, "burst_s": -1}, "Rate.burst_s: .* found -1"),
    ],
)
def test_a_rate_that_limits_nothing_is_refused(given: dict[str, Any], message: str) -> None:
    """When it is made, not when the first request waits for ever."""
    with pytest.raises(ConfigError, match=message):
        Rate(**given)


@pytest.mark.parametrize("limits", [[Rate(requests=1)], {"": Rate(requests=1)}, {"openai:*": 50}])
def test_limits_are_patterns_with_rates(limits: object) -> None:
    """A number alone does not tell whether it counts requests or tokens."""
    with pytest.raises(ConfigError, match=r"`limits`: .*Rate\(requests=50\)"):
        check_rates(limits)
