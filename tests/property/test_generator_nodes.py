"""Nodes that are generators: as good as a chain of classes, and nothing is done twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphloop import END, Approval, EndReason, Graph, Pending, approve, node, tool
from graphloop.agent.runs import Runs
from graphloop.effects import AskHuman, CallModel, Invoke
from graphloop.errors import ConfigError, NotDeterministic
from graphloop.events import (
    CallbackReturned,
    Decided,
    EffectFailed,
    Event,
    ModelReplied,
    RequestYielded,
)
from graphloop.own_nodes import Asking, ask_model, ask_person, tell
from graphloop.providers.base import StreamItem
from graphloop.replay import replay, replay_steps
from graphloop.stores.memory import MemoryStore
from graphloop.values import AssistantMessage, FinishReason, ModelRequest, Reply, TextPart, Usage
from tests.generator_nodes import Finished, Line, Programme, as_chain, as_generator, perform
from tests.mortal_store import Died, Fate, MortalStore

words = st.sampled_from(["a", "b", "c", "bad"])
lines: st.SearchStrategy[Line] = st.tuples(
    st.sampled_from(("model", "aloud", "person", "tell")), words
)
programmes = st.lists(lines, min_size=1, max_size=6).map(tuple)


class Echo:
    """A model that repeats what it reads, and counts how often it was asked what."""

    label = "echo"

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def session(self) -> Echo:
        return self

    async def aclose(self) -> None:
        """Do nothing."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        text = " ".join(str(getattr(one, "content", "")) for one in request.messages)
        self.asked[text] += 1
        if text.endswith("bad"):
            raise ValueError("a bad word")
        message = AssistantMessage((TextPart(f"heard {text}"),))
        yield Reply(message, FinishReason.STOP, Usage(3, 4), model="echo")


async def decide(pending: Pending) -> Approval:
    """Agree to what has no b."""
    return Approval('"b"' not in pending.arguments, "so I say")


async def undisturbed(graph: Graph[Programme], programme: Programme) -> Sequence[Event]:
    """Return the journal of a run in a world without accidents."""
    store = MemoryStore()
    result = await graph.run(
        programme,
        model=Echo(),
        prompt="go",
        store=store,
        run_id="r",
        approve_tool_call=decide,
    )
    assert EndReason.COMPLETED == result.end_reason
    return await store.load("r")


def asked(graph: Graph[Programme], events: Sequence[Event]) -> list[object]:
    """Return the effects of a journal and their answers, but those of calling the generator."""
    told: list[object] = []
    for step in replay_steps(graph, events):
        match step.event:
            case ModelReplied(reply=reply):
                told.append(reply)
            case Decided(approved=approved, reason=reason):
                told.append((approved, reason))
            case EffectFailed(failure=failure):
                told.append((failure.error, failure.message))
            case _:
                pass
        for effect in step.effects:
            match effect:
                case CallModel(model=model, request=request):
                    told.append((model, list(request.messages), request.settings))
                case AskHuman(call=call):
                    told.append(call)
                case _:
                    assert isinstance(effect, Invoke)
    return told


@given(programmes)
def test_a_generator_does_what_a_chain_of_classes_does(some: tuple[Line, ...]) -> None:
    """The same effects in the same order, the same answers, the same conversation and state."""
    generator, chain = as_generator(), as_chain(some)

    one = asyncio.run(undisturbed(generator, Programme(some)))
    other = asyncio.run(undisturbed(chain, Programme(some)))

    assert asked(generator, one) == asked(chain, other)
    ran, went = replay(generator, one), replay(chain, other)
    assert (ran.state, ran.messages, ran.record.added) == (
        went.state,
        went.messages,
        went.record.added,
    )
    assert (ran.spent.model_calls, ran.spent.usage) == (went.spent.model_calls, went.spent.usage)
    assert None is ran.turn.dialogue


async def survived(store: MortalStore, after: int, programme: Programme, model: Echo) -> None:
    """Run, die once after so many moments, and go on in another process."""
    graph = as_generator()
    store.fate.after = after
    try:
        await graph.run(
            programme, model=model, prompt="go", store=store, run_id="r", approve_tool_call=decide
        )
    except Died:
        disk = store.disk
        if "r" in await disk.runs():
            await graph.resume("r", model=model, store=disk, approve_tool_call=decide)


def without_times(events: Sequence[Event]) -> list[object]:
    """Return what a journal tells, but for when, and for processes that took the run up."""
    return [
        (type(one).__name__, getattr(one, "answer", None), getattr(one, "reply", None))
        for one in events
        if type(one).__name__ not in {"Resumed", "EffectsStarted"}
    ]


@settings(max_examples=40)
@given(programmes, st.integers(0, 60))
def test_a_process_that_dies_repeats_nothing_that_is_journaled(
    some: tuple[Line, ...], after: int
) -> None:
    """Only what was under way is done again; all else is fed to the generator from the journal."""
    clean, model, disk = Echo(), Echo(), MemoryStore()
    wanted = asyncio.run(undisturbed(as_generator(), Programme(some)))

    asyncio.run(survived(MortalStore(disk, Fate()), after, Programme(some), model))
    asyncio.run(
        as_generator().run(Programme(some), model=clean, prompt="go", approve_tool_call=decide)
    )

    if "r" not in asyncio.run(disk.runs()):
        return
    events = asyncio.run(disk.load("r"))
    assert without_times(wanted) == without_times(events)
    assert replay(as_generator(), events).state == replay(as_generator(), wanted).state
    assert sum((model.asked - clean.asked).values()) <= 1


