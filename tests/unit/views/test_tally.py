"""Tallies: numbers that are added up before they are told."""

from __future__ import annotations

from graphloop.views.tally import Tally, sum_of


def test_tallies_are_added_run_by_run() -> None:
    """What two nodes did in one run is one number."""
    both = Tally((2, 1), 0.5, 10, 0.25) + Tally((1,), 0.25, 5)

    assert Tally((3, 1), 0.75, 15, 0.25) == both
    assert both == sum_of([both])
    assert Tally() == sum_of([])


def test_times_are_taken_away_and_money_is_not() -> None:
    """Who moves inside a box has not come to it again, but has spent there."""
    assert Tally((1, 1), 2.0, 3, 4.0) == Tally((3, 1), 2.0, 3, 4.0).less(Tally((2,)))


def test_a_few_runs_are_told_apart_and_nothing_is_told_of_nothing() -> None:
    """A reader sees at once what there was."""
    assert "3x (2+1)" == Tally((2, 1)).count
    assert "5x" == Tally((1,) * 5).count
    assert "5 ms, 1,200 tokens, $0.2500" == Tally((1,), 0.005, 1200, 0.25).spent
    assert "1.5 s" == Tally((1,), 1.5).spent
    assert "3 min" == Tally((1,), 180.0).spent
    assert "" == Tally((1,), 0.0001).spent
