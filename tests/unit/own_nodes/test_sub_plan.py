"""How a child run is made of its parent's state, and what of it comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from graphloop import END, Agent, EndReason, Graph, node, tool
from graphloop.agent.runs import Runs
from graphloop.errors import ConfigError
from graphloop.outcomes import Answered
from graphloop.own_nodes import ChildResult, sub_graph
from graphloop.own_nodes.sub_graphs import SubGraph
from graphloop.testing import ScriptedModel
from graphloop.values import ModelRequest, Reply, UserMessage
from tests.own_nodes import Billing, Open, Ticket, route
from tests.strategies import call, reply, wrong

ASKED: list[str] = []


@tool(needs_approval=True)
def refund(amount: int) -> str:
    """Pay back."""
    return f"{amount} paid"


def ask(ticket: Ticket) -> str:
    """Say what the child is asked, and note that it was."""
    ASKED.append(ticket.text)
    return f"About {ticket.text}?"


def keep(ticket: Ticket, result: ChildResult[None]) -> Ticket:
    """Take the answer for a text."""
    return replace(ticket, text=result.text)


def agent(*script: str) -> tuple[Agent, ScriptedModel]:
    """Return an agent that may refund, and its model."""
    model = ScriptedModel(script)
    return Agent(model, tools=[refund], name="writer"), model


def test_the_child_is_asked_and_heard_by_functions_of_the_state() -> None:
    """Its turn is the parent's, too."""
    writer, model = agent("42")
    write = sub_graph(writer, prompt=ask, output=keep)

    result = asyncio.run(Graph("a", write, {write: {...: END}}).run(Ticket("x")))

    assert (UserMessage("About x?"),) == tuple(model.requests[0].messages)
    assert (Ticket("42"), EndReason.COMPLETED) == (result.state, result.end_reason)


def test_a_child_without_a_prompt_reads_the_conversation() -> None:
    """As the `Child` node does; without either there is nothing to ask."""
    writer, model = agent("42")
    write = sub_graph(writer)
    graph = Graph("a", write, {write: {...: END}})

    asyncio.run(graph.run(None, prompt="go"))

    assert (UserMessage("go"),) == tuple(model.requests[0].messages)
    with pytest.raises(ConfigError, match="agent 'writer' is given no message"):
        asyncio.run(graph.run(None))


@node
def count(pad: Open) -> tuple[Billing, Open]:
    """Write into the state, and say nothing."""
    return Billing(), Open(f"{pad.text}!")


def test_a_child_may_answer_by_its_state_alone() -> None:
    """Not every graph says something in the end."""
    pad = Graph("pad", count, {count: {...: END}})

    def begin(ticket: Ticket) -> Open:
        return Open(ticket.text)

    def take(ticket: Ticket, result: ChildResult[Open]) -> Ticket:
        assert ("", EndReason.COMPLETED, ()) == (result.text, result.end_reason, result.messages)
        return replace(ticket, text=result.state.text)

    write = sub_graph(pad, state=begin, output=take)
    result = asyncio.run(Graph("a", write, {write: {...: END}}).run(Ticket("x")))

    assert Ticket("x!") == result.state


def begin(pad: Open) -> Ticket:
    """Make the state of a child of its parent's."""
    return Ticket(pad.text)


def take(pad: Open, result: ChildResult[Ticket]) -> Open:
    """Make the parent's of its child's."""
    return Open(result.state.text)


def nested() -> Graph[Open]:
    """Return a graph of a graph of an agent, each with a state of its own; new in each process."""

    def say(request: ModelRequest) -> Reply | str:
        again = any(one.role == "assistant" for one in request.messages)
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
    keys = [one.key for one in parked.pending]
    done = asyncio.run(nested().resume(parked.run_id, store=store, approvals={keys[0]: True}))

    assert ["outer.1/writer.1/c0.0"] == keys
    assert (Open("all paid"), EndReason.COMPLETED) == (done.state, done.end_reason)
    assert ["x"] == ASKED
    assert Open("all paid") == asyncio.run(Runs(store, nested()).replay(parked.run_id)).state


