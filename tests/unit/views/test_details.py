"""Details: what is promised of each node, in words."""

from __future__ import annotations

from dataclasses import dataclass

from graphloop.contract import Cap, ChildContract, Contract
from graphloop.graph import END, Graph
from graphloop.nodes import Gate, Limit
from graphloop.outcomes import Answered, Calls, Outcome
from graphloop.policy import allow
from graphloop.spending import Budget
from graphloop.views.details import detailed_picture, details
from graphloop.views.dot import dot_of
from graphloop.views.marks import Marks
from tests.graphs import Place


@dataclass(frozen=True)
class Rejected(Outcome):
    """With something to say."""

    reason: str
    score: int = 0


@dataclass(frozen=True)
class Busy(Place):
    """A node that promises all there is."""

    @property
    def contract(self) -> Contract:
        return Contract(
            caps={
                Answered: Cap(3, resets=frozenset({"turn"})),
                Calls: Cap(0),
                Rejected: Cap(1_000),
            },
            model_calls=2,
            agents=("writer", "critic"),
            tools=True,
            asks=True,
            reads=frozenset({"b", "a"}),
            writes=None,
            join="all",
            children=(
                ChildContract(
                    "critic",
                    writes=frozenset({"note"}),
                    gate_rules=allow("*").rules,
                    budget=Budget(tokens=5),
                    many=True,
                    runs=None,
                ),
            ),
        )


BUSY = Busy("busy", frozenset({Answered, Calls, Rejected}), "graph")


def test_everything_that_a_node_promises_is_told() -> None:
    """Effects, data, bounds, children, and what its outcomes carry."""
    assert [
        "graph: Busy",
        "asks a model 2 times at most",
        "runs tools",
        "may wait for a person",
        "runs writer",
        "waits for all of them",
        "reads a, b",
        "writes anything of the state",
        "answered at most 3x in a turn",
        "calls never",
        "rejected at most 1,000x",
        "runs critic any number of times at most,",
        "  side by side, on a budget of its own,",
        "  by rules of its own, writes note",
        "rejected(reason: str, score: int)",
    ] == list(details(BUSY))


def test_a_node_that_promises_nothing_says_so() -> None:
    """Nobody takes silence for a promise."""
    assert ["pure: Place", "promises nothing"] == list(details(Place("a", frozenset({Calls}))))


def test_the_rules_of_a_gate_are_in_its_box_and_not_beside_it() -> None:
    """One thing is told in one place."""
    gate, limit = Gate(rules=allow("read").rules), Limit(2)
    graph: Graph[None] = Graph("g", gate, {gate: {...: limit}, limit: {...: END}})
    drawn, _ = detailed_picture(graph, Marks(nodes={"gate": "2x"}), "")

    assert ("gate", "2x") == drawn.shapes[0].words
    assert () == drawn.shapes[0].notes
    assert any("read" in line for line in drawn.shapes[0].details)
    assert "go at most 2x" in drawn.shapes[1].details
    text = dot_of(drawn)
    assert "shape=diamond" not in text.partition("cluster_legend")[0]
    assert "go at most 2x\\l" in text
