"""sub_graph: a graph as a node, under rules and a budget of its own, and all those above."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from graphloop import END, Agent, Graph, allow, budget, deny, tool
from graphloop.errors import ConfigError, RunFailed
from graphloop.loop import Standard, standard_edges
from graphloop.outcomes import Aborted, Answered, Failed
from graphloop.own_nodes import ChildResult, sub_graph
from graphloop.policy.policy import Policy
from graphloop.proofs.bounds import bound
from graphloop.spending import Budget
from graphloop.testing import ScriptedModel
from graphloop.values import Reply
from tests.own_nodes import Ticket, route
from tests.strategies import call, reply, wrong

RAN: list[int] = []


@tool
def pay(amount: int) -> str:
    """Pay."""
    RAN.append(amount)
    return "paid"


def keep(ticket: Ticket, result: ChildResult[None]) -> Ticket:
    """Take the answer for a text."""
    return replace(ticket, text=result.text)


def payer(**options: Policy) -> Agent:
    """Return an agent that pays once."""
    script: list[Reply | str] = [reply(call("pay", "p", '{"amount": 3}')), "done"]
    return Agent(ScriptedModel(script), tools=[pay], name="payer", **wrong(options))


def ran(
    child: Agent,
    *,
    gate: Policy | None = None,
    limit: Budget | None = None,
    above: Policy | None = None,
) -> tuple[str, list[int]]:
    """Return a run's answer, and what its child's tool did."""
    RAN.clear()
    kid = sub_graph(child, output=keep, gate=gate, budget=limit)
    graph = Graph("a", kid, {kid: {...: END}})
    result = asyncio.run(graph.run(Ticket("x"), prompt="go", gate=above))
    return result.state.text, list(RAN)


def test_a_gate_of_a_node_holds_beside_those_of_the_child_and_the_run() -> None:
    """Each of them must let a call through."""
    yes, no = allow("pay"), deny("pay")

    assert ("done", [3]) == ran(payer())
    assert ("done", [3]) == ran(payer(gate=yes), gate=yes, above=yes)
    assert ("done", []) == ran(payer(gate=no), gate=yes, above=yes)
    assert ("done", []) == ran(payer(gate=yes), gate=no, above=yes)
    assert ("done", []) == ran(payer(gate=yes), gate=yes, above=no)


def test_a_graph_s_own_gate_holds_in_its_child_runs() -> None:
    """Of a tool, of a node: whoever starts it."""
    nodes = Standard()
    inner = Graph("inner", nodes.prepare, standard_edges(nodes))
    model = ScriptedModel([reply(call("pay", "p", '{"amount": 3}')), "done"])
    RAN.clear()
    kid = inner.as_tool(None, model=model, description="", tools=[pay], gate=deny("pay"))
    boss = Agent(ScriptedModel([reply(call("inner", "i", '{"prompt": "go"}')), "end"]), tools=[kid])

    asyncio.run(boss.generate("go"))

    assert [] == RAN


def test_a_budget_of_a_node_is_never_more_than_what_is_left() -> None:
    """Whichever is stricter."""
    kid = sub_graph(payer(), output=keep, budget=budget(tool_calls=9))
    graph = Graph("a", kid, {kid: {...: END}})

    assert [3] == ran(payer(), limit=budget(tool_calls=2))[1]
    with pytest.raises(RunFailed, match="budget"):
        ran(payer(), limit=budget(tokens=1))
    with pytest.raises(RunFailed, match="budget"):
        asyncio.run(graph.run(Ticket("x"), prompt="go", budget=budget(tokens=1)))


def test_the_contract_brings_the_child_to_the_proofs() -> None:
    """With its graph, its rules and its budget; and what it reads and writes of the state."""
    child = payer()
    gate, limit = deny("pay"), budget(usd=1)
    node = sub_graph(child, name="kid", output=keep, gate=gate, budget=limit, writes={"text"})

    (told,) = node.contract.children
    assert ("kid", child.graph) == (told.name, told.graph)
    assert (gate.rules, limit) == (told.gate_rules, told.budget)
    assert (None, frozenset({"text"})) == (told.reads, told.writes)
    assert (None, frozenset({"text"})) == (node.contract.reads, node.contract.writes)
    assert "graph" == node.kind
    assert {Answered, Failed, Aborted} == node.outcomes
    assert Ticket is node.state_type
    bare = sub_graph(child).contract
    assert (frozenset(), frozenset()) == (bare.reads, bare.writes)


def test_a_graph_is_checked_and_bounded_with_its_children() -> None:
    """From the one definition that runs."""
    kid = sub_graph(payer(gate=allow("pay")), output=keep, reads=(), writes={"text"})
    graph = Graph("a", kid, {kid: {Answered: route, ...: END}, route: {...: END}})

    assert not [one for one in graph.check().findings if one.severity == "error"]
    assert 20 * 2 >= (bound(graph).model_calls or 0) >= 20


@pytest.mark.parametrize(
    ("child", "options", "words"),
    [
        (payer(), {"model": "openai:x"}, "`model` is for a graph; agent 'payer' has its own"),
        (payer(), {"gate": deny("pya")}, "'pya'"),
        (Graph("g", route, {route: {...: END}}), {}, "graph 'g' carries a state"),
        (
            Graph("g", route, {route: {...: END}}),
            {"state": keep, "gate": deny("*")},
            "`gate` of node 'g' has no effect",
        ),
        (
            Graph("g", route, {route: {...: END}}),
            {"state": keep, "options": {"budget": budget(usd=1)}},
            "`budget` has a place of its own",
        ),
        ("agent", {}, "a sub-graph is an Agent or a Graph; found 'agent'"),
    ],
)
def test_what_cannot_take_effect_is_refused(
    child: Agent, options: dict[str, object], words: str
) -> None:
    """When the node is made."""
    with pytest.raises(ConfigError, match=words):
        sub_graph(child, **wrong(options))
