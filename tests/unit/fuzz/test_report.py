"""FuzzReport: what is printed and what a program reads."""

from __future__ import annotations

import json

from graphloop.fuzz.coverage import Coverage
from graphloop.fuzz.report import Failing, FuzzReport
from graphloop.fuzz.violation import Violation
from tests.strategies import loop

STORY = tuple(f"{number:>3} event" for number in range(1, 101))


def report(*failing: Failing, interrupted: bool = False) -> FuzzReport:
    """Return a report."""
    coverage = Coverage.of(loop())
    return FuzzReport("agent", 9, 1, failing, 2, coverage, ("a note",), interrupted=interrupted)


def test_a_failure_is_told_with_its_seed_its_story_and_a_command() -> None:
    """Everything that is needed to see it again."""
    failing = Failing((Violation("once", "ran twice"),), 4, "f1-AAAAAAE", STORY[:5])

    text = report(failing).text("my.py --rule '{never: x}'")

    assert "9 seed(s) from 1 on, 2 of them failed" in text
    assert "once: ran twice" in text
    assert "found with seed 4" in text
    assert "again: graphloop fuzz my.py --rule '{never: x}' --replay f1-AAAAAAE" in text
    assert "note: a note" in text


def test_a_long_story_is_cut_in_the_middle_and_after_what_was_found() -> None:
    """Nobody reads two thousand lines."""
    whole = Failing((Violation("endless", "no end", 100),), None, "t", STORY)
    found = Failing((Violation("gate", "ran", 3),), None, "t", STORY)

    assert 35 > len(list(whole.lines("again"))) > 25
    assert "… 72 more …" in "\n".join(whole.lines("again"))
    assert "… 97 more event(s) to the end" in "\n".join(found.lines("again"))
    assert "seed" not in "\n".join(found.lines("again"))


def test_json_has_everything_that_is_printed() -> None:
    """For CI, and for other tools."""
    failing = Failing((Violation("gate", "ran", 3),), 4, "f1-x", STORY[:3])

    data = json.loads(report(failing, interrupted=True).to_json())

    assert (False, "agent", True) == (data["ok"], data["graph"], data["interrupted"])
    (one,) = data["failing"]
    assert ("f1-x", 4, 3) == (one["token"], one["seed"], len(one["story"]))
    assert [{"code": "gate", "what": "ran", "event": 3}] == one["violations"]
    assert 0 == data["coverage"]["outcomes"]["gate.settled"]


def test_a_report_without_failures_is_fine() -> None:
    """Printing it tells how far it has looked."""
    assert report().ok
    assert "nothing found" in str(report())
    assert "interrupted after 9" in str(report(interrupted=True))
