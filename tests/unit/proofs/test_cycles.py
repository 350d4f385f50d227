"""GL4: every cycle is bounded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from graphloop import END, Graph
from graphloop.graph import Edges, EndType
from graphloop.node_protocol import Node
from graphloop.nodes import Append, Approve, Child, Function, Limit, Retrying, Router
from graphloop.outcomes import Answered, Failed, Go, Outcome, Rejected, Resend
from graphloop.outcomes import Final as FinalOutcome
from graphloop.proofs.checking import check
from graphloop.proofs.cycles import CYCLES_MAX
from graphloop.proofs.endless_cycles import endless
from tests.endless_graphs import POLLS, Empty, Found, poll, poller
from tests.topology_data import MUTANTS, graph_of, standard

NAMES = ("bound dropped", "cap reset", "bound bypassed", "loop without a bound")


@pytest.mark.parametrize("name", NAMES)
def test_a_cycle_without_a_bound_is_found(name: str) -> None:
    """Each is one line of a table that leads elsewhere."""
    (mutant,) = (one for one in MUTANTS if one.name == name)

    report = check(graph_of(mutant.of(standard(hold=False))))

    found = [one for one in report.findings if one.code == mutant.code]
    assert found
    assert all(one.fix and one.witness and one.location for one in found)
    assert mutant.code in check(graph_of(standard())).proven


@pytest.mark.parametrize("compacting", [False, True])
def test_a_turn_is_opened_once_more_only_where_a_node_may_do_so(compacting: bool) -> None:
    """Behind an ending that is gone nobody knows the turn; but without a Compact it is no other."""
    topology = standard(context_window=1_000 if compacting else None)
    topology["edges"]["append"]["aborted"] = "stop"
    report = check(graph_of(topology))

    assert compacting != ("GL4" in report.proven)
    if compacting:
        (unknown,) = (one for one in report.unknown if one.code == "GL4")
        assert "lead the cycle through a PrepareStep" not in unknown.reason
        assert "opened once more" in unknown.reason


class Logged(Outcome):
    """A function of one's own has looked."""


LOG = Function("log", frozenset({Logged}))


def behind_a_rejection(between: Node[None, Outcome], *back: type[Outcome]) -> set[str]:
    """Return what is found where a rejection goes through a node, and back to the append."""
    plan, append, approve, replan = Child("planner"), Append(), Approve(), Limit(2, name="replan")
    edges: dict[Any, dict[Any, Any]] = {
        plan: {Answered: append, ...: END},
        append: {FinalOutcome: approve, Resend: replan, ...: END},
        approve: {Rejected: between, ...: END},
        replan: {Go: plan, ...: END},
        between: {**dict.fromkeys(back, append), ...: END},
    }
    report = check(Graph("plans", plan, edges))
    told = {one.code for one in report.findings}
    return told | {one.code for one in report.unknown if "the cycle" in one.reason}


@pytest.mark.parametrize(
    ("between", "back"),
    [
        (LOG, (Logged, Failed)),
        (Router({Logged: "any"}, "Which?"), (Logged, Failed)),
    ],
    ids=["function", "router"],
)
def test_a_node_that_keeps_feedback_keeps_the_bound(
    between: Node[None, Outcome], back: tuple[type[Outcome], ...]
) -> None:
    """The append still sends the run on to the model, and the limit counts that."""
    assert set() == behind_a_rejection(between, *back)


def test_what_may_take_feedback_away_bounds_nothing() -> None:
    """What is tried again has lost what was noted in its name."""
    assert {"GL4"} == behind_a_rejection(Retrying(LOG, times=1), Logged)


