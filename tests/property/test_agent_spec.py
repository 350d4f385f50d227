"""Any topology as Open Agent Spec: its own library accepts it, and it reads back as it was."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyagentspec.flows.nodes import AgentNode
from pyagentspec.serialization import AgentSpecSerializer

from graphloop.errors import GraphError
from graphloop.graph import Graph
from graphloop.temporal import at_most, never
from graphloop.topology import TopologyError
from graphloop.topology.agent_spec import read_agent_spec, write_agent_spec
from graphloop.topology.document import AgentEntry, Document
from graphloop.topology.reader import read_text
from graphloop.topology.registration import Names
from graphloop.topology.writer import data_of, yaml_of
from tests import agent_spec_documents as documents
from tests.agent_spec_documents import agent_node, chain, edge, flow, loaded, written
from tests.property.test_topologies import NAMES as OWN
from tests.property.test_topologies import graphs

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(str.strip)


def _written(document: Document) -> str:
    """Return a document as Agent Spec; a graph that never ends well is none."""
    try:
        return write_agent_spec(document, OWN)[0]
    except GraphError as error:
        assume("no way leads to its end" not in str(error))
        raise


@given(graphs(), st.lists(graphs(), max_size=2), texts)
@settings(max_examples=60, deadline=None)
def test_what_is_written_is_accepted_and_reads_back_as_it_was(
    graph: Graph[Any], inner: list[Graph[Any]], said: str
) -> None:
    """Also after the other library has read it and written it again."""
    given_ = dict.fromkeys(["writer", "critic", "no"], AgentEntry())
    agents = {
        name: AgentEntry(Document(one, instructions=said, agents=given_), said)
        for name, one in zip(["writer", "critic"], inner, strict=False)
    }
    made = Document(
        graph,
        prompt=said,
        instructions=said,
        agents={**given_, **agents},
        rules=never("tool:a", before="tool:b") & at_most("tool:c", 3, reason="enough"),
        ignore={("", "GL6"): said},
    )
    # A file brings the graphs of its agents into the nodes that run them.
    document = read_text(yaml_of(data_of(made, OWN)), OWN)
    text = _written(document)

    again = AgentSpecSerializer().to_json(loaded(text))

    assert document == read_agent_spec(text, OWN, allow_refused=True).document
    assert document == read_agent_spec(again, OWN, allow_refused=True).document


agents = st.fixed_dictionaries(
    {
        "system_prompt": texts.filter(lambda one: "{{" not in one),
        "human_in_the_loop": st.booleans(),
        "tools": st.sampled_from(
            [
                [],
                [documents.search()],
                [documents.refund()],
                [documents.refund(), documents.search()],
            ]
        ),
    }
)


@st.composite
def flows(draw: st.DrawFn) -> Any:
    """Return a flow of agents, whose branches lead anywhere, and sometimes a flow within it."""
    given_ = draw(st.lists(agents, min_size=1, max_size=4))
    nodes = [agent_node(f"n{number}", **one) for number, one in enumerate(given_)]
    if not draw(st.booleans()):
        return chain(*nodes)
    line = chain(*nodes)
    branched = AgentNode(
        id="last", name="last", agent=documents.agent("chooser"), branches=["again", "done"]
    )
    start, *middle, end = line.nodes
    ways = [edge(one, to) for one, to in zip([start, *middle], [*middle, branched], strict=True)]
    ways += [edge(branched, nodes[0], "again"), edge(branched, end, "done")]
    return flow([start, *middle, branched, end], ways)


@given(flows())
@settings(max_examples=40, deadline=None)
def test_what_was_read_is_exactly_expressible(component: Any) -> None:
    """Without the topology in the metadata, too: agents in a flow mean the same on both sides."""
    first = read_agent_spec(written(component), documents.NAMES).document

    text, report = write_agent_spec(first, documents.NAMES, carry=False)
    if any(isinstance(one, AgentNode) and len(one.branches) > 1 for one in component.nodes):
        # A choice is an agent that is asked: it reads back as an agent, and a choice.
        assert {"approximated", "exact"} == {one.verdict for one in report}
        return
    second = read_agent_spec(text, documents.NAMES).document

    assert not report.refused
    assert first == second


@given(
    st.lists(
        st.tuples(st.integers(0, 5_000), st.integers(0, 9), st.text('{}[]:,"$ref\n\t1', max_size=9))
    )
)
@settings(max_examples=100, deadline=None)
def test_whatever_is_edited_is_read_or_refused_in_words(edits: list[tuple[int, int, str]]) -> None:
    """A document is whatever somebody sends."""
    text = written(chain(agent_node(tools=[documents.refund()]), agent_node("other")))
    for at, length, said in edits:
        text = text[:at] + said + text[at + length :]

    with suppress(TopologyError):
        assert read_agent_spec(text, documents.NAMES, allow_refused=True).document.graph.nodes


def test_names_of_nobody_are_not_needed() -> None:
    """The strategies register what they name; a reader that is told so does without."""
    text = written(chain(agent_node(tools=[documents.refund()])))

    with pytest.raises(TopologyError, match="no tool is registered as 'refund'"):
        read_agent_spec(text, Names(installed=False))
    assert read_agent_spec(text, Names(installed=False), unregistered=True).document
