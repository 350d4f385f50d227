"""FuzzReport: its text, its JSON, and its coverage."""

from __future__ import annotations

import json

from graphloop.events import Setup
from graphloop.testing.choices import Choices
from graphloop.testing.report import Coverage, Failing, FuzzReport
from graphloop.testing.subject import Subject
from graphloop.testing.trial import tried
from graphloop.testing.violation import Violation
from graphloop.views.dot import dot_of
from graphloop.views.levels import picture
from tests.strategies import loop

LINES = tuple(f"{number:>3} event" for number in range(1, 101))


def report(*failing: Failing, interrupted: bool = False) -> FuzzReport:
    """Return a report."""
    coverage = Coverage.of(loop())
    return FuzzReport("agent", 9, 1, failing, 2, coverage, ("a note",), interrupted=interrupted)


def test_a_failure_is_told_with_its_seed_its_story_and_a_command() -> None:
    """Everything that is needed to see it again."""
    failing = Failing((Violation("once", "ran twice"),), 4, "f1-AAAAAAE", LINES[:5])

    text = report(failing).text("my.py --rule '{never: x}'")

    assert "9 seed(s) from 1 on, 2 of them failed" in text
    assert "once: ran twice" in text
    assert "found with seed 4" in text
    assert "again: graphloop fuzz my.py --rule '{never: x}' --replay f1-AAAAAAE" in text
    assert "note: a note" in text


def test_a_long_trace_is_cut_in_the_middle_and_after_the_failure() -> None:
    """Nobody reads two thousand lines."""
    whole = Failing((Violation("endless", "no end", 100),), None, "t", LINES)
    found = Failing((Violation("gate", "ran", 3),), None, "t", LINES)

    assert 35 > len(list(whole.lines("again"))) > 25
    assert "… 72 more …" in "\n".join(whole.lines("again"))
    assert "… 97 more event(s) to the end" in "\n".join(found.lines("again"))
    assert "seed" not in "\n".join(found.lines("again"))


def test_json_has_everything_that_is_printed() -> None:
    """For CI, and for other tools."""
    failing = Failing((Violation("gate", "ran", 3),), 4, "f1-x", LINES[:3])

    data = json.loads(report(failing, interrupted=True).to_json())

    assert (False, "agent", True) == (data["ok"], data["graph"], data["interrupted"])
    (one,) = data["failing"]
    assert ("f1-x", 4, 3) == (one["token"], one["seed"], len(one["trace"]))
    assert [{"code": "gate", "what": "ran", "event": 3}] == one["violations"]
    assert 0 == data["coverage"]["outcomes"]["gate.settled"]


GRAPH = loop()


def covered() -> Coverage:
    """Return the coverage of two runs that only answer."""
    coverage = Coverage.of(GRAPH)
    for _ in range(2):
        subject = Subject(GRAPH, None, Setup())
        coverage.add(GRAPH, tried(subject, Choices.replayed(()), 100).trace)
    return coverage


def test_nodes_outcomes_and_endings_are_counted() -> None:
    """What no run has done counts 0, so that it is seen."""
    coverage = covered()

    assert (2, 2, 0) == tuple(coverage.nodes[one] for one in ("prepare_step", "END", "gate"))
    assert 2 == coverage.edges["model_call", "answered"]
    assert {"completed": 2} == coverage.endings
    assert {"gate", "gate.settled"} < set(coverage.unseen)
    assert "answered" not in str(coverage).splitlines()[1]
    assert "more" in str(coverage)


def test_the_counts_are_drawn_on_the_graph() -> None:
    """And what was never seen is pale."""
    drawn = dot_of(picture(GRAPH, covered().marks))

    assert "(2 runs)" in drawn
    assert 'label="model_call\\n2x"' in drawn
    assert "answered 2" in drawn
    assert "settled 0" in drawn
