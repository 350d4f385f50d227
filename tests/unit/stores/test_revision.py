"""A revision names the code that a journal depends on, whatever it is made of."""

from __future__ import annotations

import subprocess
import sys
from enum import Enum, auto
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphloop import END, Graph
from graphloop.graph import Edges
from graphloop.nodes import Limit
from graphloop.outcomes import Go
from graphloop.own_nodes import sub_graph
from graphloop.stores.revision import revision_of
from graphloop.values import Usage

ROOT = Path(__file__).parents[3]


class Colour(Enum):
    """A choice."""

    RED = auto()
    BLUE = auto()


class Odd:
    """An object that is no value: its attributes may be a connection, or a secret."""

    def __init__(self, secret: str) -> None:
        self.secret = secret


def first(_: object) -> None:
    """Do nothing."""


def second(_: object) -> None:
    """Do nothing, too."""


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(value=VALUES)
def test_each_value_has_a_revision(value: object) -> None:
    """Half a character, no number, and a number of a thousand digits too."""
    assert len(revision_of(value)) == 64
    assert revision_of(value) == revision_of(value) != revision_of([value])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        ("1", 1),
        ([1, 2], [2, 1]),
        ({"a": 1}, {"a": 2}),
        ({1}, {2}),
        (Usage(1), Usage(2)),
        (Colour.RED, Colour.BLUE),
        (first, second),
        (partial(first, 1), partial(first, 2)),
        (Go, Usage),
        ([10**5000], [10**5000 + 1]),
    ],
)
def test_another_value_has_another_revision(one: object, other: object) -> None:
    assert revision_of(one) != revision_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a", "b", "c"}, {"c", "b", "a"}),
        (Odd("one"), Odd("two")),
    ],
)
def test_order_and_secrets_do_not_count(one: object, other: object) -> None:
    assert revision_of(one) == revision_of(other)


def test_a_value_that_holds_itself_has_a_revision() -> None:
    """And so has one that is deeper than any that a person writes."""
    cycle: list[object] = [1]
    cycle.append(cycle)
    deep: object = 1
    for _ in range(5000):
        deep = [deep]

    assert revision_of(cycle) != revision_of(deep)


def forms_of(graph: Graph[None]) -> int:
    """Return how many values the revision of a graph reads."""
    count = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_name == "_form"

    sys.setprofile(note)
    try:
        revision_of(graph)
    finally:
        sys.setprofile(None)
    return count


def test_the_nodes_of_a_graph_are_read_once() -> None:
    """Each run in a store tells its revision, and a graph may have thousands of nodes."""
    nodes = [Limit(1, f"limit {number}") for number in range(30)]
    table: Edges[None] = {one: {...: to} for one, to in pairwise(nodes)}
    graph = Graph("row", nodes[0], {**table, nodes[-1]: {...: END}})

    first, second = forms_of(graph), forms_of(graph)

    assert first > len(nodes)
    assert second == 2, "the parts, and the graph"


def test_a_graph_counts_the_same_within_any_number_of_graphs() -> None:
    """Whichever revision a process asks for first."""

    def nested() -> list[Graph[None]]:
        leaf = Limit(1, "leaf")
        graphs: list[Graph[None]] = [Graph("leaf", leaf, {leaf: {...: END}})]
        for _ in range(20):
            kid = sub_graph(graphs[-1], name="kid", prompt="go")
            graphs.append(Graph("outer", kid, {kid: {...: END}}))
        return graphs

    inner_first = [revision_of(graph) for graph in nested()]

    assert inner_first[-1] == revision_of(nested()[-1])
    assert len(inner_first) == len({*inner_first})


def test_a_revision_is_the_same_in_each_process() -> None:
    """Whatever the seed of its hashes is."""
    program = "from graphloop.stores.revision import *; print(revision_of({'a', 'b', 'c'}, len))"
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert told == {f"{revision_of({'a', 'b', 'c'}, len)}\n".encode()}
