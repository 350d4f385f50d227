"""GL6: fields of the state, read and written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from pydantic import BaseModel

from graphloop import END, Agent, Graph, node
from graphloop.graph import Edges, Row
from graphloop.node_protocol import Node
from graphloop.nodes import Append
from graphloop.outcomes import Failed, Outcome, outcome_name
from graphloop.own_nodes import fallback, retry, sub_graph
from graphloop.proofs.data import find_field_faults, find_state_faults
from graphloop.proofs.proof_graph import ProofGraph
from graphloop.proofs.report import Finding, Unknown
from graphloop.testing import ScriptedModel
from tests.strategies import wrong
from tests.topology_data import graph_of


def found(*nodes: dict[str, Any], state: str = "Essay") -> list[Finding | Unknown]:
    """Return what is wrong with nodes of one's own in a row."""
    names = [f"n{at}" for at in range(len(nodes))]
    afters = [*names[1:], "END"]
    own = {"type": "own", "outcomes": ["ready"]}
    topology = {
        "name": "g",
        "state": state,
        "start": "n0",
        "nodes": {name: own | said for name, said in zip(names, nodes, strict=True)},
        "edges": {name: {"ready": after} for name, after in zip(names, afters, strict=True)},
    }
    return list(find_field_faults(ProofGraph(graph_of(topology))))


def test_a_field_that_is_read_too_early_is_an_error_with_the_way() -> None:
    """It would be None."""
    (finding,) = found({}, {"reads": ["draft"]}, {"writes": ["draft"]})

    assert isinstance(finding, Finding)
    assert finding.witness == ("n0", "n1")


@pytest.mark.parametrize(("reads", "count"), [([], 1), (["score"], 0)])
def test_a_write_that_is_always_overwritten_is_in_vain(reads: list[str], count: int) -> None:
    """Unless somebody reads it; what stands at the end is the result."""
    assert count == len(found({"writes": ["score"]}, {"reads": reads, "writes": ["score"]}))


def test_a_node_that_does_not_say_what_it_reads_makes_it_unknown() -> None:
    """Unknown is never proven."""
    (one,) = found({"reads": None})

    assert isinstance(one, Unknown)
    assert "'n0'" in one.reason


@dataclass(frozen=True)
class Post:
    """A text, once there is one."""

    draft: str | None = None


class Onward(Outcome):
    """Go on."""


class Back(Outcome):
    """Something else."""


@node(reads=(), writes=("draft",))
def write(state: Post) -> tuple[Onward, Post]:
    """Write, or raise."""
    return Onward(), replace(state, draft="written")


@node(reads=(), writes=("draft",))
def perhaps(state: Post) -> Onward | tuple[Onward | Back, Post]:
    """Write, or leave it."""
    return Onward()


@node(reads=(), writes=("draft",), raises={TimeoutError: Back})
def late(state: Post) -> tuple[Onward | Back, Post]:
    """Write in time, or not at all."""
    raise TimeoutError


@node(reads=(), writes=())
def skip(state: Post) -> Onward:
    """Write nothing."""
    return Onward()


@node(reads=("draft",), writes=())
def publish(state: Post) -> Onward:
    """Read it."""
    return Onward()


def told_of(writer: Node[Post, Outcome], *, after: str) -> list[str]:
    """Return what is told of a reader that is entered by one outcome of a writer only."""
    last: Node[Post, Outcome] = publish
    row: Row[Post] = {one: last if outcome_name(one) == after else END for one in writer.outcomes}
    rows: Edges[Post] = {writer: row, last: {...: END}}
    return [one.code for one in find_field_faults(ProofGraph(Graph("post", writer, rows)))]


