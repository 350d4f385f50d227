"""Which graphs are proven along, and by what name each is told."""

from __future__ import annotations

from graphloop.agent.graph import Graph
from graphloop.graph import END, Edges, NodeGraph, Surroundings
from graphloop.nodes import Append, Child
from graphloop.own_nodes.sub_graphs import sub_graph
from graphloop.policy.policy import allow, ask, deny
from graphloop.proofs.checking import check
from graphloop.proofs.nested import NEST_MAX, USES_MAX, graph_uses, unknown_children
from graphloop.proofs.report import PROPERTIES
from graphloop.providers.script import ScriptedModel
from graphloop.spending import Budget
from tests.nested_graphs import nest, shared, ungated


def test_no_graph_is_left_out_however_many_uses_there_are() -> None:
    """Past the first of them, each is still there once."""
    uses = graph_uses(shared(ungated(), 40), None).reported

    assert 41 == len({one.key for one in uses})
    assert len(uses) <= USES_MAX + 41


def test_a_named_or_too_deep_agent_is_unknown() -> None:
    """Everything that is proven of a graph is open then."""
    child, append = Child("desk"), Append()
    edges: Edges[None] = {child: {...: append}, append: {...: END}}
    (named,) = graph_uses(NodeGraph("g", child, edges), None).reported
    deep = graph_uses(nest(ungated(), NEST_MAX + 1), None).reported

    codes = [*PROPERTIES]
    assert codes == [one.code for one in unknown_children(named)]
    assert [(NEST_MAX, codes)] == [
        (len(one.path), found)
        for one in deep
        if (found := [each.code for each in unknown_children(one)])
    ]


def test_every_limit_of_those_above_holds_below() -> None:
    """A child that names one limit has the others of its parent, and so have its own children."""
    model = ScriptedModel([])
    inner = sub_graph(ungated(), name="inner", model=model, budget=Budget(usd=100))
    middle: Graph[None] = Graph("middle", inner, {inner: {...: END}})
    outer = sub_graph(middle, name="middle", model=model, budget=Budget(tool_calls=5))
    graph: NodeGraph[None] = NodeGraph("outer", outer, {outer: {...: END}})

    told = [one.budget for one in graph_uses(graph, Budget(usd=1)).reported]
    (finding,) = [one for one in check(graph, budget=Budget(usd=1)).findings if one.code == "GL9"]

    assert [Budget(usd=1), Budget(usd=1, tool_calls=5), Budget(usd=1, tool_calls=5)] == told
    assert "middle/inner" == finding.node
    assert "may spend 100 usd, its parent 1" in finding.message


def test_an_agent_does_not_hide_a_graph_of_the_same_name() -> None:
    """What a node brings along is what it runs."""
    own = sub_graph(ungated(), name="desk", model=ScriptedModel([]))
    graph: NodeGraph[None] = NodeGraph("outer", own, {own: {...: END}})
    graph.surroundings = Surroundings(agents={"desk": nest(ungated(), 1)})

    assert ["bad"] == [one.graph.name for one in graph_uses(graph, None).reported[1:]]


def test_the_gates_of_all_above_hold_below() -> None:
    """A child of a child that would allow what they deny claims more than it may."""
    model = ScriptedModel([])
    inner = sub_graph(nest(ungated(), 1), name="inner", model=model, gate=allow("pay*"))
    middle: Graph[None] = Graph("middle", inner, {inner: {...: END}})
    outer = sub_graph(middle, name="middle", model=model, gate=deny("pay*"))
    graph: NodeGraph[None] = NodeGraph("outer", outer, {outer: {...: END}})

    assert not any(one.code == "GL9" for one in check(middle).findings)
    (finding,) = [one for one in check(graph).findings if one.code == "GL9"]
    assert "middle/inner" == finding.node
    assert "'inner' would allow 'payx', that of its parent would deny" in finding.message


def test_a_graph_under_too_many_gates_is_unknown() -> None:
    """Twice a level, with another gate each time: the ways double, what is looked at does not."""
    inner = nest(ungated(), 1)
    for level in range(12):
        first, second = (
            sub_graph(
                inner,
                name=f"c{level}-{at}",
                model=ScriptedModel([]),
                gate=ask("*", ttl_s=10 * level + at + 1),
            )
            for at in range(2)
        )
        inner = Graph(f"g{level}", first, {first: {...: second}, second: {...: END}})

    uses, report = graph_uses(inner, None), check(inner)

    assert len(uses.reported) < USES_MAX + 14
    assert uses.beyond
    assert "GL9" not in report.proven
    assert any("in more places than are looked at" in one.reason for one in report.unknown)


def parents(count: int, *, excused: int) -> Graph[None]:
    """Return graphs that each run one ungated child; so many of them set that aside."""
    child = ungated()
    told = {("c/execute", "GL2"): "looked at"}
    runs = [
        sub_graph(
            Graph(
                f"m{at}",
                (one := sub_graph(child, name="c", model=ScriptedModel([]))),
                {one: {...: END}},
                ignore=told if at < excused else None,
            ),
            name=f"m{at}",
        )
        for at in range(count)
    ]
    rows: Edges[None] = {
        one: {...: runs[at + 1] if at + 1 < count else END} for at, one in enumerate(runs)
    }
    return Graph("parents", runs[0], rows)


def test_a_reason_holds_at_its_own_place_only() -> None:
    """A graph that has been told where it is excused has not been told where it is not."""
    count = USES_MAX
    report = check(parents(count, excused=count - 1))

    assert f"m{count - 1}/c/execute" in [one.node for one in report.findings if one.code == "GL2"]
