"""Documents as data, YAML and a fingerprint."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import yaml

from graphloop.errors import GraphError
from graphloop.graph import END, NodeGraph
from graphloop.nodes import Append, Child, Limit, ModelCall
from graphloop.rules import never
from graphloop.topology.document import AgentEntry, Document, NodeWithGraphs, document_of
from graphloop.topology.reader import read_text
from graphloop.topology.registration import Registry
from graphloop.topology.writer import data_of, fingerprint_of, topology_text, yaml_of
from tests.strategies import wrong
from tests.topology_files import RIGHT
from tests.topology_forms import NAMES


def _graph() -> NodeGraph[None]:
    return NodeGraph("a", Append(), {Append(): {...: END}})


@dataclass(frozen=True, eq=False)
class Fickle(Append):
    """A node that is equal to none."""

    name: str = "fickle"

    __hash__ = Append.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def test_a_fingerprint_knows_what_is_said_and_not_how() -> None:
    """Order, defaults, `else`, comments and notation say nothing."""
    document = read_text(RIGHT, NAMES)
    lines = RIGHT.replace("max_steps: 8", "max_steps: 8, max_pauses: 10").splitlines()
    lines[15] = "  gate: {aborted: append, settled: execute} # the same"

    assert fingerprint_of(document, NAMES) == fingerprint_of(
        read_text("\n".join([*lines[12:], *lines[:12]]), NAMES), NAMES
    )
    assert fingerprint_of(document, NAMES) != fingerprint_of(
        read_text(RIGHT.replace("max_steps: 8", "max_steps: 9"), NAMES), NAMES
    )


def test_a_fingerprint_is_the_same_in_every_release() -> None:
    """It stands in reviews and records."""
    graph = _graph()

    assert "a09c1a2f62463c63e0de8188bd86f6e06ba033755232d6afff9e9ece3a05ddb0" == fingerprint_of(
        document_of(graph), NAMES
    )


def test_other_readers_of_yaml_read_the_same() -> None:
    """Words that other versions take for values stand in quotes."""
    data = data_of(Document(read_text(RIGHT, NAMES).graph, prompt="yes"), NAMES)

    assert data == yaml.safe_load(yaml_of(data))


def test_all_nodes_that_no_file_can_hold_are_told() -> None:
    """Each with its reason."""
    model, limit = ModelCall("a", kind=wrong("check")), Limit(10**18, "b")
    graph: NodeGraph[None] = NodeGraph("a", model, {model: {...: limit}, limit: {...: END}})

    with pytest.raises(GraphError) as refused:
        data_of(document_of(graph), NAMES)

    assert ["node 'a'", "node 'b'"] == [problem.place for problem in refused.value.problems]


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\x1b", "\x00", "\ufeff", "\r", "\t", "\xa0"])
@pytest.mark.parametrize("text", ["a{}b", "{}a{}{} b{}", "a {} b\nc\n", "a" * 150 + " {} " * 50])
def test_odd_characters_are_written_as_escapes(text: str, sign: str) -> None:
    """Some of them are line breaks in one version of YAML, and text in another."""
    document = Document(_graph(), prompt=text.replace("{}", sign))

    assert document == read_text(topology_text(document, NAMES), NAMES)


def _nested(depth: int) -> Document:
    child = Child("inner")
    document = Document(NodeGraph("a", Append(), {Append(): {...: END}}))
    for _ in range(depth):
        node = NodeWithGraphs(child, (("inner", document.graph),))
        graph: NodeGraph[None] = NodeGraph("a", node, {node: {...: END}})
        document = Document(graph, agents={"inner": AgentEntry(document)})
    return document


@pytest.mark.parametrize("depth", [9, 10, 40, 200])
def test_agents_too_deep_within_one_another_are_not_written(depth: int) -> None:
    """A file has so many levels; files that include one another have more."""
    if depth < 10:
        topology_text(_nested(depth), NAMES)
        return
    with pytest.raises(GraphError, match=r"levels deep.*include"):
        topology_text(_nested(depth), NAMES)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (Document(_graph(), prompt=" "), "says something"),
        (Document(_graph(), tools=("nowhere",)), "no tool is registered as 'nowhere'"),
        (Document(_graph(), agents={"a\x1b": AgentEntry()}), "control character"),
        (Document(_graph(), rules=never("nowhere")), "has no node, outcome or tool 'nowhere'"),
        (Document(_graph(), prompt="x" * 1_000_000), "at most 1,000,000 bytes"),
    ],
    ids=["prompt", "tool", "agent", "rule", "size"],
)
def test_a_document_that_no_reader_takes_is_refused(document: Document, said: str) -> None:
    """The writer reads each text before it returns it."""
    with pytest.raises(GraphError, match=said):
        topology_text(document, NAMES)


def test_a_node_that_reads_back_as_another_is_told() -> None:
    """It is equal to no other, itself included."""
    registry = Registry()
    registry.node(Fickle)
    fickle = Fickle()
    graph: NodeGraph[None] = NodeGraph("a", fickle, {fickle: {...: END}})

    with pytest.raises(GraphError, match="node 'fickle': cannot be written"):
        topology_text(document_of(graph), registry)


def test_the_order_of_ignore_does_not_change_the_fingerprint() -> None:
    """Documents that are equal have one fingerprint."""
    one, two = (("append", "GL2"), "x"), (("", "GL3"), "y")
    first, second = [Document(_graph(), ignore=dict(every)) for every in ((one, two), (two, one))]

    assert first == second
    assert fingerprint_of(first, NAMES) == fingerprint_of(second, NAMES)