def test_the_fix_names_nodes_that_fit_the_cycle() -> None:
    """A StopCheck counts turns: it bounds no cycle that opens none."""
    edges: dict[Any, dict[Any, Any]] = {LOG: {Logged: LOG, ...: END}}
    (own,) = check(Graph("own", LOG, edges)).findings
    topology = standard()
    topology["edges"]["append"]["answered_calls"] = "prepare"
    fixes = [one.fix for one in check(graph_of(topology)).findings if one.code == "GL4"]

    assert "Limit" in own.fix
    assert "cap=" in own.fix
    assert "StopCheck" not in own.fix
    assert all("StopCheck" in fix for fix in fixes)
    assert fixes


def test_an_unbounded_cycle_is_reported_with_a_fix() -> None:
    """Who reads it knows which cycle, and how to mend it."""
    (found,) = endless(poller())

    assert "poll" == found.node
    assert "nothing bounds the cycle poll -> poll" in found.words
    assert "Limit" in found.words
    assert "`cap=`" in found.words


def pollers(count: int, ignore: Mapping[tuple[str, str], str] | None = None) -> Graph[None]:
    """Return so many cycles in a row that nothing bounds."""
    row = [poll.renamed(f"poll{number}") for number in range(count)]
    after: list[Node[None, Outcome] | EndType] = [*row[1:], END]
    edges: Edges[None] = {one: {Empty: one, ...: to} for one, to in zip(row, after, strict=True)}
    return Graph("pollers", row[0], edges, ignore=ignore)


def test_one_reason_for_all_is_one_for_very_many() -> None:
    """And the checker knows each of them."""
    graph = pollers(CYCLES_MAX + 3).unbounded(POLLS)

    assert () == graph.endless
    assert CYCLES_MAX + 3 == len(graph.ignore) == len(check(graph).suppressed)
    assert check(graph).ok


def round_poll(words: str, ignore: Mapping[tuple[str, str], str] | None = None) -> Graph[None]:
    """Return a graph in which `poll` comes back to itself, and by every other node as well."""
    others = [poll.renamed(word) for word in words.split()]
    ways = [*others, poll]
    edges: Edges[None] = {poll: {Empty: poll, Found: ways[0], ...: END}}
    for one, to in zip(others, ways[1:], strict=True):
        edges = {**edges, one: {Empty: poll, Found: to, ...: END}}
    return Graph("round", poll, edges, ignore=ignore)


def test_a_reason_does_not_cover_a_longer_cycle() -> None:
    """Somebody excuses a loop that polls; a later way round it that pays is not meant by that."""
    excused = {("poll", "GL4"): POLLS}
    (found,) = round_poll("pay", excused).endless

    assert "pay" == found.node
    assert "pay -> poll -> pay" in found.words
    assert () == round_poll("pay").unbounded(POLLS).endless


def test_each_unbounded_node_is_on_a_reported_cycle() -> None:
    """The furthest first, with what is on its way; without a reason, one cycle a part is told."""
    (found,) = round_poll("a b c d", {("poll", "GL4"): POLLS}).endless
    reasons = {("poll", "GL4"): POLLS, (found.node, "GL4"): POLLS}

    assert "nothing bounds the cycle d -> poll -> a -> b -> c -> d" in found.words
    assert () == round_poll("a b c d", reasons).endless
    assert 1 == len(round_poll("a b c d").endless)


def test_of_very_many_beside_what_is_excused_the_first_are_told() -> None:
    """Each is a way of its own back to the node that is excused."""
    spokes = [poll.renamed(f"n{number}") for number in range(CYCLES_MAX + 10)]
    ways: list[Node[None, Outcome] | EndType] = [*spokes[1:], END]
    hubs = [poll.renamed(f"hub{number}") for number in range(len(spokes))]
    edges: Edges[None] = {}
    for hub, spoke, way in zip(hubs, spokes, ways, strict=True):
        after = END if way is END else hubs[hubs.index(hub) + 1]
        edges = {**edges, hub: {Empty: spoke, Found: after, ...: END}, spoke: {...: hubs[0]}}
    graph = Graph("hub", hubs[0], edges, ignore={("hub0", "GL4"): POLLS})

    assert len(graph.endless) <= CYCLES_MAX
    assert () == graph.unbounded(POLLS).endless
