"""@node: a function is a node, and nothing but its annotations says which."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from graphloop import END, Agent, EndReason, Graph, NodeContext, Tool, approve, node
from graphloop.agent.runs import Runs
from graphloop.conversation.transcript import transcript
from graphloop.errors import ConfigError, GraphError, RunFailed
from graphloop.nodes import Append, Execute, Gate, ModelCall, PrepareStep, StopCheck
from graphloop.outcomes import (
    Aborted,
    Answered,
    AnsweredCalls,
    Calls,
    Done,
    Failed,
    Go,
    Ready,
    Resend,
    Settled,
)
from graphloop.own_nodes import Asking, ask_agent, ask_model
from graphloop.proofs.bounds import bound
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.values import ModelRequest, ToolCall, UserMessage
from tests.own_nodes import Again, Billing, Technical, Ticket, judge, route
from tests.planned_model import PlannedModel

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

        run = asyncio.run(Runs(store, graph).replay(result.run_id))

        assert ["noted.1"] == CALLED
        assert (result.run.state, result.run.seq, True) == (run.state, run.seq, run.ended)


def test_a_state_comes_back_from_a_store_as_what_it_was(tmp_path: Path) -> None:
    """At each event: what a function returned, as well as what the run began with."""
    store = str(tmp_path / "runs.db")
    result = asyncio.run(desk.run(Ticket("an invoice"), store=store))

    states = [
        asyncio.run(Runs(store, desk).replay(result.run_id, upto=at)).state
        for at in range(1, result.run.seq + 1)
    ]

    assert [0, 0, 1, 2, 3] == [one.tries for one in states]
    assert all(isinstance(one, Ticket) for one in states)


def test_a_run_goes_on_where_its_process_died(tmp_path: Path) -> None:
    """What has answered is not asked again, and the next visit has the key it had."""
    store = str(tmp_path / "runs.db")
    result = asyncio.run(desk.run(Ticket("an invoice"), store=store))

    copy = asyncio.run(Runs(store, desk).fork(result.run_id, at=3))
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


@node(model_calls=1)
def greedy(ticket: Ticket) -> Asking[Billing]:
    """Ask more than it says."""
    yield from ask_model("one")
    yield from ask_model("two")
    return Billing()


def test_a_generator_is_held_to_what_it_promises() -> None:
    """The bound that is proven is true: the model is not asked a second time."""
    graph, asked = Graph("greedy", greedy, {greedy: {...: END}}), list[str]()

    def answer(request: ModelRequest) -> str:
        asked.append(transcript(request.messages, 99))
        return "x"

    with pytest.raises(RunFailed, match=r"asks 1 models at most.* it was not sent"):
        asyncio.run(graph.run(Ticket("x"), model=ScriptedModel([answer, answer])))

    assert (["user: one"], 1) == (asked, bound(graph).model_calls)


@node
def free(ticket: Ticket) -> Asking[Billing]:
    """Promise nothing."""
    yield from ask_model("one")
    return Billing()


def test_a_generator_that_promises_nothing_has_no_bound() -> None:
    """Unknown is never proven; and it asks a model, so there must be one."""
    graph = Graph("free", free, {free: {...: END}})

    assert None is bound(graph).model_calls
    with pytest.raises(ConfigError, match="asks a model: say which"):
        asyncio.run(graph.run(Ticket("x")))


def work(arguments: object) -> str:
    """Do what a tool does."""
    return "done"


@node(agents={"helper": 1})
def delegate(ticket: Ticket) -> Asking[tuple[Billing, Ticket]]:
    """Have an agent answer; it has tools, behind its own gate."""
    text = yield from ask_agent("helper", ticket.text)
    return Billing(), Ticket(text)


def test_a_generator_has_agents_answer_in_runs_of_their_own(tmp_path: Path) -> None:
    """A parked one parks the run, and goes on with it."""
    asked = [ToolCall("1", "pay", "{}")]
    model = PlannedModel(lambda _: [asked, "paid it"])
    pay = Tool(name="pay", parameters={"type": "object"}, execute=work, needs_approval=True)
    helper = Agent(model, tools=[pay]).as_tool(name="helper", description="Helps.")
    graph = Graph("delegate", delegate, {delegate: {...: END}})
    store = str(tmp_path / "runs.db")

    async def run() -> tuple[EndReason, str, str]:
        parked = await graph.run(
            Ticket("pay"), model=model, agents={"helper": helper}, store=store, run_id="r"
        )
        (pending,) = parked.pending
        result = await graph.resume(
            "r",
            model=model,
            agents={"helper": helper},
            store=store,
            approvals={pending.key: approve()},
        )
        return result.end_reason, result.state.text, pending.name

    assert (EndReason.COMPLETED, "paid it", "pay") == asyncio.run(run())


@node
def note(ticket: Ticket, context: NodeContext) -> Billing:
    """Tell the model something on the way."""
    context.tell("Mind the gap.")
    return Billing()


def test_a_function_in_the_midst_of_a_turn_tells_after_its_results() -> None:
    """A conversation in which something stands between calls and results is refused by servers."""
    read = Tool(name="read", parameters={"type": "object"}, execute=work)
    prepare, model, gate, execute, append = (
        PrepareStep(),
        ModelCall(),
        Gate(),
        Execute(),
        Append(),
    )
    stop = StopCheck(max_steps=3)
    graph = Graph(
        "noted",
        prepare,
        {
            prepare: {Ready: model, ...: END},
            model: {Calls: gate, Answered: append, ...: END},
            gate: {Settled: note, ...: END},
            note: {Billing: execute, ...: END},
            execute: {Done: append, ...: END},
            append: {AnsweredCalls: stop, Resend: stop, ...: END},
            stop: {Go: prepare, ...: END},
        },
        state_type=Ticket,
    )
    script = PlannedModel(lambda _: [[ToolCall("1", "read", "{}")], "done"])

    result = asyncio.run(graph.run(Ticket("x"), model=script, prompt="go", tools=[read]))

    kinds = [type(one).__name__ for one in result.messages]
    assert ["AssistantMessage", "ToolResult", "UserMessage", "AssistantMessage"] == kinds
    assert UserMessage("Mind the gap.", "note") == result.messages[2]
