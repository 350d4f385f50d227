"""@node: a function is a node, and nothing but its annotations says which."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from graphloop import END, EndReason, Graph, NodeContext, node
from graphloop.errors import ConfigError, GraphError, RunFailed
from graphloop.outcomes import Aborted, Failed
from graphloop.stores.memory import MemoryStore
from tests.own_nodes import Again, Billing, Technical, Ticket, judge, route

CALLED: list[str] = []


@node
def noted(ticket: Ticket, context: NodeContext) -> Billing:
    """Note each call."""
    CALLED.append(context.key)
    return Billing()


@node(raises={KeyError: Technical})
async def raising(ticket: Ticket) -> Billing | Technical:
    """Raise what the ticket says."""
    if ticket.text == "declared":
        raise KeyError(ticket.text)
    if ticket.text:
        raise ValueError(ticket.text)
    return Billing()


desk = Graph("desk", route, {route: {Billing: judge, ...: END}, judge: {Again: judge, ...: END}})


def test_a_function_is_a_node_by_its_annotations() -> None:
    """Its name, its outcomes, its kind, and what it works on."""
    assert ("route", "pure") == (route.name, route.kind)
    assert {Billing, Technical, Failed, Aborted} == route.outcomes
    assert Ticket is route.state_type is desk.state_type
    assert "Decide by the text." == route.function.__doc__


def test_functions_run_without_a_model_a_prompt_or_callbacks() -> None:
    """They travel with their nodes."""
    result = asyncio.run(desk.run(Ticket("an invoice")))

    assert (EndReason.COMPLETED, 3, 0) == (result.end_reason, result.state.tries, len(result.steps))
    other = asyncio.run(desk.run(Ticket("a crash")))
    assert Ticket("a crash") == other.state


def test_a_replay_never_calls_a_function_again(tmp_path: Path) -> None:
    """Its answer is a fact; the store may be of any kind."""
    graph = Graph("noted", noted, {noted: {...: END}})
    for store in (MemoryStore(), str(tmp_path / "runs.db"), str(tmp_path / "lines")):
        CALLED.clear()
        result = asyncio.run(graph.run(Ticket("x"), store=store))

        run = asyncio.run(graph.replay(result.run_id, store=store))

        assert ["noted.1"] == CALLED
        assert (result.run.state, result.run.seq, True) == (run.state, run.seq, run.ended)


def test_a_state_comes_back_from_a_store_as_what_it_was(tmp_path: Path) -> None:
    """At each event: what a function returned, as well as what the run began with."""
    store = str(tmp_path / "runs.db")
    result = asyncio.run(desk.run(Ticket("an invoice"), store=store))

    states = [
        asyncio.run(desk.replay(result.run_id, store=store, upto=at)).state
        for at in range(1, result.run.seq + 1)
    ]

    assert [0, 0, 1, 2, 3] == [one.tries for one in states]
    assert all(isinstance(one, Ticket) for one in states)


def test_a_run_goes_on_where_its_process_died(tmp_path: Path) -> None:
    """What has answered is not asked again, and the next visit has the key it had."""
    store = str(tmp_path / "runs.db")
    result = asyncio.run(desk.run(Ticket("an invoice"), store=store))

    copy = asyncio.run(desk.fork(result.run_id, store=store, at=3))
    again = asyncio.run(desk.resume(copy, store=store))

    assert (result.state, EndReason.COMPLETED) == (again.state, again.end_reason)


def test_a_function_that_raises_ends_the_run_unless_that_is_declared() -> None:
    """With the very exception; or by the outcome that stands for it."""
    graph = Graph("raising", raising, {raising: {Technical: noted, ...: END}, noted: {...: END}})
    CALLED.clear()

    with pytest.raises(ValueError, match="oh"):
        asyncio.run(graph.run(Ticket("oh")))
    assert EndReason.COMPLETED == asyncio.run(graph.run(Ticket("declared"))).end_reason

    assert 1 == len(CALLED)


def test_a_cap_that_is_reached_ends_the_run() -> None:
    """A loop without another bound is bounded by it."""

    async def forever() -> None:
        graph = Graph("loop", again, {again: {Again: again, ...: END}})
        await graph.run(Ticket("x"))

    with pytest.raises(RunFailed, match="may leave by 'again' 2 times"):
        asyncio.run(forever())


@node(cap={Again: 2})
def again(ticket: Ticket) -> Again | Billing:
    """Never be content."""
    return Again()


def test_a_row_must_be_complete_and_says_how_to_make_it_so() -> None:
    """`...: END` is what most rows want."""
    with pytest.raises(
        GraphError, match=r"add `Failed: <node or END>`, or `...: END` for the rest"
    ):
        Graph("desk", route, {route: {Billing: END, Technical: END}})

    assert {Billing: END, ...: END} == route.row({Billing: END, ...: END})


def test_callbacks_are_still_for_nodes_that_name_them() -> None:
    """One that a node brings along is not given twice."""

    async def other(run: object) -> object:
        raise NotImplementedError

    with pytest.raises(ConfigError, match="a function that the node of that name brings along"):
        asyncio.run(desk.run(Ticket("x"), callbacks={"route": other}))  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
