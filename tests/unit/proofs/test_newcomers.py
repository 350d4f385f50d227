"""Newcomers: what acts and did not; weaker where less stands before it."""

from __future__ import annotations

from types import EllipsisType
from typing import Literal

from graphloop.graph import END, Edges, EndType, Graph
from graphloop.node_protocol import Kind, Node
from graphloop.nodes import Approve
from graphloop.outcomes import Aborted, Accepted, Answered, Outcome, Rejected
from graphloop.proofs.ground import Ground
from graphloop.proofs.newcomers import newcomers
from tests.graphs import Place, build

KINDS: dict[str, Kind] = {
    "a": "model",
    "ask": "human",
    "judge": "check",
    "do": "execute",
    "new": "execute",
}


def told(before: Graph[None], after: Graph[None]) -> list[tuple[bool, str]]:
    found = newcomers(Ground(before), Ground(after), frozenset({"do"}), frozenset({"do", "new"}))
    return [(one.weaker, one.message) for one in found]


OLD = build({"a": ["ask", "END"], "ask": ["do"], "do": ["END"]}, KINDS)


def test_what_acts_without_a_guard_before_it_is_weaker() -> None:
    """As an approval is got rid of by calling what it guards something else."""
    after = build({"a": ["ask", "new"], "ask": ["do"], "do": ["END"], "new": ["END"]}, KINDS)

    assert [
        (True, "`new` becomes reachable, and no gate, check or person stands before it")
    ] == told(OLD, after)


def test_what_acts_behind_another_kind_of_guard_than_its_like_is_weaker() -> None:
    """Where everything of its class waits for a person, a check is less."""
    after = build(
        {"a": ["ask", "judge"], "ask": ["do"], "do": ["END"], "judge": ["new"], "new": ["END"]},
        KINDS,
    )

    ((weaker, said),) = told(OLD, after)
    assert weaker
    assert said.startswith("`new` becomes reachable, and no person stands before it")


def test_what_acts_behind_a_guard_is_a_change() -> None:
    """Of the same kind; whoever it is."""
    after = build({"a": ["ask", "END"], "ask": ["do", "new"], "do": ["END"], "new": ["END"]}, KINDS)

    assert [(False, "`new` becomes reachable, behind a person")] == told(OLD, after)


def test_what_was_there_and_no_run_arrived_at_is_new() -> None:
    """And what only acts now."""
    before = build({"a": ["ask"], "ask": ["do"], "do": ["END"], "new": ["END"]}, KINDS)
    silent = build({"a": ["ask", "new"], "ask": ["do"], "do": ["END"], "new": ["END"]}, KINDS)

    assert [True] == [weaker for weaker, _ in told(before, silent)]
    assert ["`new` acts now, and no gate, check or person stands before it"] == [
        said for _, said in told(silent, silent)
    ]


def test_a_graph_that_guarded_nothing_loses_nothing() -> None:
    """It is told all the same."""
    before = build({"a": ["do"], "do": ["END"]}, KINDS)
    after = build({"a": ["do", "new"], "do": ["END"], "new": ["END"]}, KINDS)

    assert [False] == [weaker for weaker, _ in told(before, after)]
    assert [] == told(before, before)


def test_guards_of_two_kinds_on_two_ways_are_a_guard() -> None:
    """One of them is passed."""
    after = build({"a": ["ask", "judge"], "ask": ["new"], "judge": ["new"], "new": ["END"]}, KINDS)
    before = build({"a": ["judge"], "judge": ["END"]}, KINDS)

    assert [(False, "`new` becomes reachable, behind a gate, check or person")] == [
        (one.weaker, one.message)
        for one in newcomers(Ground(before), Ground(after), frozenset(), frozenset({"new"}))
    ]


def test_what_a_no_leads_to_has_no_guard_before_it() -> None:
    """Nobody agreed to it: neither by rejecting, nor by aborting."""

    do, new = (Place(one, frozenset({Answered}), "execute") for one in ("do", "new"))

    def made(**rest: str) -> Ground[None]:
        ask: Node[None, Outcome] = Approve("ask")
        places = {"do": do, "new": new}
        by: dict[str, type[Outcome]] = {
            "accepted": Accepted,
            "rejected": Rejected,
            "aborted": Aborted,
        }
        row: dict[type[Outcome] | EllipsisType, Node[None, Outcome] | Literal[EndType.END]] = {
            by[word]: places[to] for word, to in rest.items()
        }
        edges: Edges[None] = {
            ask: {**row, ...: END},
            do: {Answered: END},
            new: {Answered: END},
        }
        return Ground(Graph("g", ask, edges))

    def weaker(**rest: str) -> list[bool]:
        acting = frozenset({"do", "new"})
        found = newcomers(made(accepted="do"), made(**rest), frozenset({"do"}), acting)
        return [one.weaker for one in found]

    assert [True] == weaker(accepted="do", rejected="new")
    assert [True] == weaker(accepted="do", aborted="new")
    assert [False] == weaker(accepted="new")


def test_the_verdict_that_led_to_nothing_that_acts_is_a_no_as_well() -> None:
    """What outcomes of one's own mean, the earlier graph says by what it did with them."""
    rest = {"do": ["END"], "new": ["END"]}
    before = build({"judge": ["do", "END"], **rest}, KINDS)
    idle = build({"judge": ["END", "END"], **rest}, KINDS)

    assert [True] == [
        weaker for weaker, _ in told(before, build({"judge": ["do", "new"], **rest}, KINDS))
    ]
    assert [False] == [
        weaker for weaker, _ in told(before, build({"judge": ["new", "END"], **rest}, KINDS))
    ]
    found = newcomers(
        Ground(idle),
        Ground(build({"judge": ["END", "new"], **rest}, KINDS)),
        frozenset(),
        frozenset({"new"}),
    )
    assert [False] == [one.weaker for one in found]
