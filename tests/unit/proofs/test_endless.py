"""What has no bound is told by itself, but for what somebody answers for."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from graphloop import END, Graph
from graphloop.graph import Edges, EndType
from graphloop.node_protocol import Node
from graphloop.outcomes import Outcome
from graphloop.proofs.bounds import bound
from graphloop.proofs.checking import check
from graphloop.proofs.cycles import CYCLES_MAX
from graphloop.proofs.endless_cycles import endless
from tests.endless_graphs import POLLS, Empty, Found, poll, poller, silent


def test_a_cycle_without_a_bound_is_told_with_what_would_bound_it() -> None:
    """Who reads it knows which cycle, and how to mend it."""
    (found,) = endless(poller())

    assert "poll" == found.node
    assert "nothing bounds the cycle poll -> poll" in found.words
    assert "Limit" in found.words
    assert "`cap=`" in found.words


def test_a_reason_for_the_cycle_is_a_reason_to_go_on() -> None:
    """One for another node, or another property, is none."""
    assert () == endless(poller({("poll", "GL4"): POLLS}))
    assert endless(poller({("poll", "GL6"): POLLS}))
    assert endless(poller({("other", "GL4"): POLLS}))


def test_a_cycle_that_nobody_can_tell_is_endless_too() -> None:
    """A node that promises nothing may go round for ever."""
    graph = silent(again=True)
    (found,) = endless(graph)

    assert "nobody says how often" in found.words
    assert "`contract`" in found.words
    assert () == endless(silent(again=True, ignore={(found.node, "GL4"): POLLS}))


@pytest.mark.parametrize("again", [False, True])
def test_it_is_what_the_bound_calls_cycles(again: bool) -> None:
    """Two ways to say one thing would disagree one day."""
    graph = silent(again=again)

    assert len(bound(graph).cycles) == len(endless(graph)) == again


def test_a_graph_without_a_cycle_is_bounded() -> None:
    """Nothing to excuse."""
    once: Graph[None] = Graph("once", poll, {poll: {...: END}})

    assert () == endless(once)


def pollers(count: int, ignore: Mapping[tuple[str, str], str] | None = None) -> Graph[None]:
    """Return so many cycles in a row that nothing bounds."""
    row = [poll.renamed(f"poll{number}") for number in range(count)]
    after: list[Node[None, Outcome] | EndType] = [*row[1:], END]
    edges: Edges[None] = {one: {Empty: one, ...: to} for one, to in zip(row, after, strict=True)}
    return Graph("pollers", row[0], edges, ignore=ignore)


def test_what_is_set_aside_leaves_room_for_what_is_not() -> None:
    """Of very many the first are told; a reason for those is none for the others."""
    told = pollers(CYCLES_MAX + 3).endless
    left = pollers(CYCLES_MAX + 3, {(one.node, "GL4"): POLLS for one in told}).endless

    assert (CYCLES_MAX, 3) == (len(told), len(left))
    assert not {one.node for one in told} & {one.node for one in left}


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


def test_a_reason_to_wait_is_none_to_come_round_by_what_is_behind() -> None:
    """Somebody excuses a loop that polls; a later way round it that pays is not meant by that."""
    excused = {("poll", "GL4"): POLLS}
    (found,) = round_poll("pay", excused).endless

    assert "pay" == found.node
    assert "pay -> poll -> pay" in found.words
    assert () == round_poll("pay").unbounded(POLLS).endless


def test_every_node_that_nothing_bounds_is_on_a_cycle_that_is_told() -> None:
    """The furthest first, with what is on its way; without a reason, one cycle a part is told."""
    (found,) = round_poll("a b c d", {("poll", "GL4"): POLLS}).endless
    reasons = {("poll", "GL4"): POLLS, (found.node, "GL4"): POLLS}

    assert "nothing bounds the cycle d -> poll -> a -> b -> c -> d" in found.words
    assert () == round_poll("a b c d", reasons).endless
    assert 1 == len(round_poll("a b c d").endless)


def test_one_reason_for_many_cycles_is_found_in_bounded_time() -> None:
    """A thousand nodes in a ring that all come back to one: one way round is on all of them."""
    words = " ".join(f"n{number}" for number in range(1_000))
    free = round_poll(words).unbounded(POLLS)

    assert () == free.endless
    assert 2 == len(free.ignore)
    assert 1 == len(round_poll(words, {("poll", "GL4"): POLLS}).endless)


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
