"""Graph: a table without a hole, or an error that names every hole."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop.errors import GraphError
from graphloop.graph import END, Edge, Graph
from graphloop.node_protocol import Node
from graphloop.outcomes import Failed, Go, Outcome, Ready, Stop
from tests.graphs import Place
from tests.strategies import wrong

A = Place("a", frozenset({Go, Stop}))
B = Place("b", frozenset({Ready}))
TWIN = type("Go", (Outcome,), {})

KEYS: list[object] = [A, B, Place, END, "a", "END", 5, None, Go, Go(), TWIN, ..., "go", int]
JUNK: list[object] = [*KEYS, [], dict[object, object](), Place("d", wrong([])), ""]
keys = st.sampled_from(KEYS)
junk = st.sampled_from(JUNK)
"""Of every type that could be meant for another, hashable or not."""


def test_a_graph_is_its_table() -> None:
    """In the order in which it was written."""
    graph = Graph[None]("g", A, {A: {Go: B, Stop: END}, B: {Ready: END}})

    assert (
        Edge("a", "go", "b"),
        Edge("a", "stop", "END"),
        Edge("b", "ready", "END"),
    ) == graph.edges
    assert {"a": A, "b": B} == graph.nodes
    assert "a" == graph.start
    assert "<Graph 'g': 2 nodes, 3 edges>" == repr(graph)


def test_equal_tables_are_equal_graphs() -> None:
    """However they are written."""
    short = Graph[None]("g", A, {A: {...: END}})
    long = Graph[None]("g", A, {A: {Stop: END, Go: END}})

    assert short == long
    assert Graph[None]("h", A, {A: {...: END}}) != short
    assert short != "g"
    assert hash(short) == hash(Graph[None]("g", A, {A: {...: END}}))


@pytest.mark.parametrize(
    ("place", "edges", "found"),
    [
        ("no row", {B: {Ready: END}}, "the start node has no row"),
        ("invented", {A: {Go: END, Stop: END, Failed: END}}, "never leaves by 'failed'"),
        ("missing", {A: {Go: END}}, "outcome 'stop' leads nowhere"),
        ("covered", {A: {Go: END, Stop: END, ...: END}}, "`...` covers no outcome"),
        ("target", {A: {...: B}}, "leads to 'b', which has no row"),
        ("twice", {A: {...: END}, Place("a", frozenset({Go})): {Go: END}}, "have this name"),
        ("nameless", {A: {...: END}, Place("", frozenset({Go})): {Go: END}}, "'' is not a name"),
        ("END", {A: {...: END}, Place("END", frozenset({Go})): {Go: END}}, "'END' is not a name"),
        ("twins", {Place("a", frozenset({Go, TWIN})): {...: END}}, "two outcome types of one name"),
        ("closed", {A: {...: END}, Place("c", frozenset()): {}}, "declares no outcome"),
        (
            "call",
            {A: {...: END}, Place("c0", frozenset({Go})): {Go: END}},
            "calls of a turn have such keys",
        ),
    ],
)
def test_each_flaw_of_a_table_is_found(
    place: str, edges: dict[Node[None, Outcome], dict[object, object]], found: str
) -> None:
    """At construction, with its place and its fix."""
    with pytest.raises(GraphError) as caught:
        Graph[None]("g", A, wrong(edges))

    assert any(found in problem.found for problem in caught.value.problems), place
    assert all(problem.fix for problem in caught.value.problems)


def test_all_flaws_are_reported_at_once() -> None:
    """Nobody wants to mend a table one error at a time."""
    with pytest.raises(GraphError, match="3 problem") as caught:
        Graph[None]("", A, {B: {}})

    assert 3 == len(caught.value.problems)


def test_outcomes_that_a_diagram_writes_alike_are_one_name() -> None:
    """Their classes may differ; the word on the line would not."""
    alike = frozenset({type("GoOn", (Outcome,), {}), type("Go_on", (Outcome,), {})})
    node = Place("a", alike)

    with pytest.raises(GraphError) as caught:
        Graph[None]("g", node, {node: {...: END}})

    (problem,) = caught.value.problems
    assert "node 'a'" == problem.place
    assert "two outcome types of one name" in problem.found


def problems(name: object, start: object, edges: object) -> list[str]:
    """Return what is wrong with a graph, a line for each problem."""
    with pytest.raises(GraphError) as caught:
        Graph[None](wrong(name), wrong(start), wrong(edges))
    assert all(problem.fix for problem in caught.value.problems)
    return [str(problem) for problem in caught.value.problems]


ROW: dict[object, object] = {Go: END, Stop: END}


@pytest.mark.parametrize(
    ("edges", "place", "found", "fix"),
    [
        (None, "edges", "is of type 'NoneType', not a mapping", "write `edges={"),
        ([A], "edges", "is of type 'list', not a mapping", "write `edges={"),
        ({A: [END]}, "row of 'a'", "is of type 'list', not a mapping", "write `{Outcome"),
        ({A: {...: None}}, "row of 'a'", "leads to None, which is of type 'NoneType'", "END as"),
        ({A: {...: "END"}}, "row of 'a'", "leads to 'END', which is of type 'str'", "without quot"),
        ({A: {...: "a"}}, "row of 'a'", "leads to 'a', which is of type 'str'", "the node, not"),
        ({A: {...: Place}}, "row of 'a'", "which is a class, not a node", "write an instance"),
        ({A: {...: [B]}}, "row of 'a'", "is of type 'list', not a node", "write a node"),
        ({A: {"go": END, Stop: END}}, "row of 'a'", "the key 'go' is of type 'str'", "write `Go`"),
        ({A: {"Go": END, Stop: END}}, "row of 'a'", "the key 'Go' is of type 'str'", "write `Go`"),
        ({A: {Go(): END, Stop: END}}, "row of 'a'", "the key Go() is of type 'Go'", "write `Go`"),
        ({A: {**ROW, 5: END}}, "row of 'a'", "the key 5 is of type 'int'", "outcomes: go, stop"),
        ({A: {**ROW, int: END}}, "row of 'a'", "'a' never leaves by 'int'", "remove it"),
        ({A: ROW, "b": {Go: END}}, "node 'b'", "is of type 'str', not a node", "not its name"),
        ({A: ROW, Place: {Go: END}}, f"node {Place!r}", "is a class", "`Place(…)`"),
        ({A: ROW, END: {}}, f"node {END!r}", "is where a run is over", "give END no row"),
        ({A: ROW, 5: {}}, "node 5", "is of type 'int', not a node. Fix", "write a node"),
    ],
)
def test_each_wrong_type_is_one_problem_with_its_place_and_fix(
    edges: object, place: str, found: str, fix: str
) -> None:
    """Never an AttributeError, and never two problems for one mistake."""
    (problem,) = problems("g", A, edges)

    assert problem.startswith(f"{place}: ")
    assert found in problem
    assert fix in problem.split(" Fix: ")[1]


@pytest.mark.parametrize(
    ("node", "found"),
    [
        (Place("b", frozenset({Go}), wrong("modle")), "unknown kind 'modle'. Did you mean 'model'"),
        (Place("b", frozenset({Go}), wrong(["model"])), "has no place in a table"),
        (Place("b", frozenset({Go}), wrong(None)), "unknown kind None"),
        (Place("b", wrong((Go,))), "its `outcomes` are not a set of types derived from Outcome"),
        (Place("b", wrong(Go | Stop)), "its `outcomes` are not a set of types"),
        (Place("b", wrong(frozenset({Go()}))), "its `outcomes` are not a set of types"),
        (Place("b", wrong(frozenset({int}))), "its `outcomes` are not a set of types"),
        (Place(wrong(5), frozenset({Go})), "it lacks a name of type str"),
    ],
)
def test_a_node_with_a_field_of_a_wrong_type_is_a_problem(node: Place, found: str) -> None:
    """Found when the table is built, not when it is drawn or run."""
    try:
        edges: dict[object, object] = {node: {...: END}}
    except TypeError:
        edges = {}

    (problem,) = problems("g", node, edges)

    assert found in problem


def test_wrong_types_hide_no_other_problem() -> None:
    """One look shows all there is to mend."""
    found = problems(5, None, {A: {"go": "END", Stop: B}, B: None, "c": {Failed: 5}})

    assert 7 == len(found), found


@given(junk, junk, st.dictionaries(keys, st.dictionaries(keys, junk) | junk) | junk)
def test_no_table_raises_anything_but_a_graph_error(
    name: object, start: object, edges: object
) -> None:
    """Whatever stands in it."""
    with contextlib.suppress(GraphError):
        Graph[None](wrong(name), wrong(start), wrong(edges))


def test_equal_graphs_have_equal_hashes_in_any_order_of_writing() -> None:
    """A set of graphs holds each once."""
    one = Graph[None]("g", A, {A: {...: B}, B: {...: END}})
    other = Graph[None]("g", A, {B: {...: END}, A: {...: B}})

    assert one == other
    assert 1 == len({one, other})


@pytest.mark.parametrize("name", [" a", "a\t", "a\nb", "\x1b[2Jb", "a\x85b", "x" * 201, " "])
def test_a_name_that_no_file_could_hold_is_refused(name: str) -> None:
    """With what is wrong about it, and without its control characters in the message."""
    odd = Place(name, frozenset({Go}))
    with pytest.raises(GraphError, match="is not a name") as refused:
        Graph[None]("g", odd, {odd: {...: END}})

    assert str(refused.value).replace("\n", "").isprintable()


def test_no_message_drives_a_terminal() -> None:
    """Whatever is named in it."""
    odd = Place("\x1b[2Jb", frozenset({Go}))
    with pytest.raises(GraphError) as refused:
        Graph[None]("g", odd, {A: {...: odd}})

    assert str(refused.value).replace("\n", "").isprintable()
