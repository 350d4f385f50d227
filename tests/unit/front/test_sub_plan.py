"""How a child run is made of its parent's state, and what of it comes back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from graphloop import END, Agent, ChildResult, EndReason, Graph, node, sub_graph, tool
from graphloop.errors import ConfigError
from graphloop.outcomes import Answered
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
    assert Open("all paid") == asyncio.run(nested().replay(parked.run_id, store=store)).state


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
