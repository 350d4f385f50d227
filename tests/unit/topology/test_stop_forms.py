"""Stop conditions."""

from __future__ import annotations

import pytest

from graphloop import stop
from graphloop.topology.forms import Unwritable
from graphloop.topology.stop_forms import ConditionForm
from tests.topology_forms import read, refusal, written


def test_conditions_of_all_kinds_read_back_as_they_are_written() -> None:
    """Any of them, nested."""
    condition = stop.any_of(
        stop.all_of(stop.step_count_is(5), stop.not_(stop.has_tool_call("done"))),
        stop.total_tokens_exceed(9),
        stop.cost_exceeds(0.5),
        stop.duration_exceeds(60),
    )

    assert condition == read(ConditionForm(), str(written(ConditionForm(), condition)))


def test_what_is_no_condition_is_refused() -> None:
    """With the nearest name; and one of one's own, or renamed, cannot be written."""
    assert "Did you mean 'step_count_is'?" in refusal(ConditionForm(), "{step_count: 5}")
    with pytest.raises(Unwritable):
        written(ConditionForm(), stop.StepCountIs(5, "five"))
