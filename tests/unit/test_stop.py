"""Stop conditions: from their number on, and by name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graphloop import stop
from graphloop.errors import ConfigError
from graphloop.nodes.append import Append
from graphloop.run import Spent
from graphloop.stop import Condition, StopInfo
from graphloop.values import Usage
from tests.strategies import call, replied, reply, wrong

STEP = Append().enter(replied(reply(call("read")))).run.steps[0]
INFO = StopInfo((STEP, STEP), Spent(2, 0, Usage(60, 40), 0.5), 10.0)


@pytest.mark.parametrize(
    ("condition", "holds", "name"),
    [
        (stop.step_count_is(3), False, "step_count_is"),
        (stop.step_count_is(2), True, "step_count_is"),
        (stop.step_count_is(1), True, "step_count_is"),
        (stop.has_tool_call("read"), True, "has_tool_call"),
        (stop.has_tool_call("write"), False, "has_tool_call"),
        (stop.total_tokens_exceed(101), False, "total_tokens_exceed"),
        (stop.total_tokens_exceed(100), True, "total_tokens_exceed"),
        (stop.cost_exceeds(0.6), False, "cost_exceeds"),
        (stop.cost_exceeds(0.5), True, "cost_exceeds"),
        (stop.duration_exceeds(10.1), False, "duration_exceeds"),
        (stop.duration_exceeds(10), True, "duration_exceeds"),
    ],
)
def test_a_condition_holds_from_its_number_on(condition: Condition, holds: bool, name: str) -> None:
    """`>=`, whatever the word "exceed" suggests; a condition that is skipped over still holds."""
    assert holds == condition.holds(INFO)
    assert name == condition.name
    assert isinstance(condition, Condition)


def test_only_the_latest_turn_counts_for_a_tool_call() -> None:
    """Otherwise no run could go on after the tool."""
    other = Append().enter(replied(reply(call("write")))).run.steps[0]

    assert not stop.has_tool_call("read").holds(StopInfo((STEP, other), Spent(), 0.0))


@pytest.mark.parametrize(
    ("condition", "number"),
    [
        (stop.step_count_is, "3"),
        (stop.step_count_is, 0),
        (stop.step_count_is, -1),
        (stop.total_tokens_exceed, True),
        (stop.total_tokens_exceed, 0),
        (stop.cost_exceeds, "1"),
        (stop.cost_exceeds, float("inf")),
        (stop.duration_exceeds, float("nan")),
        (stop.duration_exceeds, 0),
        (stop.has_tool_call, 5),
    ],
)
def test_a_condition_that_cannot_work_is_refused_where_it_is_made(
    condition: Callable[[object], Condition], number: object
) -> None:
    """Otherwise it would never hold, always hold, or fail after the tools have run."""
    with pytest.raises(ConfigError, match=f"`stop.{wrong(condition).__name__}` is .* found"):
        condition(number)