WRITERS: Mapping[str, tuple[Node[Post, Outcome], frozenset[str]]] = {
    "write": (write, frozenset({"onward"})),
    "perhaps": (perhaps, frozenset({"back"})),
    "late": (late, frozenset({"onward"})),
    "write, or skip": (fallback(write, skip), frozenset()),
    "write, or write": (
        fallback(write, write.renamed("again")),
        frozenset({"onward"}),
    ),
    "perhaps, or skip": (fallback(perhaps, skip), frozenset({"back"})),
    "again": (retry(write, times=2), frozenset({"onward"})),
    "child": (
        sub_graph(
            Agent(ScriptedModel([]), name="writer"),
            output=lambda state, result: replace(state, draft=result.text),
            reads=(),
            writes=("draft",),
        ),
        frozenset({"answered"}),
    ),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_field_is_written_only_by_the_declared_outcomes(writer: str) -> None:
    """A node that failed has written nothing, nor has one that returned no state."""
    node, written = WRITERS[writer]
    for outcome in node.outcomes:
        word = outcome_name(outcome)
        assert ([] if word in written else ["GL6"]) == told_of(node, after=word), word


def in_vain(after: Node[Post, Outcome], *, failed: Node[Post, Outcome] | None = None) -> bool:
    """Whether a first write is in vain, before another node, or what stands where that fails."""
    first: Node[Post, Outcome] = write
    rows: Edges[Post] = {
        first: {Onward: after, ...: END},
        after: {Failed: END if failed is None else failed, ...: END},
    }
    behind: Edges[Post] = {} if failed is None else {failed: {...: END}}
    graph = Graph("post", first, {**rows, **behind})
    return "GL6" in [one.code for one in find_field_faults(ProofGraph(graph))]


def test_a_write_is_in_vain_only_before_a_sure_write() -> None:
    """What it wrote is the run's result else; a run that failed has none."""
    again = write.renamed("again")

    assert in_vain(again)
    assert not in_vain(again, failed=publish)
    assert not in_vain(perhaps)


@dataclass
class Plain:
    words: list[str] = field(default_factory=list[str])
    inner: dict[str, int] = field(default_factory=dict[str, int])


class Model(BaseModel):
    plain: Plain = Plain()
    more: list[str] = []


@dataclass
class Calling:
    call: Callable[[], None]


@dataclass
class Locked:
    locks: list[threading.Event]


@dataclass
class Loose:
    payload: Any


@dataclass
class Numberless:
    """Not a number is equal to nothing, not even to itself, and is read as what it is."""

    number: float = float("nan")


@dataclass
class Lossy:
    """A tuple where numbers in a row are read as a list."""

    numbers: list[int] = field(default_factory=lambda: wrong((1, 2)))


def kept(state_type: type[Any]) -> list[Finding | Unknown]:
    append = Append()
    graph: Graph[Any] = Graph("g", append, {append: {...: END}}, state_type=state_type)
    return list(find_state_faults(ProofGraph(graph)))


@pytest.mark.parametrize("state_type", [Plain, Model, Numberless, int])
def test_plain_data_is_proven(state_type: type[object]) -> None:
    """Dataclasses, models, and JSON's own values."""
    assert not kept(state_type)


@pytest.mark.parametrize(("state_type", "place"), [(Calling, ".call"), (Locked, ".locks")])
def test_what_lives_in_one_process_is_an_error(state_type: type[object], place: str) -> None:
    """Wherever in the state it is."""
    (finding,) = kept(state_type)

    assert isinstance(finding, Finding)
    assert place in finding.place


def test_what_may_be_anything_is_unknown() -> None:
    """It may be fine, and nobody can tell."""
    (one,) = kept(Loose)

    assert isinstance(one, Unknown)


def test_a_state_that_is_not_read_as_it_was_is_an_error() -> None:
    """A resumed run would be another run: it is told where, and what helps, as a run tells it."""
    (finding,) = kept(Lossy)

    assert isinstance(finding, Finding)
    assert "found Lossy(numbers=[1, 2])" in finding.message
    assert "annotate each part" in finding.fix


@dataclass
class Needing:
    """Which numbers it takes, its type does not say."""

    number: int

    def __new__(cls, *args: object, **_: object) -> Needing:
        if args or _:
            raise ValueError("no, thank you")
        raise TypeError("give a number")


def test_a_state_that_nobody_can_make_is_unknown() -> None:
    """It was passed over in silence."""
    (one,) = kept(Needing)

    assert isinstance(one, Unknown)
    assert "no, thank you" in one.reason
    assert "defaults" in one.reason


def test_a_state_that_is_no_class_is_looked_at_as_well() -> None:
    """A list of functions is no better than a class that holds one."""
    assert not kept(cast("type[Any]", list[int]))
    assert kept(cast("type[Any]", list[Callable[[], None]]))
