"""Callbacks: what the user's functions are told, and what becomes of what they answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from graphloop import (
    Agent,
    AnswerInfo,
    Compaction,
    EndReason,
    RunResult,
    StepChanges,
    StepInfo,
    Usage,
    Verdict,
    ask,
    tool,
)
from graphloop.agent.callbacks import NOT_DONE, NOT_GOOD
from graphloop.agent.world import offered
from graphloop.errors import ConfigError
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.values import UserMessage
from tests.strategies import call, reply, spec, wrong


def read() -> str:
    """Read."""
    return "text"


def extra() -> str:
    """Come later."""
    return "extra"


def other_extra() -> str:
    """Come later, too."""
    return "other"


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


def in_turn(*answers: object) -> Callable[[object], object]:
    """Return a function that answers this, call by call."""
    every = iter(answers)

    def answering(_: object) -> object:
        return next(every)

    return answering


def test_active_tools_are_offered_in_the_order_of_the_tools() -> None:
    """A server's cache begins with them."""
    tools = (spec("a"), spec("b"), spec("c"))

    assert tools == offered(tools, None)
    assert (tools[0], tools[2]) == offered(tools, ["c", "a"])
    assert () == offered(tools, [])


@pytest.mark.parametrize("option", ["verify", "done_when"])
@pytest.mark.parametrize("use", [at_once, later], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("first", "asked"),
    [(True, 1), (False, 2), (Verdict(ok=True), 1), (Verdict(ok=False), 2)],
)
def test_a_check_sends_an_answer_back_or_takes_it(
    option: str, use: Callable[[object], Callable[[object], object]], first: object, asked: int
) -> None:
    """Whether it says so in a word or in a verdict, awaited or not."""
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


@pytest.mark.parametrize(
    ("option", "verdict", "feedback"),
    [
        ("verify", False, NOT_GOOD),
        ("verify", Verdict(ok=False), NOT_GOOD),
        ("verify", Verdict(ok=False, feedback="Too long."), "Too long."),
        ("done_when", False, NOT_DONE),
    ],
)
def test_the_model_reads_why_its_answer_was_sent_back(
    option: str, verdict: object, feedback: str
) -> None:
    """As a message that says where it comes from."""
    said = ScriptedModel(["one", "two"])
    Agent(said, **wrong({option: in_turn(verdict, True)})).generate_sync("go")

    assert UserMessage(feedback, origin=option) == said.requests[1].messages[-1]


def test_a_check_is_told_the_answer_the_conversation_and_how_often_it_said_no() -> None:
    """What it needs to judge, and to give up."""
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
def test_an_answer_is_sent_back_so_often_and_then_taken_by_name(
    option: str, bound: str, tripped: str, retries: int
) -> None:
    """The caller decides what an answer is worth that no check has accepted."""
    said = ScriptedModel(["no"] * 9)

    result = Agent(said, **wrong({option: at_once(False), bound: retries})).generate_sync("go")

    assert (retries + 1, (tripped,)) == (len(said.requests), result.stopped_by)
    assert (EndReason.COMPLETED, "no") == (result.end_reason, result.text)


def test_a_verdict_without_retry_takes_the_answer_as_it_is() -> None:
    """It will not get better, and it was said so on purpose."""
    said = ScriptedModel(["no"] * 9)

    result = Agent(said, verify=lambda _: Verdict(ok=False, retry=False)).generate_sync("go")

    assert (1, ()) == (len(said.requests), result.stopped_by)


@pytest.mark.parametrize("option", ["verify", "done_when"])
@pytest.mark.parametrize("answer", [None, 1, "yes", {}, Verdict(ok=True, feedback=wrong(5))])
def test_a_check_that_answers_something_else_ends_the_run(option: str, answer: object) -> None:
    """ "None" is what a function without a return says; it must not pass for good."""
    with pytest.raises(ConfigError, match=f"`{option}` returns True, False or a Verdict; found"):
        Agent(ScriptedModel(["one"]), **wrong({option: at_once(answer)})).generate_sync("go")


@pytest.mark.parametrize("option", ["verify", "done_when"])
def test_a_check_that_raises_ends_the_run_with_its_own_exception(option: str) -> None:
    """The very object, as of every function of the user's."""
    mine = LookupError("bug")

    def fail(_: AnswerInfo) -> bool:
        raise mine

    with pytest.raises(LookupError) as raised:
        Agent(ScriptedModel(["one"]), **wrong({option: fail})).generate_sync("go")

    assert raised.value is mine


