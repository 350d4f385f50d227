"""Outcomes: types with names."""

from __future__ import annotations

import pytest

from graphloop.outcomes import AnsweredCalls, ContextFull, Go, Outcome, outcome_name


class HTTPError(Outcome):
    """An acronym."""


class Level2Support(Outcome):
    """A digit."""


@pytest.mark.parametrize(
    ("outcome", "name"),
    [
        (Go, "go"),
        (AnsweredCalls, "answered_calls"),
        (ContextFull, "context_full"),
        (Level2Support, "level2_support"),
        (HTTPError, "httperror"),
    ],
)
def test_an_outcome_is_named_after_its_class(outcome: type[Outcome], name: str) -> None:
    """The same name in tables, diagrams and errors."""
    assert name == outcome_name(outcome)
