"""What a survey means: findings with a fix, and numbers for a graph."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from graphloop.stores import (
    QueueState,
    Survey,
    UnfinishedRuns,
    WaitingRuns,
    age_text,
    diagnosed,
    metrics_text,
)

WELL = Survey(
    1000.0, {"done": 3, "parked": 1}, {"done": 1.0, "parked": 2.0}, (), {}, (), 1, 0, {"bytes": 5}
)


def test_a_store_that_is_well_needs_no_person() -> None:
    """A run that has just become ready is no finding, and a parked one waits for people."""
    assert diagnosed(WELL, 1004.0) == []
    assert diagnosed(replace(WELL, waiting=(WaitingRuns("desk", 1, 940.0),)), 1000.0) == []


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"waiting": (WaitingRuns("desk", 2, 900.0),)},
            "2 runs wait for a driver of 'desk', the first for 1 min: no live worker has an agent "
            "called 'desk'.",
        ),
        (
            {"waiting": (WaitingRuns("desk", 2, 900.0),), "served": {"desk": ["", "code"]}},
            "2 runs wait for a driver of 'desk', the first for 1 min: its live workers have no "
            "free slot",
        ),
        (
            {
                "unfinished": (UnfinishedRuns("desk", "old", 2),),
                "served": {"desk": ["new", "newer"]},
            },
            "2 runs of 'desk' began with code of revision old, and each live worker",
        ),
        (
            {"waiting": (WaitingRuns("desk", 1, 900.0),), "drivers": 0},
            "1 run waits for a driver of 'desk', the first for 1 min: no worker is live.",
        ),
        (
            {"runs": {"blocked": 1}, "blocked": {"a": "no tool Fix: give it"}},
            "1 run is blocked, since the code of each worker that tried does not fit: a (no tool).",
        ),
        ({"orphans": ("a/c0",)}, "child runs without their root run: a/c0."),
        ({"now": 4600.0}, "the clock of this machine is 1 h behind the store's"),
        ({"now": -2600.0}, "the clock of this machine is 1 h ahead of the store's"),
        ({"sizes": {"free bytes": 0}, "drivers": 4}, "4 processes write one SQLite file"),
        ({"sizes": {"dead rows": 100_001}}, "100001 dead rows wait for a vacuum."),
        (
            {"sizes": {"connections": 81, "connections at most": 100}},
            "81 of 100 connections are open.",
        ),
    ],
)
def test_a_finding_says_what_is_wrong_and_what_to_do(changes: dict[str, object], text: str) -> None:
    """The operator need not know the tables."""
    (found,) = diagnosed(replace(WELL, **changes), 1000.0)

    assert found.text.startswith(text)
    assert found.fix


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1.0, "0 s"), (59.9, "59 s"), (60.0, "1 min"), (7200.0, "2 h"), (90_000.0, "1 d")],
)
def test_an_age_has_one_unit(seconds: float, text: str) -> None:
    """Enough for a person; a machine reads the metrics."""
    assert text == age_text(seconds)


def test_metrics_are_gauges_with_escaped_labels() -> None:
    """The name of an agent is its author's, and may have any character."""
    survey = replace(
        WELL,
        waiting=(WaitingRuns('a "desk"\\\n', 2, 990.0),),
        queues=(QueueState("bulk", 2, 1, 990.0, 3),),
    )

    assert (
        metrics_text(survey)
        == """\
# TYPE graphloop_runs gauge
graphloop_runs{status="done"} 3
graphloop_runs{status="parked"} 1
# TYPE graphloop_oldest_run_seconds gauge
graphloop_oldest_run_seconds{status="done"} 999
graphloop_oldest_run_seconds{status="parked"} 998
# TYPE graphloop_waiting_runs gauge
graphloop_waiting_runs{graph="a \\"desk\\"\\\\\\n"} 2
# TYPE graphloop_waiting_seconds gauge
graphloop_waiting_seconds{graph="a \\"desk\\"\\\\\\n"} 10
# TYPE graphloop_queue_waiting gauge
graphloop_queue_waiting{queue="bulk"} 2
# TYPE graphloop_queue_running gauge
graphloop_queue_running{queue="bulk"} 1
# TYPE graphloop_queue_late gauge
graphloop_queue_late{queue="bulk"} 3
# TYPE graphloop_queue_waiting_seconds gauge
graphloop_queue_waiting_seconds{queue="bulk"} 10
# TYPE graphloop_drivers gauge
graphloop_drivers{state="live"} 1
graphloop_drivers{state="lapsed"} 0
# TYPE graphloop_size gauge
graphloop_size{of="bytes"} 5
"""
    )