def test_what_comes_back_is_held_to_what_was_declared() -> None:
    """A wrong function ends the run, whose child is paid for all the same."""
    held = sub_graph(agent("42")[0], prompt=ask, output=keep, writes={"team"})
    nothing = sub_graph(agent("42")[0], prompt=ask, output=lose)

    for write, words in (
        (held, "writes team, as it declares; its `output` changed text"),
        (nothing, "`output` of node 'writer' returns the new state"),
    ):
        with pytest.raises(ConfigError, match=words):
            asyncio.run(Graph("a", write, {write: {...: END}}).run(Ticket("x")))


def lose(ticket: Ticket, result: ChildResult[None]) -> Ticket:
    """Forget to return the state."""
    nothing: Ticket = wrong(None)
    return nothing


def test_a_prompt_is_a_text_or_messages() -> None:
    """As everywhere."""
    writer, model = agent("42")

    def talk(ticket: Ticket) -> list[dict[str, object]]:
        return [{"role": "user", "content": ticket.text}]

    write = sub_graph(writer, prompt=talk, output=keep)
    asyncio.run(Graph("a", write, {write: {...: END}}).run(Ticket("x")))

    assert (UserMessage("x"),) == tuple(model.requests[0].messages)


async def later(ticket: Ticket, result: ChildResult[None] | None = None) -> Ticket:
    """Return a state, or a question, when it is awaited."""
    return ticket


def spoilt(ticket: Ticket, result: ChildResult[None]) -> Ticket:
    """Return a state of the right class, a part of which is of a wrong type."""
    return replace(ticket, team=wrong(5))


def words_alone(ticket: Ticket, result: ChildResult[None]) -> Ticket:
    """Return no state."""
    state: Ticket = wrong(result.text)
    return state


@pytest.mark.parametrize("option", ["prompt", "state", "output"])
def test_a_function_of_states_is_no_asynchronous_one(option: str) -> None:
    """Nobody would await it; a lambda that calls one shows it when it is called."""
    own = Graph("kid", route, {route: {...: END}})
    child: object = own if option == "state" else agent("42")[0]
    with pytest.raises(ConfigError, match=f"`{option}` of node '.*' maps values.*a plain `def`"):
        sub_graph(wrong(child), **wrong({option: later}))

    def hiding(ticket: Ticket, result: ChildResult[None] | None = None) -> object:
        return later(ticket, result)

    hidden: SubGraph[Ticket] = sub_graph(wrong(child), **wrong({option: hiding}))
    graph: Graph[Ticket] = Graph("a", hidden, {hidden: {...: END}}, state_type=Ticket)
    with pytest.raises(ConfigError, match=f"`{option}` of node '.*' returns .*has to be awaited"):
        asyncio.run(graph.run(Ticket("x"), prompt="go"))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (words_alone, "`output` of node 'writer' returns a state of type Ticket"),
        (spoilt, "`output` of node 'writer' returns a state that no journal could be read back"),
    ],
)
def test_a_state_that_nobody_could_read_back_is_refused_where_it_is_made(
    made: Callable[[Ticket, ChildResult[None]], Ticket], words: str, tmp_path: Path
) -> None:
    """Else a run parks with it, and can never be resumed: all that was paid for is lost."""
    store = str(tmp_path / "runs.db")
    write = sub_graph(agent("42")[0], prompt=ask, output=made)
    graph = Graph("a", write, {write: {...: END}}, state_type=Ticket)

    with pytest.raises(ConfigError, match=words):
        asyncio.run(graph.run(Ticket("x"), store=store, run_id="r"))

    kept = asyncio.run(Runs(store, graph).replay("r"))
    assert (Ticket("x"), EndReason.ERROR) == (kept.state, kept.ending and kept.ending.reason)


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


def test_a_prompt_that_is_none_is_named() -> None:
    """By the node that it is of."""

    def silent(ticket: Ticket) -> str:
        prompt: str = wrong(None)
        return prompt

    write = sub_graph(agent("42")[0], prompt=silent, output=keep)

    with pytest.raises(ConfigError, match="`prompt` of node 'writer' returns a text or messages"):
        asyncio.run(Graph("a", write, {write: {...: END}}).run(Ticket("x")))