TOSSED: list[str] = []


@node
def tossing(programme: Programme) -> Asking[Finished]:
    """Ask something else each time."""
    TOSSED.append("")
    yield from ask_model(f"ask number {len(TOSSED)}")
    return Finished()


def test_a_generator_that_asks_something_else_is_found_out_at_once() -> None:
    """In the first run of all, not when a process has died: its answer would be another's."""
    TOSSED.clear()
    graph = Graph("tossing", tossing, {tossing: {...: END}})

    with pytest.raises(NotDeterministic) as found:
        asyncio.run(graph.run(Programme(()), model=Echo()))

    found_words = "request number 1 ", "'ask number 1'", "'ask number 2'", "no clock, no chance"
    for words_of_it in found_words:
        assert words_of_it in str(found.value)


def test_a_changed_programme_is_found_out_when_it_is_resumed(tmp_path: Path) -> None:
    """The code may change while a run waits: what was asked stands in the journal."""
    store = str(tmp_path / "runs.db")

    async def parked() -> None:
        result = await as_generator().run(
            Programme((("model", "a"), ("person", "b"))),
            model=Echo(),
            prompt="go",
            store=store,
            run_id="r",
        )
        assert EndReason.PARKED == result.end_reason

    asyncio.run(parked())

    @node(name="perform")
    def other(programme: Programme) -> Asking[tuple[Finished, Programme]]:
        yield from ask_model("something else")
        return Finished(), programme

    graph = Graph("programme", other, {other: {...: END}})
    with pytest.raises(NotDeterministic, match=r"prompt='a'.* found .*prompt='something else'"):
        asyncio.run(graph.resume("r", model=Echo(), store=store, approve_tool_call=decide))


@pytest.mark.parametrize("wrong", ["tea?", None])
async def test_a_changed_generator_leaves_the_run_as_it_stood(
    wrong: str | None, tmp_path: Path
) -> None:
    """A process with other code is no fact of the run: the code that it began with goes on."""

    def made(question: str | None) -> Graph[None]:
        @node(name="talk", model_calls=2)
        def talk(_: None) -> Asking[Finished]:
            if question is None:
                yield from ask_model("more")
            said = yield from ask_person(question or "coffee?")
            yield from ask_model(said.answer)
            return Finished()

        return Graph("g", talk, {talk: {...: END}})

    store, model = str(tmp_path / "runs.db"), Echo()
    begun = await made("coffee?").run(None, model=model, prompt="go", store=store, run_id="r")
    answer = approve(edit={"answer": "black"})
    for answers in ({begun.pending[0].key: answer}, None):
        with pytest.raises(NotDeterministic, match="resume with the code"):
            await made(wrong).resume("r", model=model, store=store, approvals=answers)
    assert not model.asked
    result = await made("coffee?").resume("r", model=model, store=store)
    assert (EndReason.COMPLETED, ["black"]) == (result.end_reason, list(model.asked))


@pytest.mark.parametrize("edit", [{"foo": "7"}, {"answer": 7}, {"answer": "7", "amount": 7}])
async def test_an_answer_is_no_argument_of_a_tool_of_that_name(
    edit: dict[str, object], tmp_path: Path
) -> None:
    """A question of a node takes words; whatever is none of them is refused while it can be."""

    @tool
    def pay(amount: int) -> str:
        """Pay."""
        return str(amount)

    @node(name="pay")
    def ask(_: None) -> Asking[Finished]:
        said = yield from ask_person("how much?")
        yield from tell(said.answer)
        return Finished()

    graph, store = Graph("g", ask, {ask: {...: END}}), str(tmp_path / "runs.db")
    begun = await graph.run(None, model=Echo(), prompt="go", tools=[pay], store=store, run_id="r")
    key = begun.pending[0].key
    wrong = approve(edit=edit)
    with pytest.raises(ConfigError, match="Invalid arguments"):
        await Runs(store, graph).approve("r", key, wrong)
    with pytest.raises(ConfigError, match="edited arguments fail"):
        await graph.resume("r", model=Echo(), tools=[pay], store=store, approvals={key: wrong})
    assert "accepted" == await Runs(store, graph).approve("r", key, approve(edit={"answer": "7"}))
    result = await graph.resume("r", model=Echo(), tools=[pay], store=store)
    assert "7" == getattr(result.messages[-1], "content", "")


def test_what_was_asked_is_a_fact_of_the_journal() -> None:
    """So a replay never calls the generator at all."""
    events = asyncio.run(undisturbed(as_generator(), Programme((("model", "a"), ("tell", "b")))))

    facts = [one.answer for one in events if isinstance(one, CallbackReturned)]

    assert ["RequestYielded", "RequestYielded", "NodeReturned"] == [
        type(one).__name__ for one in facts
    ]
    assert ["model", "tell"] == [one.ask.kind for one in facts if isinstance(one, RequestYielded)]
    assert perform.kernel.asks is not None
