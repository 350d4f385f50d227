"""limit: so many times, counted in the run, and no more."""

from __future__ import annotations

import pytest

from graphloop.contract import Cap
from graphloop.errors import ConfigError
from graphloop.events import Cancelled
from graphloop.node_protocol import Leave, Wait
from graphloop.nodes.limit import Limit
from graphloop.nodes.model_call import ModelCall
from graphloop.nodes.retrying import Retrying
from graphloop.outcomes import Go, Outcome, Stop
from graphloop.run import Ending, EndReason, Run, evolve
from graphloop.spending import Budget, Spent
from graphloop.values import Usage
from tests.runs import changed
from tests.strategies import SETUP, fresh, wrong


def passed(node: Limit, run: Run[None]) -> tuple[Run[None], type[Outcome]]:
    """Return how a limit is left."""
    reaction = node.enter(run)
    assert isinstance(reaction, Leave)
    return reaction.run, type(reaction.outcome)


def test_it_goes_on_so_many_times_and_then_stops_for_good() -> None:
    """And says that it was what stopped the run."""
    node, run, outcomes = Limit(2), fresh(), list[type[Outcome]]()
    for _ in range(4):
        run, outcome = passed(node, evolve(run, ending=Ending(EndReason.COMPLETED)))
        outcomes.append(outcome)
        assert (outcome is Go) == (run.ending is None)

    assert [Go, Go, Stop, Stop] == outcomes
    assert Ending(EndReason.STOP_CONDITION, ("limit",)) == run.ending


def test_two_limits_count_apart() -> None:
    """By their names."""
    run, _ = passed(Limit(1, "a"), fresh())

    assert Go is passed(Limit(1, "b"), run)[1]
    assert Stop is passed(Limit(1, "a"), run)[1]


def test_no_other_node_sets_its_count_back() -> None:
    """A wrapper counts its attempts in the run as well, and begins anew at each visit."""
    limit, retrying = Limit(1, "retry:writer"), Retrying[None](ModelCall("writer"), 2)
    run, _ = passed(limit, fresh())

    entered = retrying.enter(run)

    assert isinstance(entered, Wait)
    assert Stop is passed(limit, entered.run)[1]


def test_a_cycle_of_one_s_own_heeds_the_budget_and_a_stop() -> None:
    """No other node may stand in it."""
    setup = evolve(SETUP, budget=Budget(tokens=10))
    spent = evolve(fresh(), setup=setup, spent=Spent(usage=Usage(10)))

    assert Ending(EndReason.BUDGET, ("budget.tokens",)) == passed(Limit(2), spent)[0].ending
    stopping = passed(Limit(2), changed(fresh(), stopping="enough"))
    assert (Stop, Ending(EndReason.ABORTED, ("enough",))) == (stopping[1], stopping[0].ending)
    cut = evolve(fresh(), ending=Ending(EndReason.TIMEOUT, ("step_timeout_s",)))
    assert (cut, Stop) == passed(Limit(2), cut)
    unsaid = passed(Limit(2), changed(fresh(), stopping=""))[0].ending
    assert Ending(EndReason.ABORTED, ("aborted",)) == unsaid


@pytest.mark.parametrize("times", [0, -1, True, 1.5, None])
def test_a_bound_that_bounds_nothing_is_refused(times: object) -> None:
    """0 never means "no limit"."""
    with pytest.raises(ConfigError, match="times of limit"):
        Limit(wrong(times))


def test_its_promise_is_its_bound() -> None:
    """The proofs find the cycle's bound here."""
    assert {Go: Cap(3, instead=Stop)} == Limit(3).contract.caps
    assert Limit(3).contract.keeps(Go)
    assert not Limit(3).contract.keeps(Stop)


def test_it_waits_for_nothing() -> None:
    """So nothing can be told to it."""
    with pytest.raises(AssertionError, match="waits for nothing"):
        Limit(1).on(fresh(), Cancelled(1.0), None)
