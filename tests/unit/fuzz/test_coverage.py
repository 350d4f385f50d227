"""Coverage: what runs went through, and what none has."""

from __future__ import annotations

from graphloop.events import Setup
from graphloop.fuzz.choices import Choices
from graphloop.fuzz.coverage import Coverage
from graphloop.fuzz.subject import Subject
from graphloop.fuzz.trials import tried
from graphloop.views.dot import dot_of
from graphloop.views.picture import picture
from tests.strategies import loop

GRAPH = loop()


def covered() -> Coverage:
    """Return the coverage of two runs that only answer."""
    coverage = Coverage.of(GRAPH)
    for _ in range(2):
        subject = Subject(GRAPH, None, Setup())
        coverage.add(GRAPH, tried(subject, Choices.given(()), 100).story)
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


def test_nothing_seen_is_told_so() -> None:
    """Before the first run."""
    assert "ended by: nothing" in str(Coverage.of(GRAPH))
    assert 0 == sum(Coverage.of(GRAPH).nodes.values())
