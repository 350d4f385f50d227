"""Run: a value whose every change is a new value."""

from __future__ import annotations

from graphloop.run import Ending, EndReason, evolve
from tests.strategies import fresh


def test_evolving_a_run_leaves_the_old_one_as_it_was() -> None:
    """Forks and replays share the past."""
    run = fresh()

    later = evolve(run, node="END", ending=Ending(EndReason.COMPLETED))

    assert ("node", None) == (run.node, run.ending)
    assert later.ended
    assert not run.ended
    assert run.messages is later.messages


def test_two_new_runs_share_no_mapping() -> None:
    """A default that were shared would leak from run to run."""
    assert fresh().pending is not fresh().pending
    assert fresh().tool_errors is not fresh().tool_errors