LONG = "word " * 2_000
TIGHT = Compaction(1_000, keep_recent_turns=1)


def compacted(compact: Callable[[StepInfo], object]) -> tuple[RunResult[None], ScriptedModel]:
    """Run an agent on a conversation that is too long, with this function."""
    said = ScriptedModel(["done"])
    agent = Agent(said, compaction=TIGHT, compact=wrong(compact))
    return agent.generate_sync(messages=[UserMessage(LONG), UserMessage("go")]), said


@pytest.mark.parametrize("use", [at_once, later], ids=["sync", "async"])
def test_a_function_that_shortens_says_what_is_sent(
    use: Callable[[object], Callable[[StepInfo], object]],
) -> None:
    """In any form that messages may have; the record of the run stays whole."""
    result, said = compacted(use([{"role": "user", "content": "short"}]))

    assert (UserMessage("short"),) == tuple(said.requests[0].messages)
    assert ("done", 1) == (result.text, len(result.messages))


@pytest.mark.parametrize("bad", ["shorter", None, 3, [5], {"role": "user"}])
def test_a_function_that_shortens_to_no_conversation_is_named(bad: object) -> None:
    """It is where the fault is."""
    with pytest.raises(ConfigError, match=r"^`compact` return"):
        compacted(at_once(bad))


def test_a_function_that_shortens_is_told_what_is_too_long() -> None:
    """The turn, the messages, the usage."""
    told: list[StepInfo] = []

    def compact(info: StepInfo) -> list[UserMessage]:
        told.append(info)
        return [UserMessage("short")]

    compacted(compact)

    assert [2] == [len(one.messages) for one in told]


def test_a_function_is_not_asked_before_the_conversation_is_too_long() -> None:
    """Compaction says when, the function says how."""
    said = ScriptedModel(["done"])
    asked: list[StepInfo] = []

    def compact(info: StepInfo) -> list[UserMessage]:
        asked.append(info)
        return []

    Agent(said, compaction=TIGHT, compact=compact).generate_sync("short")

    assert ([], 1) == (asked, len(said.requests))


@pytest.mark.parametrize("answer", [None, 5, "x", [], [5]])
def test_a_function_that_shortens_to_nonsense_ends_the_run(answer: object) -> None:
    """With nothing sent."""
    with pytest.raises(ConfigError, match="messages"):
        compacted(lambda _: answer)


def added(*changes: StepChanges) -> Callable[[StepInfo], StepChanges | None]:
    """Return a function that makes these changes, turn by turn, and no more."""
    return lambda info: changes[info.step_index] if info.step_index < len(changes) else None


def names(model: ScriptedModel) -> list[list[str]]:
    """Return the tools that each request offered."""
    return [[tool.name for tool in one.tools] for one in model.requests]


def test_a_tool_that_is_added_is_offered_from_then_on_and_runs() -> None:
    """A plain function will do."""
    said = ScriptedModel([reply(call()), reply(call("extra")), "done"])
    agent = Agent(
        said, tools=[read], prepare_step=added(StepChanges(), StepChanges(add_tools=[extra]))
    )

    result = agent.generate_sync("go")

    assert [["read"], ["read", "extra"], ["read", "extra"]] == names(said)
    assert ["extra"] == [one.text for one in result.steps[1].tool_results]


def test_a_tool_that_is_withdrawn_is_not_offered_and_does_not_run() -> None:
    """A model may remember it."""
    said = ScriptedModel([reply(call()), reply(call()), "done"])
    agent = Agent(
        said,
        tools=[read, extra],
        prepare_step=added(StepChanges(), StepChanges(withdraw_tools=["read"])),
    )

    result = agent.generate_sync("go")

    assert [["read", "extra"], ["extra"], ["extra"]] == names(said)
    assert ["ok", "unknown_tool"] == [step.tool_results[0].status for step in result.steps[:2]]


