"""Foresight: the step that an event will be, before anybody has journaled it."""

from __future__ import annotations

import pytest

from graphloop.drivers.foresight import ends, foreseen, place_of
from graphloop.errors import IllegalEvent
from graphloop.events import Cancelled, Resumed, Started
from graphloop.step import begin, step
from tests.strategies import QUESTION, SETUP, loop

STARTED = Started(0.0, "r", "loop", QUESTION, SETUP)


def test_what_is_foreseen_is_what_happens() -> None:
    """Stepping is pure."""
    graph = loop()
    run = begin(graph, STARTED, None).run

    assert begin(graph, STARTED, None) == foreseen(graph, None, STARTED, None)
    assert step(graph, run, Resumed(1.0)) == foreseen(graph, run, Resumed(1.0), None)


def test_a_run_begins_with_its_start_and_counts_from_there() -> None:
    """The store refuses any other place."""
    run = begin(loop(), STARTED, None).run

    assert ("r", 1) == place_of(None, STARTED)
    assert ("r", 2) == place_of(run, Resumed(1.0))
    with pytest.raises(IllegalEvent, match="starts with Started"):
        place_of(None, Resumed(1.0))


def test_a_last_event_is_seen_before_it_happens() -> None:
    """So is one that will fail: nothing is heard after either."""
    graph = loop()
    run = begin(graph, STARTED, None).run
    last = foreseen(graph, run, Cancelled(1.0), None)
    assert not isinstance(last, Exception)

    illegal = foreseen(graph, last.run, Cancelled(2.0), None)

    assert isinstance(illegal, IllegalEvent)
    assert [False, True, True] == [
        ends(one) for one in (foreseen(graph, run, Resumed(1.0), None), last, illegal)
    ]
