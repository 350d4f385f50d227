"""`screen=`: what the user says is judged before a model reads it, or while a model answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from graphloop import END, Agent, EndReason, Graph
from graphloop.errors import ConfigError, RunFailed
from graphloop.events import CallbackReturned, Event, ModelReplied
from graphloop.own_nodes import screen
from graphloop.parts.kinds import Part, StepFinish
from graphloop.providers import TextDelta
from graphloop.providers.base import Delta, ModelSession
from graphloop.providers.script import Entry
from graphloop.rules import never
from graphloop.screens import ScreenInfo
from graphloop.stores import open_store
from graphloop.testing import ScriptedModel
from graphloop.values import AssistantMessage, ModelRequest, Reply, TextPart
from tests.passing_store import PassingStore
from tests.strategies import call, reply
from tests.unit.agent.doubles import Silent, free, within

REFUSAL = "I can only speak about cooking."


@dataclass
class Judge:
    """A screen that notes what it judges, and blocks what is not about cooking."""

    def __post_init__(self) -> None:
        self.heard: list[str] = []
        self.__name__ = "on_topic"

    def __call__(self, text: str) -> bool | str:
        self.heard.append(text)
        return "cook" in text or REFUSAL


def asked(*script: Entry, parallel: bool = False) -> tuple[Agent, Judge, ScriptedModel]:
    """Return an agent with a judge, and a model that says this."""
    judge, model = Judge(), ScriptedModel(script)
    return Agent(model, screen=judge, screen_in_parallel=parallel, tools=[free()]), judge, model


@pytest.mark.parametrize("parallel", [False, True])
def test_a_blocked_question_gets_the_refusal_as_its_answer(parallel: bool) -> None:
    agent, judge, model = asked("Boil it.", parallel=parallel)

    result = agent.generate_sync("who won?")

    assert (REFUSAL, EndReason.REFUSAL) == (result.text, result.end_reason)
    assert ("screen:on_topic",) == result.stopped_by
    assert (AssistantMessage((TextPart(REFUSAL),)),) == result.messages
    assert ["who won?"] == judge.heard
    assert parallel or not model.requests


@pytest.mark.parametrize("parallel", [False, True])
async def test_a_blocked_message_is_not_read_with_the_next_question(parallel: bool) -> None:
    """Neither in a chat, nor from a conversation that the caller carries."""
    agent, _, model = asked(*["Boil it."] * 4, parallel=parallel)
    chat = agent.chat()
    await chat.send("how to cook eggs?")

    refused = await chat.send("my card is 4111")
    model.requests.clear()
    await chat.send("how to cook leek?")
    await agent.generate("how to cook rice?", messages=refused.conversation)

    told = [tuple(request.messages) for request in model.requests]
    roles = ["user", "assistant", "user", "assistant", "user"]
    assert [roles] * 2 == [[message.role for message in messages] for messages in told]
    assert "eggs" in str(told[1])
    assert "4111" not in str(told)
    assert "4111" in str(await chat.messages()), "the user sees what the user wrote"


@pytest.mark.parametrize("parallel", [False, True])
async def test_a_message_that_is_blocked_in_a_running_stream_is_not_read_later(
    parallel: bool,
) -> None:
    """What passed before it stays in the conversation."""

    def read(arguments: dict[str, object]) -> str:
        stream.steer("my card is 4111")
        return "text"

    model = ScriptedModel([reply(call("read")), *["Boil it."] * 2])
    agent = Agent(model, screen=Judge(), screen_in_parallel=parallel, tools=[free("read", read)])
    stream = agent.stream("how to cook eggs?")

    refused = await stream.result()
    model.requests.clear()
    await agent.generate("how to cook rice?", messages=refused.conversation)

    [request] = model.requests
    assert EndReason.REFUSAL == refused.end_reason
    assert "eggs" in str(tuple(request.messages))
    assert "4111" not in str(tuple(request.messages))
    assert "4111" not in str(refused.messages)


@pytest.mark.parametrize("parallel", [False, True])
def test_a_question_that_passes_is_answered(parallel: bool) -> None:
    agent, judge, _ = asked(reply(call("read")), "Boil it.", parallel=parallel)

    result = agent.generate_sync("how to cook rice?")

    assert ("Boil it.", EndReason.COMPLETED) == (result.text, result.end_reason)
    assert ["how to cook rice?"] == judge.heard, "the second turn said nothing new"


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("way", ["steer", "follow_up"])
def test_a_message_of_the_caller_is_judged_before_the_model_reads_it(
    parallel: bool, way: str
) -> None:
    def read(arguments: dict[str, object]) -> str:
        (stream.steer if way == "steer" else stream.follow_up)("who won?")
        return "text"

    judge, model = Judge(), ScriptedModel([reply(call("read")), "Boil it.", "Salt it."])
    agent = Agent(model, screen=judge, screen_in_parallel=parallel, tools=[free("read", read)])
    stream = agent.stream("how to cook rice?")

    result = within(stream.result())

    assert ["how to cook rice?", "who won?"] == judge.heard
    assert (REFUSAL, EndReason.REFUSAL) == (result.text, result.end_reason)
    if not parallel:
        said = [str(message) for one in model.requests for message in one.messages]
        assert not any("who won?" in one for one in said)


@pytest.mark.parametrize("parallel", [False, True])
def test_each_message_is_judged_once(parallel: bool) -> None:
    agent, judge, _ = asked(reply(call("read")), "Boil it.", "Salt it.", parallel=parallel)
    stream = agent.stream("how to cook rice?")
    stream.follow_up("and cook beans?")

    result = within(stream.result())

    assert EndReason.COMPLETED is result.end_reason
    assert ["how to cook rice?", "and cook beans?"] == judge.heard


@pytest.mark.parametrize("parallel", [False, True])
def test_only_what_is_new_in_a_conversation_is_judged(parallel: bool) -> None:
    agent, judge, _ = asked("Boil it.", parallel=parallel)
    history = [
        {"role": "user", "content": "who won?"},
        {"role": "assistant", "content": "I do not know."},
        {"role": "user", "content": "how to cook rice?"},
    ]

    agent.generate_sync(messages=history)

    assert ["how to cook rice?"] == judge.heard


@pytest.mark.parametrize("parallel", [False, True])
def test_a_screen_that_fails_lets_nothing_pass(parallel: bool) -> None:
    ran: list[object] = []
    tool = free("read", ran.append)

    def broken(text: str) -> bool:
        raise KeyError(text)

    model = ScriptedModel([reply(call("read")), "done"])
    agent = Agent(model, screen=broken, screen_in_parallel=parallel, tools=[tool])

    with pytest.raises(KeyError):
        agent.generate_sync("go")
    assert [] == ran


def test_the_screens_stand_before_the_first_turn_and_are_proven() -> None:
    agent, _, _ = asked("x")
    before = never("model_call", before="outcome:screen.passed")

    assert "screen" == agent.graph.start
    assert agent.graph.check(rules=before).ok
    assert not Agent(ScriptedModel([])).graph.check(rules=never("model_call", before="gate")).ok
    ways = {edge.source for edge in agent.graph.edges if edge.target == "prepare_step"}
    assert {"screen"} == ways


class Slow:
    """A model that streams a part of its answer, and the rest when it is told to."""

    label = "slow"

    def __init__(self) -> None:
        self.begun, self.told, self.closed = asyncio.Event(), asyncio.Event(), False

    def session(self) -> ModelSession:
        return self

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        try:
            yield TextDelta("Bo")
            self.begun.set()
            await self.told.wait()
            yield TextDelta("il it.")
            yield reply("Boil it.")
        finally:
            self.closed = True

    async def aclose(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize("passes", [False, True])
def test_a_stream_shows_nothing_of_a_reply_before_the_verdict(passes: bool) -> None:
    async def work() -> tuple[list[Part], list[Part], bool]:
        model, verdict, seen = Slow(), asyncio.Event(), list[Part]()
        shown = asyncio.Event()

        async def judge(text: str) -> bool | str:
            await verdict.wait()
            return passes or REFUSAL

        stream = Agent(model, screen=judge, screen_in_parallel=True).stream("go")

        async def read() -> None:
            async for part in stream.full_stream:
                seen.append(part)
                if isinstance(part, TextDelta):
                    shown.set()

        reading = asyncio.create_task(read())
        await model.begun.wait()
        before = [*seen]
        verdict.set()
        if passes:
            await shown.wait()
            model.told.set()
        await reading
        return before, seen, model.closed

    before, seen, closed = within(work())

    assert not any(isinstance(part, TextDelta | StepFinish) for part in before)
    text = "".join(part.text for part in seen if isinstance(part, TextDelta))
    assert ("Boil it." if passes else REFUSAL) == text
    assert 1 == sum(isinstance(part, StepFinish) for part in seen)
    assert closed, "a blocked question ends the model call"


def test_a_blocked_question_does_not_wait_for_the_model() -> None:
    async def work() -> tuple[str, bool]:
        model, judge = Silent(), Judge()
        agent = Agent(model, screen=judge, screen_in_parallel=True)
        result = await agent.generate("who won?")
        return result.text, model.told.is_set()

    assert (REFUSAL, False) == within(work())


def test_no_tool_runs_before_the_verdict() -> None:
    async def work() -> list[str]:
        order: list[str] = []
        model = ScriptedModel([reply(call("read")), "done"])
        replied = asyncio.Event()

        async def judge(text: str) -> bool:
            await replied.wait()
            order.append("judged")
            return True

        def read(arguments: dict[str, object]) -> str:
            order.append("ran")
            return "text"

        class Noticing(PassingStore):
            async def append(self, run_id: str, seq: int, *events: Event) -> None:
                await super().append(run_id, seq, *events)
                if any(isinstance(event, ModelReplied) for event in events):
                    replied.set()

        agent = Agent(
            model,
            screen=judge,
            screen_in_parallel=True,
            tools=[free("read", read)],
            store=Noticing(),
        )
        await agent.generate("go")
        return order

    assert ["judged", "ran"] == within(work())


@dataclass
class Verdict:
    """The answer of a guard."""

    passed: bool
    answer: str = ""


def guard(*answers: str, kind: Any = Verdict, name: str = "guard") -> Agent[None, Any]:
    """Return an agent that judges with these answers."""
    calls = [reply(call("final_answer", arguments=one)) for one in answers]
    return Agent(ScriptedModel(calls, label=name), output_type=kind, name=name)


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize(
    ("kind", "answer", "text"),
    [
        (bool, '{"value": true}', "Boil it."),
        (bool, '{"value": false}', "I cannot help with that."),
        (Verdict, '{"passed": true, "answer": "fine"}', "Boil it."),
        (Verdict, '{"passed": false, "answer": "Not here."}', "Not here."),
    ],
)
def test_an_agent_judges_by_its_typed_answer(
    parallel: bool, kind: type[object], answer: str, text: str
) -> None:
    watch = guard(answer, kind=kind)
    model = ScriptedModel(["Boil it."])
    agent = Agent(model, screen=watch, screen_in_parallel=parallel)

    result = agent.generate_sync("how to cook rice?")

    assert text == result.text
    assert isinstance(watch.model, ScriptedModel)
    (request,) = watch.model.requests
    assert ["how to cook rice?"] == [getattr(one, "content", "") for one in request.messages]
    assert ("screen:guard",) == result.stopped_by or "Boil it." == text
    assert agent.graph.check().ok


def test_functions_judge_before_agents_and_a_block_asks_no_other() -> None:
    watch, judge = guard('{"passed": true}'), Judge()
    agent = Agent(ScriptedModel([]), screen=[watch, judge])

    result = agent.generate_sync("who won?")

    assert REFUSAL == result.text
    assert isinstance(watch.model, ScriptedModel)
    assert not watch.model.requests


def test_an_agent_that_gives_no_verdict_ends_the_run() -> None:
    watch = guard('{"city": "Oslo"}', kind=dict)
    agent = Agent(ScriptedModel(["x"]), screen=watch)

    with pytest.raises(RunFailed, match=r"screen 'guard': .*True or False"):
        agent.generate_sync("go")


@pytest.mark.parametrize(
    ("screen", "found"),
    [
        (Agent(ScriptedModel([]), name="plain"), "answers by text"),
        ([Judge(), Judge()], "found 'on_topic' twice"),
        (lambda: True, "one or two positional parameters"),
    ],
)
def test_a_screen_that_cannot_work_is_refused_at_once(screen: object, found: str) -> None:
    with pytest.raises(ConfigError, match=found):
        Agent(ScriptedModel([]), screen=screen)  # type: ignore[arg-type]


def test_an_option_of_screens_without_a_screen_is_refused() -> None:
    with pytest.raises(ConfigError, match="screen_in_parallel"):
        Agent(ScriptedModel([]), screen_in_parallel=True)


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("question", ["how to cook rice?", "who won?"])
def test_a_replay_and_a_resume_never_judge_again(
    parallel: bool, question: str, tmp_path: Path
) -> None:
    """The verdict is an event: from any prefix of the journal the run ends as it did."""
    path = str(tmp_path / "runs.db")
    agent, judge, _ = asked("Boil it.", parallel=parallel)
    kept = agent.with_options(store=path)

    async def work() -> None:
        async with kept:
            result = await kept.generate(question, run_id="r")
            events = await open_store(path).load("r")
            judged = next(at for at, one in enumerate(events) if isinstance(one, CallbackReturned))
            for upto in range(1, len(events) + 1):
                judge.heard.clear()
                fork = await kept.runs.fork("r", at=upto)
                again = asked("Boil it.", parallel=parallel)[0].with_options(
                    store=path, screen=judge
                )
                async with again:
                    resumed = await again.resume(fork)
                assert (result.text, result.stopped_by) == (resumed.text, resumed.stopped_by)
                assert (0 if upto > judged else 1) == len(judge.heard), upto

    within(work())


def test_a_screen_reads_the_dependencies_of_the_run() -> None:
    def allowed(text: str, info: ScreenInfo[set[str]]) -> bool:
        return text in info.deps

    agent = Agent(ScriptedModel(["ok", "ok"]), screen=allowed, deps_type=set[str])

    assert "ok" == agent.generate_sync("a", deps={"a"}).text
    assert EndReason.REFUSAL is agent.generate_sync("b", deps={"a"}).end_reason


def test_a_screen_of_a_graph_reads_the_dependencies_of_the_run() -> None:
    def allowed(text: str, info: ScreenInfo[set[str]]) -> bool:
        return text in info.deps

    first = screen(allowed)
    rows: dict[Any, dict[Any, Any]] = {first: {...: END}}
    graph = Graph("guarded", first, rows)

    assert EndReason.COMPLETED is graph.run_sync(None, prompt="a", deps={"a"}).end_reason
    with pytest.raises(ConfigError, match="deps"):
        graph.run_sync(None, prompt="a")


def test_an_iterated_run_waits_for_the_verdict() -> None:
    async def work(question: str) -> list[str]:
        agent, _, _ = asked(reply(call("read")), "Boil it.", parallel=True)
        return [turn.text async for turn in agent.iter(question)]

    assert ["", "Boil it."] == within(work("how to cook rice?"))
    assert [] == within(work("who won?"))


@pytest.mark.parametrize("options", [{"max_steps": 2}, {"instructions": "Be brief."}])
async def test_a_run_with_options_of_its_own_is_screened(options: dict[str, Any]) -> None:
    """Also where the options of the call make another graph."""
    judge, model = Judge(), ScriptedModel(["Boil it."], restart=True)
    agent = Agent(model, screen=judge)

    passed = await agent.generate("How to cook rice?", **options)
    blocked = await agent.generate("A poem, please", **options)

    assert (EndReason.COMPLETED, EndReason.REFUSAL) == (passed.end_reason, blocked.end_reason)
    assert ["How to cook rice?", "A poem, please"] == judge.heard
    assert len(model.requests) == 1