def test_a_tool_may_take_another_s_place() -> None:
    """By its name; the first is not called any more."""

    @tool(name="read")
    def other() -> str:
        """Read something else."""
        return "other"

    said = ScriptedModel([reply(call()), reply(call()), "done"])
    agent = Agent(
        said, tools=[read], prepare_step=added(StepChanges(), StepChanges(add_tools=[other]))
    )

    result = agent.generate_sync("go")

    assert ["text", "other"] == [step.tool_results[0].text for step in result.steps[:2]]
    assert [["read"]] * 3 == names(said)


def test_a_tool_that_is_added_to_one_run_is_in_no_other() -> None:
    """It may hold what belongs to one user; runs of one agent go on side by side."""
    users = iter(["ann", "bob"])

    def prepare(info: StepInfo) -> StepChanges | None:
        if info.step_index:
            return None
        user = next(users)

        @tool
        def who() -> str:
            """Tell whose it is."""
            return user

        return StepChanges(add_tools=[who])

    said = ScriptedModel([reply(call("who")), "done"], restart=True)
    agent = Agent(said, prepare_step=prepare)

    async def scenario() -> list[str]:
        streams = [agent.stream("go"), agent.stream("go")]
        parts = [stream.full_stream for stream in streams]
        for _ in range(3):  # Both have been prepared before either calls its tool.
            for part in parts:
                await anext(part)
        return [(await one.result()).steps[0].tool_results[0].text for one in streams]

    assert ["ann", "bob"] == asyncio.run(scenario())


def test_a_tool_that_was_added_runs_after_its_approval_came() -> None:
    """The result of the leg that parked keeps it."""
    said = ScriptedModel([reply(call("extra")), "done"])
    agent = Agent(
        said,
        tools=[read],
        gate=ask("ex*") | ask("read"),
        prepare_step=added(StepChanges(add_tools=[extra])),
    )

    async def scenario() -> list[str]:
        parked = await agent.generate("go")
        result = await agent.resume(parked, approvals={"c0.0": True})
        return [one.text for one in result.steps[0].tool_results]

    assert ["extra"] == asyncio.run(scenario())


def test_a_tool_that_was_added_runs_only_where_it_is_active() -> None:
    """What the model is not offered is not run for it, in no turn."""
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


def test_a_run_with_added_tools_is_resumed_by_its_id_with_them_among_the_tools() -> None:
    """A journal holds no functions: without them nothing is done, and they are named."""
    store, changes = MemoryStore(), StepChanges(add_tools=[extra, other_extra])

    def agent(said: ScriptedModel, tools: Sequence[Callable[..., object]]) -> Agent:
        gate = ask("*")
        return Agent(said, tools=tools, gate=gate, store=store, prepare_step=added(changes))

    async def scenario() -> list[str]:
        await agent(ScriptedModel([reply(call("extra"))]), [read]).generate("go", run_id="r")
        before = await store.load("r")
        for tools, missing in (
            ([read], "'extra', 'other_extra'"),
            ([read, extra], "'other_extra'"),
        ):
            said = ScriptedModel(["done"])
            with pytest.raises(ConfigError, match=f"not here: {missing}. .*`tools`"):
                await agent(said, tools).resume("r", approvals={"c0.0": True})
            assert [] == said.requests
        assert before == await store.load("r")
        whole = agent(ScriptedModel(["done"]), [read, extra, other_extra])
        result = await whole.resume("r", approvals={"c0.0": True})
        return [one.text for one in result.steps[0].tool_results]

    assert ["extra"] == asyncio.run(scenario())


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        (StepChanges(withdraw_tools=["raed"]), "withdraw_tools` names 'raed'.*Did you mean 'read'"),
        (StepChanges(withdraw_tools="read"), "`withdraw_tools`: expected a list"),
        (StepChanges(add_tools=wrong(5)), "tools: expected an iterable"),
        (StepChanges(add_tools=wrong([5])), "expected tools and functions"),
        (StepChanges(add_tools=[extra, extra]), "names must be unique"),
        (StepChanges(withdraw_tools=["read"], active_tools=["read"]), "active_tools` names 'read'"),
    ],
)
def test_tools_that_cannot_come_or_go_end_the_run(changes: StepChanges, found: str) -> None:
    """Before anything is sent, and with no half of the change made."""
    said = ScriptedModel(["done"])

    with pytest.raises(ConfigError, match=found):
        Agent(said, tools=[read], prepare_step=lambda _: changes).generate_sync("go")

    assert [] == said.requests
