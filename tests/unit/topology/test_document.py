"""All that a file says."""

from __future__ import annotations

from graphloop.graph import END, NodeGraph
from graphloop.nodes import Append, Child, Retrying
from graphloop.topology.document import AgentEntry, Document, document_of, documents_below


def test_the_agents_of_a_graph_are_found_at_any_depth() -> None:
    """Each has to be declared in the file that is written."""
    retrying: Retrying[None] = Retrying(Child("writer"), 2)
    graph: NodeGraph[None] = NodeGraph("a", retrying, {retrying: {...: END}})

    assert {"writer": AgentEntry()} == document_of(graph).agents


def test_the_size_counts_agents_of_agents() -> None:
    """So that a small file cannot mean a large topology."""
    graph: NodeGraph[None] = NodeGraph("a", Append(), {Append(): {...: END}})
    one = Document(graph)
    two = Document(graph, agents={"a": AgentEntry(one), "b": AgentEntry(one)})

    assert 7 == Document(graph, agents={"a": AgentEntry(two), "b": AgentEntry(two)}).size


def test_documents_that_are_used_on_many_levels_are_looked_at_once() -> None:
    """Thirty levels of two would be a billion."""
    graph: NodeGraph[None] = NodeGraph("a", Append(), {Append(): {...: END}})
    document = Document(graph)
    for _ in range(30):
        document = Document(graph, agents={"a": AgentEntry(document), "b": AgentEntry(document)})

    assert 30 == len(list(documents_below(document.agents)))
    assert [] == list(documents_below({"a": AgentEntry()}))
