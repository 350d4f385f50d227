"""GL10: nothing effectful precedes a park in the same node."""

from __future__ import annotations

import pytest

from graphloop import END, Graph, node
from graphloop.outcomes import Outcome
from graphloop.own_nodes import Asking, ask_person
from graphloop.proofs.checking import check
from tests.topology_data import MUTANTS, graph_of, standard

NAMES = ("tools run before a park",)


@pytest.mark.parametrize("name", NAMES)
def test_a_node_that_runs_and_asks_is_found(name: str) -> None:
    """Each is one line of a table that leads elsewhere."""
    (mutant,) = (one for one in MUTANTS if one.name == name)

    report = check(graph_of(mutant.of(standard(hold=False))))

    found = [one for one in report.findings if one.code == mutant.code]
    assert found
    assert all(one.fix and one.witness and one.location for one in found)
    assert mutant.code in check(graph_of(standard())).proven


class Published(Outcome):
    """The text is public."""


@node(kind="act")
def publish_when_asked(state: None) -> Asking[Published]:
    """Ask a person, and act, in one visit."""
    yield from ask_person("Publish it?")
    return Published()


def test_a_node_that_acts_asks_in_a_node_of_its_own() -> None:
    """A resumed generator runs again from its beginning, and would act again."""
    report = Graph("desk", publish_when_asked, {publish_when_asked: {...: END}}).check()

    assert "GL10" in {one.code for one in report.findings}
