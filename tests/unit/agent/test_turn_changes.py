"""Functions of the user's that change a turn, judge an answer, or shorten a conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import pytest

from graphloop import (
    Agent,
    AnswerInfo,
    Compaction,
    EndReason,
    Review,
    RunResult,
    StepChanges,
    StepInfo,
    ask,
)
from graphloop.agent.callbacks import NOT_DONE, NOT_GOOD
from graphloop.agent.final_answer import FINAL_ANSWER
from graphloop.errors import ConfigError
from graphloop.nodes import Compact, PrepareStep
from graphloop.providers.script import Entry
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.values import (
    AssistantMessage,
    Message,
    TextPart,
    ToolChoice,
    Usage,
    UserMessage,
)
from tests.strategies import call, reply, wrong
from tests.unit.agent.doubles import asked_of, first_only, free, read, write


def prepared(
    prepare: Callable[[StepInfo], StepChanges | None], *replies: Entry, tools: bool = True
) -> ScriptedModel:
    """Run an agent of several turns with this function; return its model."""
    said = ScriptedModel(replies)
    Agent(said, tools=[read, write] if tools else [], prepare_step=prepare).generate_sync("go")
    return said


def test_what_is_changed_for_a_turn_holds_for_that_turn_only() -> None:
    other = ScriptedModel([reply(call())], label="other")
    changes = StepChanges(
        messages=[UserMessage("short")],
        active_tools=["read"],
        tool_choice=ToolChoice("tool", "read"),
        model=other,
    )

    said = prepared(first_only(changes), "done")

    first, second = other.requests[0], said.requests[0]
    assert (["read"], ToolChoice("tool", "read")) == (
        [tool.name for tool in first.tools],
        first.tool_choice,
    )
    assert (["read", "write"], ToolChoice()) == (
        [tool.name for tool in second.tools],
        second.tool_choice,
    )
    assert (UserMessage("short"),) == tuple(first.messages)
    assert tuple(first.messages) == tuple(second.messages)[:1]
    assert 3 == len(second.messages)


def always(changes: StepChanges | None, info: StepInfo) -> StepChanges | None:
    """Change every turn the same way."""
    return changes


def test_a_function_that_changes_nothing_changes_nothing() -> None:
    without = asked_of(Agent(ScriptedModel([reply(call()), "done"]), tools=[read, write]))

    for answer in (None, StepChanges()):
        said = ScriptedModel([reply(call()), "done"])
        agent = Agent(said, tools=[read, write], prepare_step=partial(always, answer))
        assert without == asked_of(agent)


def test_prepare_step_reads_the_turn_messages_and_usage() -> None:
    told: list[StepInfo] = []

    def prepare(info: StepInfo) -> None:
        told.append(info)

    prepared(prepare, reply(call()), reply("done"))

    assert [0, 1] == [info.step_index for info in told]
    assert [1, 3] == [len(info.messages) for info in told]
    assert [Usage(), Usage(10, 5)] == [info.usage for info in told]


def extra() -> str:
    """Come later."""
    return "extra"


REQUIRED = {"tool_choice": "required"}


@pytest.mark.parametrize(
    ("options", "changes", "found"),
    [
        ({}, 5, "StepChanges or None, found int"),
        ({}, {"messages": []}, "StepChanges or None, found dict"),
        ({}, StepChanges(messages=wrong("short")), "`messages` to be a list"),
        ({}, StepChanges(messages=[]), "`messages` is empty"),
        ({}, StepChanges(active_tools=["gone"]), "names 'gone'"),
        ({}, StepChanges(tool_choice=ToolChoice("tool", "gone")), "names 'gone'"),
        (
            {},
            StepChanges(tool_choice=ToolChoice("required", scope="first_step")),
            "has no effect in the middle of a run",
        ),
        ({}, StepChanges(active_tools=[], tool_choice="required"), "there are no tools"),
        ({}, StepChanges(active_tools=[], tool_choice=ToolChoice("tool", "read")), "names 'read'"),
        ({}, StepChanges(model="nobody:x"), "expected a provider"),
        (REQUIRED, StepChanges(active_tools=[]), "there are no tools"),
        (
            {"active_tools": ["read"], "tools": [read, write]},
            StepChanges(tool_choice=ToolChoice("tool", "write")),
            "names 'write'",
        ),
        ({}, StepChanges(withdraw_tools=["raed"]), "names 'raed'.*Did you mean 'read'"),
        ({}, StepChanges(withdraw_tools="read"), "`withdraw_tools`: expected a list"),
        ({}, StepChanges(add_tools=wrong(5)), "tools: expected an iterable"),
        ({}, StepChanges(add_tools=wrong([5])), "expected tools and functions"),
        ({}, StepChanges(add_tools=[extra, extra]), "names must be unique"),
        ({}, StepChanges(withdraw_tools=["read"], active_tools=["read"]), "active_tools` names"),
        (
            {"output_type": int},
            StepChanges(withdraw_tools=[FINAL_ANSWER]),
            "takes the final answer",
        ),
        (
            {"output_type": int},
            StepChanges(add_tools=[free(FINAL_ANSWER)]),
            "takes the final answer",
        ),
    ],
)
def test_a_change_that_cannot_work_is_named_and_nothing_is_sent(
    options: dict[str, object], changes: object, found: str
) -> None:
    said = ScriptedModel(["done"])

    def prepare(_: StepInfo) -> object:
        return changes

    agent = Agent(said, **wrong({"tools": [read], "prepare_step": prepare, **options}))

    with pytest.raises(ConfigError, match=found):
        agent.generate_sync("go")

    assert [] == said.requests


def added(*changes: StepChanges) -> Callable[[StepInfo], StepChanges | None]:
    """Return a function that makes these changes, turn by turn, and no more."""
    return lambda info: changes[info.step_index] if info.step_index < len(changes) else None


def names(model: ScriptedModel) -> list[list[str]]:
    """Return the tools that each request offered."""
    return [[tool.name for tool in one.tools] for one in model.requests]


def test_a_tool_that_is_added_is_offered_from_then_on_and_runs() -> None:
    said = ScriptedModel([reply(call()), reply(call("extra")), "done"])
    agent = Agent(
        said, tools=[read], prepare_step=added(StepChanges(), StepChanges(add_tools=[extra]))
    )

    result = agent.generate_sync("go")

    assert [["read"], ["read", "extra"], ["read", "extra"]] == names(said)
    assert ["extra"] == [one.text for one in result.steps[1].tool_results]


def test_a_withdrawn_tool_is_not_offered_and_does_not_run() -> None:
    said = ScriptedModel([reply(call()), reply(call()), "done"])
    agent = Agent(
        said,
        tools=[read, extra],
        prepare_step=added(StepChanges(), StepChanges(withdraw_tools=["read"])),
    )

    result = agent.generate_sync("go")

    assert [["read", "extra"], ["extra"], ["extra"]] == names(said)
    assert ["ok", "unknown_tool"] == [step.tool_results[0].status for step in result.steps[:2]]


async def test_a_tool_that_was_added_runs_after_its_approval_came() -> None:
    said = ScriptedModel([reply(call("extra")), "done"])
    agent = Agent(
        said,
        tools=[read],
        gate=ask("ex*") | ask("read"),
        prepare_step=added(StepChanges(add_tools=[extra])),
    )

    parked = await agent.generate("go")
    result = await agent.resume(parked, approvals={"c0.0": True})
    assert ["extra"] == [one.text for one in result.steps[0].tool_results]


def test_a_tool_that_was_added_runs_only_where_it_is_active() -> None:
    calling = [reply(call("extra"))] * 3
    said = ScriptedModel([*calling, "done"])
    agent = Agent(
        said,
        tools=[read],
        active_tools=["read"],
        prepare_step=added(
            StepChanges(add_tools=[extra]), StepChanges(active_tools=["extra"]), StepChanges()
        ),
    )

    result = agent.generate_sync("go")

    assert [["read"], ["extra"], ["read"], ["read"]] == names(said)
    assert ["unknown_tool", "ok", "unknown_tool"] == [
        step.tool_results[0].status for step in result.steps[:3]
    ]


def other_extra() -> str:
    """Come later, too."""
    return "other"


async def test_a_run_is_resumed_by_its_id_with_the_tools_it_added() -> None:
    store, changes = MemoryStore(), StepChanges(add_tools=[extra, other_extra])

    def agent(said: ScriptedModel, tools: Sequence[Callable[..., object]]) -> Agent:
        gate = ask("*")
        return Agent(said, tools=tools, gate=gate, store=store, prepare_step=added(changes))

    await agent(ScriptedModel([reply(call("extra"))]), [read]).generate("go", run_id="r")
    before = await store.load("r")
    for tools, missing in (([read], "'extra', 'other_extra'"), ([read, extra], "'other_extra'")):
        said = ScriptedModel(["done"])
        with pytest.raises(ConfigError, match=f"this agent lacks: {missing}. .*`tools`"):
            await agent(said, tools).resume("r", approvals={"c0.0": True})
        assert [] == said.requests
    assert before == await store.load("r")
    whole = agent(ScriptedModel(["done"]), [read, extra, other_extra])
    result = await whole.resume("r", approvals={"c0.0": True})
    assert ["extra"] == [one.text for one in result.steps[0].tool_results]


def at_once(answer: object) -> Callable[[object], object]:
    """Return a function that answers this."""

    def answering(_: object) -> object:
        return answer

    return answering


def later(answer: object) -> Callable[[object], Awaitable[object]]:
    """Return an async function that answers this."""

    async def answering(_: object) -> object:
        await asyncio.sleep(0)
        return answer

    return answering


@pytest.mark.parametrize("option", ["verify", "done_when"])
@pytest.mark.parametrize("use", [at_once, later], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("first", "asked"), [(True, 1), (False, 2), (Review(ok=True), 1), (Review(ok=False), 2)]
)
def test_a_check_sends_an_answer_back_or_takes_it(
    option: str, use: Callable[[object], Callable[[object], object]], first: object, asked: int
) -> None:
    """L38, L41: also without tools; and a retry that helped leaves no mark."""
    said = ScriptedModel(["one", "two"])
    answers = iter([first, True])

    def check(info: AnswerInfo) -> object:
        return use(next(answers))(info)

    result = Agent(said, **wrong({option: check})).generate_sync("go")

    assert (asked, EndReason.COMPLETED, ()) == (
        len(said.requests),
        result.end_reason,
        result.stopped_by,
    )
    assert ("one" if asked == 1 else "two") == result.text


def in_turn(*answers: object) -> Callable[[object], object]:
    """Return a function that answers this, call by call."""
    every = iter(answers)

    def answering(_: object) -> object:
        return next(every)

    return answering


@pytest.mark.parametrize(
    ("option", "verdict", "feedback"),
    [
        ("verify", False, NOT_GOOD),
        ("verify", Review(ok=False), NOT_GOOD),
        ("verify", Review(ok=False, feedback="Too long."), "Too long."),
        ("done_when", False, NOT_DONE),
    ],
)
def test_the_model_reads_why_its_answer_was_sent_back(
    option: str, verdict: object, feedback: str
) -> None:
    said = ScriptedModel(["one", "two"])
    Agent(said, **wrong({option: in_turn(verdict, True)})).generate_sync("go")

    assert UserMessage(feedback, origin=option) == said.requests[1].messages[-1]


def test_a_check_reads_the_answer_and_its_attempt() -> None:
    told: list[AnswerInfo] = []

    def check(info: AnswerInfo) -> bool:
        told.append(info)
        return info.attempt == 1

    said = ScriptedModel([reply('{"value": 1}'), reply('{"value": 2}')])
    Agent(said, verify=check, output_type=int, output_mode="native").generate_sync("go")

    assert [(1, 0, 0), (2, 1, 1)] == [(one.output, one.attempt, one.step_index) for one in told]
    assert ['{"value": 1}', '{"value": 2}'] == [one.text for one in told]
    assert [2, 4] == [len(one.messages) for one in told]
    assert [Usage(10, 5), Usage(20, 10)] == [one.usage for one in told]


@pytest.mark.parametrize(
    ("option", "bound", "tripped"),
    [
        ("verify", "max_verify_retries", "unverified"),
        ("done_when", "max_done_retries", "false_finish"),
    ],
)
@pytest.mark.parametrize("retries", [0, 1, 3])
def test_an_answer_is_taken_after_the_last_retry(
    option: str, bound: str, tripped: str, retries: int
) -> None:
    said = ScriptedModel(["no"] * 9)

    result = Agent(said, **wrong({option: at_once(False), bound: retries})).generate_sync("go")

    assert (retries + 1, (tripped,)) == (len(said.requests), result.stopped_by)
    assert (EndReason.COMPLETED, "no") == (result.end_reason, result.text)


def test_a_review_without_retry_takes_the_answer() -> None:
    said = ScriptedModel(["no"] * 9)

    result = Agent(said, verify=lambda _: Review(ok=False, retry=False)).generate_sync("go")

    assert (1, ()) == (len(said.requests), result.stopped_by)


@pytest.mark.parametrize("option", ["verify", "done_when"])
@pytest.mark.parametrize("answer", [None, 1, "yes", {}, Review(ok=True, feedback=wrong(5))])
def test_a_check_that_answers_something_else_ends_the_run(option: str, answer: object) -> None:
    with pytest.raises(ConfigError, match=f"`{option}` to return True, False"):
        Agent(ScriptedModel(["one"]), **wrong({option: at_once(answer)})).generate_sync("go")


LONG = "word " * 2_000


TIGHT = Compaction(1_000, keep_recent_turns=1)


def compacted(compact: Callable[[StepInfo], object]) -> tuple[RunResult, ScriptedModel]:
    """Run an agent on a conversation that is too long, with this function."""
    said = ScriptedModel(["done"])
    agent = Agent(said, compaction=TIGHT, compact=wrong(compact))
    return agent.generate_sync(messages=[UserMessage(LONG), UserMessage("go")]), said


def test_a_window_that_is_left_out_is_the_smallest_published_one_of_the_models() -> None:
    """A fallback model gets the same requests."""
    access = {"api_key": "k", "compaction": Compaction()}
    agent = Agent("openai:gpt-5-mini", fallback_models=["openai:gpt-4o"], **wrong(access))

    prepare = agent.graph.nodes["prepare_step"]
    assert isinstance(prepare, PrepareStep)
    assert prepare.compaction == Compaction(context_window=128_000)


@pytest.mark.parametrize("model", [ScriptedModel(["hi"]), "ollama:llama3"])
def test_a_window_that_nobody_published_must_be_given(model: ScriptedModel | str) -> None:
    with pytest.raises(ConfigError, match=r"expected `context_window`.*none is published for"):
        Agent(model, compaction=Compaction())


@pytest.mark.parametrize("node", [PrepareStep, Compact])
def test_a_node_of_ones_own_graph_needs_the_window(node: type[PrepareStep | Compact]) -> None:
    with pytest.raises(ConfigError, match="expected `context_window`"):
        node(compaction=Compaction())


@pytest.mark.parametrize("use", [at_once, later], ids=["sync", "async"])
def test_a_function_that_shortens_says_what_is_sent(
    use: Callable[[object], Callable[[StepInfo], object]],
) -> None:
    result, said = compacted(use([{"role": "user", "content": "short"}]))

    assert (UserMessage("short"),) == tuple(said.requests[0].messages)
    assert ("done", 1) == (result.text, len(result.messages))


@pytest.mark.parametrize("bad", ["shorter", None, 3, [], [5], {"role": "user"}])
def test_a_function_that_shortens_to_no_conversation_is_named(bad: object) -> None:
    with pytest.raises(ConfigError, match=r"`compact` return|messages"):
        compacted(at_once(bad))


TALK: list[Message] = [
    UserMessage("word " * 400),
    AssistantMessage((TextPart("word " * 400),)),
    UserMessage("go"),
    AssistantMessage((TextPart("yes"),)),
    UserMessage("on"),
]


def test_a_long_conversation_is_made_shorter_before_it_is_sent() -> None:
    said = ScriptedModel(["in short", "done"])

    result = Agent(said, compaction=Compaction(1_000, keep_recent_turns=1)).generate_sync(
        messages=TALK
    )

    assert ("done", 1, 1) == (result.text, len(result.messages), len(result.steps))
    told = [one for one in said.requests[1].messages if isinstance(one, UserMessage)]
    (summary,) = [one.content for one in told if one.origin == "compact"]
    assert "in short" in str(summary)
