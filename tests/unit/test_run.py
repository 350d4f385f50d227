"""Run: a value whose every change is a new value."""

from __future__ import annotations

import pytest

from graphloop.run import Ending, EndReason, ended_by, evolve
from graphloop.turn import Turn
from tests.strategies import call, fresh


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
    assert fresh().counters.tool_errors is not fresh().counters.tool_errors


@pytest.mark.parametrize(
    ("key", "has"),
    [
        *[("c3.0", True), ("c3.1", True), ("c3.2", False), ("c2.0", False), ("c3.00", False)],
        *[("node.1", False), ("c3.x", False), ("c3", False), ("", False), ("c3.²", False)],
    ],
)
def test_a_turn_knows_its_calls_by_their_keys(key: str, has: bool) -> None:
    """What a node wishes for has a key as well, and is no call."""
    assert has is Turn(number=3, calls=(call(), call())).has_call(key)


@pytest.mark.parametrize("later", [None, *map(Ending, EndReason)])
@pytest.mark.parametrize("reason", EndReason)
def test_a_run_that_was_stopped_stays_so(reason: EndReason, later: Ending | None) -> None:
    """Whatever its table does with it afterwards: it starts nothing, so it comes to no bound."""
    before = Ending(reason, ("somebody",))
    stopped = reason in {EndReason.ABORTED, EndReason.TIMEOUT}

    run = ended_by(evolve(fresh(), ending=before), later)

    assert run.ending == (before if stopped else later)
