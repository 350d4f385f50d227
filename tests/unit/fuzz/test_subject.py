"""Subject: what is fuzzed, and with which tools."""

from __future__ import annotations

from graphloop import Graph, ask, deny
from graphloop.events import Setup
from graphloop.fuzz.subject import Subject, invented_tools, rules_of_gate
from graphloop.nodes import Gate
from graphloop.temporal import never
from tests.unit.fuzz.planted import table


def gated() -> Graph[None]:
    """Return a loop whose gate names tools."""
    rules = (deny("drop_table", "db_*") | ask("pay")).rules
    return table(lambda node: Gate(rules=rules) if node.kind == "gate" else node)


def test_the_tools_that_gates_and_rules_name_are_among_the_invented_ones() -> None:
    """A rule about a tool that nobody can call would never be tried."""
    graph = gated()

    tools = invented_tools(graph, never("tool:deploy", before="approval:merge"))

    names = [one.name for one in tools]
    assert {"drop_table", "pay", "deploy", "merge"} < set(names)
    assert "db_*" not in names
    assert {"function", "client", "agent"} == {one.kind for one in tools}
    assert [2, 0] == [len(rules_of_gate(graph.nodes[one])) for one in ("gate", "append")]


def test_the_mark_tells_a_changed_table_and_changed_tools() -> None:
    """The same choices make another run then."""
    graph = gated()
    subject = Subject(graph, None, Setup("model", invented_tools(graph)))

    assert subject.mark == Subject(gated(), None, subject.setup).mark
    assert subject.mark != Subject(table(), None, Setup("model")).mark
    assert subject.mark != Subject(graph, None, Setup("model")).mark
