"""sub_graph: a graph as a node, its state made of its parent's, and the rules of both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from graphloop import END, Agent, EndReason, Graph, Runs, allow, budget, deny, node, tool
from graphloop.errors import ConfigError, RunFailed
from graphloop.loop import Standard, standard_edges
from graphloop.outcomes import Aborted, Answered, Failed
from graphloop.own_nodes import ChildResult, sub_graph
from graphloop.own_nodes.sub_graphs import SubGraph
from graphloop.policy.policy import Policy
from graphloop.proofs.bounds import bound
from graphloop.spending import Budget
from graphloop.testing import ScriptedModel
from graphloop.values import ModelRequest, Reply, UserMessage
from tests.own_nodes import Billing, Open, Ticket, route
from tests.strategies import call, reply, wrong

RAN: list[int] = []


@tool
def pay(amount: int) -> str:
    """Pay."""
    RAN.append(amount)
    return "paid"


def payer(**options: Policy) -> Agent:
    """Return an agent that pays once."""
    script: list[Reply | str] = [reply(call("pay", "p", '{"amount": 3}')), "done"]
    return Agent(ScriptedModel(script), tools=[pay], name="payer", **wrong(options))


def keep(ticket: Ticket, result: ChildResult) -> Ticket:
    """Take the answer for a text."""
    return replace(ticket, text=result.text)


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


def test_a_node_s_gate_holds_beside_the_child_s_and_the_run_s() -> None:
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
    assert (None, {Answered: frozenset({"text"})}) == (node.contract.reads, node.contract.writes)
    assert "graph" == node.kind
    assert {Answered, Failed, Aborted} == node.outcomes
    assert Ticket is node.state_type
    bare = sub_graph(child).contract
    assert (frozenset(), {}) == (bare.reads, bare.writes)


def test_a_graph_is_checked_and_bounded_with_its_children() -> None:
    """From the one definition that runs."""
    kid = sub_graph(payer(gate=allow("pay")), output=keep, reads=(), writes={"text"})
    graph = Graph("a", kid, {kid: {Answered: route, ...: END}, route: {...: END}})

    assert not [finding for finding in graph.check().findings if finding.severity == "error"]
    assert 20 * 2 >= (bound(graph).model_calls or 0) >= 20


@pytest.mark.parametrize(
    ("child", "options", "words"),
    [
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
    ],
)
def test_an_option_without_effect_is_refused(
    child: Agent, options: dict[str, object], words: str
) -> None:
    """When the node is made."""
    with pytest.raises(ConfigError, match=words):
        sub_graph(child, **wrong(options))


@tool(needs_approval=True)
def refund(amount: int) -> str:
    """Pay back."""
    return f"{amount} paid"


def agent(*script: str) -> tuple[Agent, ScriptedModel]:
    """Return an agent that may refund, and its model."""
    model = ScriptedModel(script)
    return Agent(model, tools=[refund], name="writer"), model


ASKED: list[str] = []


def ask(ticket: Ticket) -> str:
    """Say what the child is asked, and note that it was."""
    ASKED.append(ticket.text)
    return f"About {ticket.text}?"


def talk(ticket: Ticket) -> list[dict[str, object]]:
    """Ask in messages."""
    return [{"role": "user", "content": ticket.text}]


def silent(ticket: Ticket) -> str:
    """Forget to ask."""
    return cast("str", None)


@pytest.mark.parametrize(
    ("prompt", "asked"),
    [(ask, "About x?"), (talk, "x")],
    ids=["text", "messages"],
)
async def test_the_child_is_asked_and_heard_by_functions_of_the_state(
    prompt: Callable[[Ticket], object], asked: str
) -> None:
    """Its turn is the parent's, too."""
    writer, model = agent("42")
    write: SubGraph[Ticket] = sub_graph(writer, prompt=wrong(prompt), output=keep)

    result = await Graph("a", write, {write: {...: END}}).run(Ticket("x"))

    assert (UserMessage(asked),) == tuple(model.requests[0].messages)
    assert (Ticket("42"), EndReason.COMPLETED) == (result.state, result.end_reason)


def test_a_child_without_a_prompt_reads_the_conversation() -> None:
    """As the `Child` node does; without either there is nothing to ask."""
    writer, model = agent("42")
    write = sub_graph(writer)
    graph = Graph("a", write, {write: {...: END}})

    asyncio.run(graph.run(None, prompt="go"))

    assert (UserMessage("go"),) == tuple(model.requests[0].messages)
    with pytest.raises(ConfigError, match="agent 'writer': expected a message"):
        asyncio.run(graph.run(None))


def begin(pad: Open) -> Ticket:
    """Make the state of a child of its parent's."""
    return Ticket(pad.text)


@node
def count(pad: Open) -> tuple[Billing, Open]:
    """Write into the state, and say nothing."""
    return Billing(), Open(f"{pad.text}!")


def take(pad: Open, result: ChildResult[str, Ticket]) -> Open:
    """Make the parent's of its child's."""
    return Open(result.state.text)


