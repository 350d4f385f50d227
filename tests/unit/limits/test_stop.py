"""Stop conditions: from their number on, and by name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graphloop.errors import ConfigError
from graphloop.limits import stop
from graphloop.limits.stop import StopCondition, StopInfo
from graphloop.nodes.append import Append
from graphloop.run import Spent, evolve
from graphloop.values import Usage
from tests.strategies import call, fresh, replied, reply, wrong

STEP = Append().enter(replied(reply(call("read")))).run.record.steps[0]
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
def test_a_condition_holds_from_its_number_on(
    condition: StopCondition, holds: bool, name: str
) -> None:
    """`>=`, whatever the word "exceed" suggests; a condition that is skipped over still holds."""
    assert holds == condition.holds(INFO)
    assert name == condition.name
    assert isinstance(condition, StopCondition)


def test_only_the_latest_turn_counts_for_a_tool_call() -> None:
    """Otherwise no run could go on after the tool."""
    other = Append().enter(replied(reply(call("write")))).run.record.steps[0]

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
    ],
)
def test_an_impossible_condition_is_refused(
    condition: Callable[[object], StopCondition], number: object
) -> None:
    """Otherwise it would never hold, always hold, or fail after the tools have run."""
    with pytest.raises(ConfigError, match=r"`stop\.\w+`.* found"):
        condition(number)


YES, NO = stop.step_count_is(1), stop.step_count_is(9)


@pytest.mark.parametrize(
    ("condition", "holds", "name"),
    [
        (stop.any_of(YES, NO), True, "any_of(step_count_is, step_count_is)"),
        (stop.any_of(NO, NO), False, "any_of(step_count_is, step_count_is)"),
        (stop.all_of(YES, NO), False, "all_of(step_count_is, step_count_is)"),
        (stop.all_of(YES, YES), True, "all_of(step_count_is, step_count_is)"),
        (stop.not_(NO), True, "not_(step_count_is)"),
        (stop.not_(stop.any_of(NO, stop.not_(YES))), True, "not_(any_of(step_count_is, not_(…)))"),
    ],
)
def test_conditions_combine_and_nest(condition: StopCondition, holds: bool, name: str) -> None:
    """CONTRACT L20: any, all and not, to any depth."""
    assert holds == condition.holds(INFO)
    assert name.replace("not_(…)", "not_(step_count_is)") == condition.name


def test_tools_and_counted_limits_are_found_at_any_depth() -> None:
    """A misspelled tool in a condition would never stop a run."""
    dear, long, done = stop.cost_exceeds(2), stop.total_tokens_exceed(9), stop.has_tool_call("end")

    nested = [
        stop.any_of(done, stop.all_of(NO, stop.not_(dear))),
        stop.not_(stop.any_of(long, YES)),
    ]

    assert ("end",) == stop.tools_in(nested)
    assert (
        (True, "stop.cost_exceeds(2)"),
        (False, "stop.total_tokens_exceed(9)"),
    ) == stop.counted_in(nested)


@pytest.mark.parametrize(
    "make",
    [
        stop.any_of,
        stop.all_of,
        lambda: stop.not_(wrong("x")),
        lambda: stop.any_of(YES, wrong(len)),
        lambda: stop.all_of(wrong(stop.StepCountIs)),
    ],
)
def test_a_combination_of_nothing_or_of_no_conditions_is_refused(
    make: Callable[[], object],
) -> None:
    """Of no conditions, one could never hold and the other always would."""
    with pytest.raises(ConfigError, match="expected conditions"):
        make()


def test_a_condition_is_told_the_run_s_own_seconds_of_work() -> None:
    """Waiting for people does not count, so a run is not stopped for who was asked slowly."""
    run = evolve(fresh(), at=1_000.0, spent=Spent(seconds=3.0))

    assert StopInfo(run.record.steps, run.spent, 3.0) == StopInfo.of(run)
