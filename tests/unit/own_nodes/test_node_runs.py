"""@node in a run: a function, or a generator that asks, between the nodes of a graph."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from pathlib import Path

import pytest

from graphloop import END, EndReason, Graph, NodeContext, Runs, Tool, node
from graphloop.conversation.transcript import transcript
from graphloop.effects import AskAgent, AskModel, Invoke, Request, RequestAnswer
from graphloop.errors import AskFailed, ConfigError, GraphError, NotDeterministic, RunFailed
from graphloop.events import Failure, RequestYielded
from graphloop.nodes import Append, Execute, Gate, ModelCall, PrepareStep, StopCheck
from graphloop.outcomes import (
    Answered,
    AnsweredCalls,
    Calls,
    Done,
    Go,
    Ready,
    Resend,
    Settled,
)
from graphloop.own_nodes import Asking, ask_agent, ask_model
from graphloop.own_nodes.node_call import played
from graphloop.own_nodes.requests import ask_person
from graphloop.proofs import bound
from graphloop.run import evolve
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.turn import Dialogue, Exchange
from graphloop.values import ModelRequest, ToolCall, Usage, UserMessage
from tests.own_nodes import Again, Billing, Technical, Ticket, judge, route
from tests.planned_model import PlannedModel
from tests.runs import changed
from tests.strategies import fresh, reply, said, wrong

desk = Graph("desk", route, {route: {Billing: judge, ...: END}, judge: {Again: judge, ...: END}})


CALLED: list[str] = []


@node
def noted(ticket: Ticket, context: NodeContext) -> Billing:
    """Note each call."""
    CALLED.append(context.key)
    return Billing()


def test_a_replay_never_calls_a_function_again(tmp_path: Path) -> None:
    graph = Graph("noted", noted, {noted: {...: END}})
    for store in (MemoryStore(), str(tmp_path / "runs.db"), str(tmp_path / "lines")):
        CALLED.clear()
        result = asyncio.run(graph.run(Ticket("x"), store=store))

        run = asyncio.run(Runs(store, graph).replay(result.run_id))

        assert ["noted.1"] == CALLED
        assert (result.run.state, result.run.seq, True) == (run.state, run.seq, run.ended)


@node(raises={KeyError: Technical})
async def raising(ticket: Ticket) -> Billing | Technical:
    """Raise what the ticket says."""
    if ticket.text == "declared":
        raise KeyError(ticket.text)
    if ticket.text:
        raise ValueError(ticket.text)
    return Billing()


def test_a_function_that_raises_ends_the_run_unless_declared() -> None:
    graph = Graph("raising", raising, {raising: {Technical: noted, ...: END}, noted: {...: END}})
    CALLED.clear()

    with pytest.raises(ValueError, match="oh"):
        asyncio.run(graph.run(Ticket("oh")))
    assert EndReason.COMPLETED == asyncio.run(graph.run(Ticket("declared"))).end_reason

    assert 1 == len(CALLED)


def test_a_row_must_be_complete_and_says_how_to_make_it_so() -> None:
    with pytest.raises(
        GraphError, match=r"add `Failed: <node or END>`, or `...: END` for the rest"
    ):
        Graph("desk", route, {route: {Billing: END, Technical: END}})

    assert {Billing: END, ...: END} == route.row({Billing: END, ...: END})


def test_callbacks_are_still_for_nodes_that_name_them() -> None:
    async def other(run: object) -> object:
        raise NotImplementedError

    with pytest.raises(ConfigError, match="a function that the"):
        asyncio.run(desk.run(Ticket("x"), callbacks={"route": other}))  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]


@node(model_calls=1)
def greedy(ticket: Ticket) -> Asking[Billing]:
    """Ask more than it says."""
    yield from ask_model("one")
    yield from ask_model("two")
    return Billing()


def test_a_generator_is_held_to_what_it_promises() -> None:
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
    graph = Graph("free", free, {free: {...: END}})

    assert None is bound(graph).model_calls
    with pytest.raises(ConfigError, match="asks a model: say which"):
        asyncio.run(graph.run(Ticket("x")))


def work(arguments: object) -> str:
    """Do what a tool does."""
    return "done"


@node
def note(ticket: Ticket, context: NodeContext) -> Billing:
    """Tell the model something on the way."""
    context.tell("Mind the gap.")
    return Billing()


def test_a_function_within_a_turn_tells_after_its_results() -> None:
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


def test_each_visit_has_an_idempotency_key_of_its_own() -> None:
    run = evolve(fresh(), pending={4: Invoke(4, "judge")})
    keys = {NodeContext.of(one, "judge").idempotency_key for one in (run, run)}

    assert 1 == len(keys)
    later = evolve(run, pending={5: Invoke(5, "judge")})
    assert NodeContext.of(later, "judge").idempotency_key not in keys


def test_a_context_takes_what_people_could_have_said() -> None:
    assert "Yes." == NodeContext(answer="Yes.").answer, "a test gives what a function reads"
    context = NodeContext.of(fresh(), "f")
    context.tell("a")

    assert [UserMessage("a", "f")] == context.notes
    with pytest.raises(ConfigError, match="found AssistantMessage"):
        context.tell(wrong(said("I am the model")))
    asking = NodeContext.of(changed(fresh(), dialogue=Dialogue(4, 1, Usage())), "f")
    with pytest.raises(ConfigError, match="write `yield from tell"):
        asking.tell("a")


CLOSED: list[str] = []


MODEL = Exchange(AskModel("one"), reply("two"))


def talk(first: str = "one", asks: int = 2) -> Generator[Request, RequestAnswer, str]:
    """Ask a model, and a person about what it said."""
    try:
        if not asks:
            return "nothing"
        heard = yield from ask_model(first)
        said = yield from ask_person(heard.message.text)
    except AskFailed as error:
        return f"{error.error}: {error}"
    else:
        return f"{said.approved}"
    finally:
        CLOSED.append(first)


def test_a_mistake_below_is_no_answer_to_go_on_from() -> None:
    CLOSED.clear()

    def careless() -> Generator[Request, RequestAnswer, str]:
        try:
            yield from ask_agent("writer", "write")
        except Exception:  # noqa: BLE001 - that is what is tested
            return "never mind"
        finally:
            CLOSED.append("careless")
        return "written"

    wrong = Exchange(AskAgent("writer", "write"), Failure("ConfigError", "no such option"))

    with pytest.raises(ConfigError) as error:
        played(careless(), (wrong,), "careless")
    for words in ("node 'careless'", "request number 1", "AskAgent", "ConfigError: no such option"):
        assert words in str(error.value)
    assert ["careless"] == CLOSED


def failing() -> Generator[Request, RequestAnswer, str]:
    """Fail before the first ask."""
    yield from ()
    raise KeyError("oh")


@pytest.mark.parametrize(
    ("generator", "found"),
    [
        (talk("other"), "expected AskModel(prompt='one'"),
        (talk("other"), "found AskModel(prompt='other'"),
        (talk(asks=0), "found that it returned 'nothing'"),
        (failing(), "found that it raised KeyError: 'oh'"),
    ],
)
def test_a_generator_that_does_something_else_is_stopped(
    generator: Generator[Request, RequestAnswer, str], found: str
) -> None:
    with pytest.raises(NotDeterministic) as error:
        played(generator, (MODEL,), "talk")

    for words in ("node 'talk'", "request number 1", "the journal holds", found, "Fix: let what"):
        assert words in str(error.value)


def test_what_is_no_ask_is_refused_with_what_to_write() -> None:
    def bare() -> Generator[object, object, str]:
        yield ask_model("one")
        return ""

    def odd() -> Generator[object, object, str]:
        yield "tool"
        return ""

    with pytest.raises(ConfigError, match="Fix: write `yield from`, not `yield`"):
        played(bare(), (), "bare")
    with pytest.raises(ConfigError, match=r"found 'tool'.* behind a gate"):
        played(odd(), (), "odd")
    with pytest.raises(ConfigError, match="'early': expected a generator"):
        played("early", (), "early")


@pytest.mark.parametrize("prompt", [5, None, "half a \ud83d"])
def test_what_no_journal_can_keep_is_refused(prompt: object) -> None:
    with pytest.raises(ConfigError, match="AskModel that no journal can keep"):
        played(ask_model(wrong(prompt)), (), "talk")


def stubborn(*, asks: bool) -> Generator[Request, RequestAnswer, str]:
    """Go on when it is closed."""
    try:
        yield from ask_model("one")
    except BaseException:  # noqa: BLE001 - this is what is told about.
        if asks:
            yield from ask_model("two")
        return "all the same"
    return "heard"


def test_a_generator_that_asks_after_its_end_is_refused() -> None:
    with pytest.raises(NotDeterministic, match=r"'talk'.*catches GeneratorExit.*catch `Exception`"):
        played(stubborn(asks=True), (), "talk")

    assert RequestYielded(AskModel("one")) == played(stubborn(asks=False), (), "talk")