def test_a_child_may_answer_by_its_state_alone() -> None:
    """Not every graph says something in the end."""
    pad = Graph("pad", count, {count: {...: END}})

    def begin(ticket: Ticket) -> Open:
        return Open(ticket.text)

    def take(ticket: Ticket, result: ChildResult[str, Open]) -> Ticket:
        assert ("", EndReason.COMPLETED, ()) == (result.text, result.end_reason, result.messages)
        return replace(ticket, text=result.state.text)

    write = sub_graph(pad, state=begin, output=take)
    result = asyncio.run(Graph("a", write, {write: {...: END}}).run(Ticket("x")))

    assert Ticket("x!") == result.state


def nested() -> Graph[Open]:
    """Return a graph of a graph of an agent, each with a state of its own; new in each process."""

    def say(request: ModelRequest) -> Reply | str:
        again = any(message.role == "assistant" for message in request.messages)
        return "all paid" if again else reply(call("refund", "r", '{"amount": 3}'))

    model = ScriptedModel([say, say], restart=True)
    write = sub_graph(Agent(model, tools=[refund], name="writer"), prompt=ask, output=keep)
    outer = Graph("outer", write, {write: {Answered: route, ...: END}, route: {...: END}})
    kid = sub_graph(outer, state=begin, output=take)
    return Graph("b", kid, {kid: {...: END}})


def test_a_child_that_parks_goes_on_in_another_process(tmp_path: Path) -> None:
    """It is not asked again: what it was asked stands in its own journal, with its own state."""
    ASKED.clear()
    store = str(tmp_path / "runs.db")

    parked = asyncio.run(nested().run(Open("x"), store=store))
    keys = [call.key for call in parked.pending]
    done = asyncio.run(nested().resume(parked.run_id, store=store, approvals={keys[0]: True}))

    assert ["outer.1/writer.1/c0.0"] == keys
    assert (Open("all paid"), EndReason.COMPLETED) == (done.state, done.end_reason)
    assert ["x"] == ASKED
    assert Open("all paid") == asyncio.run(Runs(store, nested()).replay(parked.run_id)).state


def saying(state: object) -> Callable[[Ticket, ChildResult], Ticket]:
    """Return an output that makes this of a child's result."""
    return lambda ticket, result: wrong(state)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"output": keep, "writes": {"team"}}, "as it declares; its `output` changed text"),
        ({"output": saying(None)}, "`output` of node 'writer' returns the new state"),
        ({"output": saying("42")}, "`output` of node 'writer' returns a state of type Ticket"),
        (
            {"output": saying(Ticket("x", wrong(5)))},
            "returns a state that no journal could be read",
        ),
        ({"prompt": silent}, "`prompt` of node 'writer' returns a text or messages"),
    ],
    ids=["writes", "none", "text", "unreadable", "prompt"],
)
async def test_output_and_prompt_are_held_to_their_declarations(
    options: dict[str, object], words: str, tmp_path: Path
) -> None:
    """Else a run parks with it and can never be resumed; the child is paid for all the same."""
    store = str(tmp_path / "runs.db")
    given = {"prompt": ask, "output": keep, **options}
    write = sub_graph(agent("42")[0], **wrong(given))
    graph = Graph("a", write, {write: {...: END}}, state_type=Ticket)

    with pytest.raises(ConfigError, match=words):
        await graph.run(Ticket("x"), store=store, run_id="r")

    kept = await Runs(store, graph).replay("r")
    assert (Ticket("x"), EndReason.ERROR) == (kept.state, kept.ending and kept.ending.reason)


async def later(ticket: Ticket, result: ChildResult | None = None) -> Ticket:
    """Return a state, or a question, when it is awaited."""
    return ticket


@pytest.mark.parametrize("option", ["prompt", "state", "output"])
def test_an_asynchronous_function_of_states_is_refused(option: str) -> None:
    """It would have to be awaited."""
    own = Graph("kid", route, {route: {...: END}})
    child: object = own if option == "state" else agent("42")[0]
    node: SubGraph[Ticket] = wrong(sub_graph(wrong(child), **wrong({option: later})))
    graph: Graph[Ticket] = Graph("a", node, {node: {...: END}}, state_type=Ticket)

    with pytest.raises(ConfigError, match=f"`{option}` of node '.*' returns .*has to be awaited"):
        asyncio.run(graph.run(Ticket("x"), prompt="go"))


@pytest.mark.parametrize("begun", [None, "x", Ticket(wrong(5))])
def test_a_child_begins_with_a_state_of_its_graph_s_type(begun: object, tmp_path: Path) -> None:
    """Before anything is done in it."""

    def begins(_: None) -> Ticket:
        state: Ticket = wrong(begun)
        return state

    own = Graph("kid", route, {route: {...: END}})
    kid: SubGraph[None] = sub_graph(own, state=begins)
    graph: Graph[None] = Graph("a", kid, {kid: {...: END}})

    with pytest.raises(ConfigError, match="graph 'kid' begins with a state"):
        asyncio.run(graph.run(None, store=str(tmp_path / "runs.db")))


def take_number(ticket: Ticket, result: ChildResult[int]) -> Ticket:
    """Take a number for a text."""
    return replace(ticket, text=f"{result.output + 1}")


def test_a_child_s_typed_output_reaches_the_parent() -> None:
    child = Agent(ScriptedModel(['{"value": 41}']), output_type=int, output_mode="native")
    kid = sub_graph(child, prompt=lambda _: "how many?", output=take_number)
    graph = Graph("typed", kid, {kid: {...: END}}, state_type=Ticket)

    result = asyncio.run(graph.run(Ticket("")))

    assert "42" == result.state.text
