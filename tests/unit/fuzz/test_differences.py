"""Differences: where two tellings of one run part."""

from __future__ import annotations

from graphloop.fuzz.differences import between_runs, within_run
from graphloop.fuzz.watching import Deed
from graphloop.node_protocol import Leave, Wait
from graphloop.outcomes import Go, Stop
from graphloop.run import evolve
from tests.strategies import fresh

RUN = fresh()
GOES = Deed(1, "stop", Leave(RUN, Go()))
STOPS = Deed(1, "stop", Leave(RUN, Stop()))
WAITS = Deed(2, "stop", Wait(RUN))
RAISES = Deed(2, "stop", ValueError("?"))


def test_equal_tellings_do_not_part() -> None:
    """Errors are compared by what they say: no two of them are equal."""
    assert between_runs([GOES, RAISES], [GOES, Deed(2, "stop", ValueError("?"))]) is None
    assert between_runs([], []) is None


def test_the_first_decision_that_differs_is_told_with_both_sides() -> None:
    """That is where to look in the node."""
    parted = between_runs([GOES, WAITS], [GOES, RAISES])

    assert "at event 2 node 'stop' wished for nothing more; asked the same again, it raised " in (
        str(parted)
    )
    assert "left by 'go'; asked the same again, it left by 'stop'" in str(
        between_runs([GOES], [STOPS])
    )
    assert "was not asked" in str(between_runs([GOES], []))
    other = Deed(1, "stop", Leave(evolve(RUN, node="x"), Go()))
    assert "left by 'go' and left another run behind" in str(between_runs([GOES], [other]))
    assert "was 'gate'" in str(between_runs([GOES], [Deed(1, "gate", Wait(RUN))]))


def test_what_a_process_takes_up_again_is_held_against_all_of_the_replay() -> None:
    """After a crash, every node is asked again about everything."""
    told = [GOES, WAITS]
    again = [Deed(2, "stop", GOES.decision), WAITS]

    assert within_run([GOES, *again], told, {2}) is None
    assert within_run([GOES, GOES, WAITS], told, {1}) is None
    assert within_run(told, told, ()) is None
    parted = within_run([GOES, Deed(2, "stop", STOPS.decision), WAITS], told, {2})
    assert parted is not None
    assert ("stop", "left by 'stop'", "left by 'go'") == (parted.node, parted.first, parted.second)
