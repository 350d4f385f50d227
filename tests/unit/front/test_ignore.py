"""What is set aside of a graph stands in the graph, with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop import END, Graph, check
from graphloop.errors import ConfigError
from graphloop.front.topology import dump, load
from graphloop.nodes import Append, Child
from graphloop.topology.registration import Registry
from tests.endless_graphs import POLLS, poll, poller, silent


def test_a_graph_s_own_reasons_are_the_checker_s() -> None:
    """Said once, they hold for the proofs and for the runs."""
    report = poller({("poll", "GL4"): POLLS}).check()

    assert report == check(poller(), ignore={("poll", "GL4"): POLLS})
    assert report.ok
    assert [(POLLS, "GL4")] == [(one.reason, one.finding.code) for one in report.suppressed]
    assert not poller().check().ok


def test_what_nobody_can_tell_can_be_answered_for() -> None:
    """It is shown among what is set aside, and is no longer unknown."""
    report = silent(ignore={("silent", "GL4"): POLLS}).check()

    assert [("GL4", "silent", POLLS)] == [
        (one.finding.code, one.finding.node, one.reason) for one in report.suppressed
    ]
    assert "GL4" not in {one.code for one in report.unknown}
    assert "GL4" in {one.code for one in silent().check().unknown}
    assert () == report.findings


@pytest.mark.parametrize("reason", ["", "  "])
def test_nothing_is_set_aside_for_no_reason(reason: str) -> None:
    """Whoever comes after has to know why."""
    with pytest.raises(ConfigError, match="sets GL4 of 'poll' aside for no reason"):
        poller({("poll", "GL4"): reason})
    with pytest.raises(ConfigError, match="sets GL4 of 'poll' aside for no reason"):
        poller().unbounded(reason)


def test_a_graph_can_be_made_to_run_without_a_bound() -> None:
    """The graph itself stays as it was."""
    graph = poller()
    free = graph.unbounded(POLLS)

    assert {("poll", "GL4"): POLLS} == free.ignore
    assert (1, 0) == (len(graph.endless), len(free.endless))
    assert {} == graph.ignore
    with pytest.raises(ConfigError, match="graph 'poller' is bounded: it needs no reason"):
        free.unbounded(POLLS)


def test_a_reason_is_written_down_with_the_graph(tmp_path: Path) -> None:
    """A file has it in its `ignore`."""
    registry = Registry()
    registry.node(poll)
    text = dump(poller({("poll", "GL4"): POLLS}), registry=registry)
    file = tmp_path / "poller.yaml"
    file.write_text(text)

    assert POLLS in text
    assert () == load(file, registry=registry).endless


@pytest.mark.parametrize("agent", ["w/deep", " w", "a\x1b[2J"])
def test_an_agent_has_a_name_that_can_be_told(agent: str) -> None:
    """`w/deep` would be the node `deep` of `w`, and what is set aside of the one of the other."""
    child, append = Child(agent, name="child"), Append()

    with pytest.raises(ConfigError, match="which is not an agent's name"):
        Graph("outer", child, {child: {...: append}, append: {...: END}})
