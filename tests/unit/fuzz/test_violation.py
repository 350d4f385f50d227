"""Violations."""

from __future__ import annotations

from graphloop.fuzz.violation import INVARIANTS, Violation


def test_a_violation_says_what_and_where() -> None:
    """One line."""
    assert "gate: ran (event 3)" == str(Violation("gate", "ran", 3))
    assert "gate: ran" == str(Violation("gate", "ran"))
    assert "gate" in INVARIANTS
