"""Rows of the behavioural contract that no other test says as plainly: whole runs, front to end.

`docs/contract.md` names the test of each row; these stand here because they are about the loop as
its user meets it, and about no file in particular.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from graphloop import (
    Agent,
    AnswerInfo,
    Compaction,
    EndReason,
    StepInfo,
    Tool,
    ToolContext,
    agent_tool,
)
from graphloop.agent.options import AgentOptions
from graphloop.errors import ConfigError
from graphloop.limits import stop
from graphloop.parts.kinds import ToolState
from graphloop.testing import ScriptedModel
from graphloop.values import (
    AssistantMessage,
    FinishReason,
    Reply,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
)
from tests.regressions.worlds import NUMBER, call, calls, counting, paired, results_of


def ask(name: str, prompt: str = "do it") -> dict[str, object]:
    """Return a reply that calls an agent."""
    return {"calls": [{"name": name, "arguments": {"prompt": prompt}}]}


def failing(ran: list[str]) -> Tool:
    """Return a tool that always fails."""

    async def execute(_: Mapping[str, int], __: ToolContext) -> str:
        ran.append("fail")
        raise OSError("the disk is full")

    return Tool(name="read", parameters=NUMBER, execute=execute)


def test_a_tool_turn_leads_to_a_final_answer() -> None:
    """L01, L05: call, result, next turn, answer; usage is the sum of the turns."""
    ran: list[str] = []
    model = ScriptedModel([calls(call("read", 7)), "done"])

    result = Agent(model, tools=[counting(ran, "read")]).generate_sync("go")

    assert ["read 7"] == ran
    assert ["assistant", "tool", "assistant"] == [one.role for one in result.messages]
    assert ("done", 2) == (result.text, len(result.steps))
    assert result.total_usage == result.steps[0].usage + result.steps[1].usage


def test_calls_go_on_whatever_is_said_beside_them() -> None:
    """L02: some servers say `stop` beside calls, or "I am done"; the calls count."""
    said = AssistantMessage((TextPart("I am done."), ToolCall("a", "read", '{"x": 1}')))
    model = ScriptedModel([Reply(said, FinishReason.STOP), "done"])
    ran: list[str] = []

    result = Agent(model, tools=[counting(ran, "read")]).generate_sync("go")

    assert (["read 1"], "done") == (ran, result.text)


def test_a_run_without_tools_is_a_list_of_one_turn() -> None:
    """L03, L04: no special case without tools."""
    result = Agent(ScriptedModel(["done"])).generate_sync("go")

    assert ["done"] == [step.text for step in result.steps]


def test_the_last_turn_s_calls_run_and_their_results_are_kept() -> None:
    """L08: the limit is on asking the model, not on finishing what it asked for."""
    ran: list[str] = []
    model = ScriptedModel([calls(call("read")), "never"])

    result = Agent(model, tools=[counting(ran, "read")], max_steps=1).generate_sync("go")

    assert ["read 1"] == ran
    assert ["read 1 done"] == results_of(result.messages)
    assert 1 == len(model.requests)


def test_a_generous_step_limit_changes_nothing_about_a_duration() -> None:
    """L19: two clocks would be two truths; there is one."""

    def run(step_timeout_s: float | None) -> object:
        now = iter(range(1000))
        result = Agent(
            ScriptedModel([calls(call("read"))] * 20),
            tools=[counting([], "read")],
            clock=lambda: float(next(now)),
            step_timeout_s=step_timeout_s,
            stop_when=stop.duration_exceeds(30),
        ).generate_sync("go", run_id="r")
        return result.end_reason, result.stopped_by, result.messages

    assert run(None) == run(10_000)


def test_a_tool_that_ends_the_run_waits_for_other_calls() -> None:
    """L23: a run ends early only if all that ran was meant to end it."""
    ran: list[str] = []
    model = ScriptedModel([calls(call("finish"), call("read")), "done"])
    tools = [counting(ran, "finish", ends_run=True), counting(ran, "read")]

    result = Agent(model, tools=tools).generate_sync("go")

    assert ["finish 1", "read 1"] == ran
    assert "done" == result.text


def test_a_tool_that_fails_is_told_and_the_model_goes_on() -> None:
    """T01: an error is a result like any other, and names its type."""
    ran: list[str] = []

    result = Agent(
        ScriptedModel([calls(call("read")), "sorry"]), tools=[failing(ran)]
    ).generate_sync("go")

    (told,) = results_of(result.messages)
    assert "OSError" in told
    assert "the disk is full" in told
    assert "sorry" == result.text


def test_a_name_that_is_no_tool_is_answered_with_those_that_are() -> None:
    """T02: the model can only mend what it is told."""
    model = ScriptedModel([calls(call("raed")), "sorry"])

    result = Agent(model, tools=[counting([], "read")]).generate_sync("go")

    (told,) = results_of(result.messages)
    assert 'No such tool: "raed"' in told
    assert told.endswith("Available tools: read.")
    assert EndReason.COMPLETED is result.end_reason


def test_an_invented_name_over_and_over_ends_the_run() -> None:
    """L25: what does not exist cannot succeed on the fourth try."""
    model = ScriptedModel([calls(call("raed"))] * 10)

    result = Agent(model, tools=[counting([], "read")]).generate_sync("go")

    assert EndReason.TOOL_ERRORS is result.end_reason
    assert 3 == len(model.requests)


def test_a_tool_that_is_always_too_slow_ends_the_run() -> None:
    """L26: a timeout is a failure like any other."""

    async def execute(_: Mapping[str, int], __: ToolContext) -> str:
        await asyncio.Event().wait()
        return "never"

    slow = Tool(name="read", parameters=NUMBER, execute=execute, timeout_s=0.001)
    model = ScriptedModel([calls(call("read"))] * 10)

    result = Agent(model, tools=[slow]).generate_sync("go")

    assert ("tool_errors:read",) == result.stopped_by
    assert ["timeout"] * 3 == [step.tool_results[0].status for step in result.steps]


async def test_a_follow_up_waits_at_the_limit() -> None:
    """L34: what could not be heard any more is not in the history either."""

    model = ScriptedModel(["one", "two", "three"])
    stream = Agent(model, max_steps=2).stream("go")
    for number in range(3):
        stream.follow_up(f"and {number}?")
    result = await stream.result()
    said = [one.content for one in result.messages if isinstance(one, UserMessage)]
    assert ["and 0?"] == said[:1]
    assert (2, EndReason.MAX_STEPS) == (len(model.requests), result.end_reason)


async def test_follow_ups_are_heard_one_at_a_time_in_order() -> None:
    """R13, R15: each gets an answer of its own."""

    stream = Agent(ScriptedModel(["one", "two", "three"])).stream("go")
    stream.follow_up("second?")
    stream.follow_up("third?")
    result = await stream.result()
    assert ["one", "second?", "two", "third?", "three"] == [
        str(one.content) if isinstance(one, UserMessage) else one.text
        for one in result.messages
        if isinstance(one, UserMessage | AssistantMessage)
    ]


async def test_every_answer_is_judged_before_a_follow_up_is_heard() -> None:
    """R13: the model reads why its answer was sent back, then what comes next; each in its turn."""

    judged: list[str] = []

    def good(answer: AnswerInfo) -> bool:
        judged.append(answer.text)
        return len(answer.text) > 3

    model = ScriptedModel(["one", "first", "two", "second"])
    agent = Agent(model, verify=good, max_verify_retries=1)
    stream = agent.stream("go")
    stream.follow_up("next?")
    result = await stream.result()
    assert EndReason.COMPLETED is result.end_reason
    origins = [one.origin for one in result.messages if isinstance(one, UserMessage)]

    assert ["one", "first", "two", "second"] == judged
    assert ["verify", "follow_up", "verify"] == origins


async def test_a_follow_up_without_a_step_left_ends_by_the_limit() -> None:
    """L34: there is an answer, but somebody's question has none; what was said is told."""

    stream = Agent(ScriptedModel(["one"]), verify=lambda _: True, max_steps=1).stream("go")
    stream.follow_up("next?")
    result = await stream.result()

    assert ("one", EndReason.MAX_STEPS) == (result.text, result.end_reason)


async def test_what_is_said_during_tools_comes_after_their_results() -> None:
    """R12, R14: results first; and a tool that would end the run does not end it over a person."""

    async def finish(_: Mapping[str, int]) -> str:
        stream.steer("wait!")
        return "finished"

    model = ScriptedModel([calls(call("finish")), "as you wish"])
    ends = Tool(name="finish", parameters=NUMBER, execute=finish, ends_run=True)
    stream = Agent(model, tools=[ends]).stream("go")
    result = await stream.result()
    assert ["assistant", "tool", "user", "assistant"] == [one.role for one in result.messages]


def test_a_check_that_may_not_retry_only_observes() -> None:
    """L37: with no retries the answer is taken, and it is told that it was not accepted."""
    model = ScriptedModel(["half done", "never"])

    result = Agent(model, done_when=lambda _: False, max_done_retries=0).generate_sync("go")

    assert ("half done", ("false_finish",)) == (result.text, result.stopped_by)
    assert 1 == len(model.requests)


def test_whether_it_is_done_is_asked_before_whether_it_is_good() -> None:
    """L40: two checks, each with retries of its own."""
    asked: list[str] = []
    model = ScriptedModel(["not done", "not good", "good"])

    def done(info: AnswerInfo) -> bool:
        asked.append("done?")
        return info.text != "not done"

    def good(info: AnswerInfo) -> bool:
        asked.append("good?")
        return info.text == "good"

    result = Agent(
        model, done_when=done, max_done_retries=1, verify=good, max_verify_retries=1
    ).generate_sync("go")

    assert ["done?", "done?", "good?", "done?", "good?"] == asked
    assert ("good", ()) == (result.text, result.stopped_by)


def test_a_stop_condition_comes_before_the_check_of_the_answer() -> None:
    """L42: who stops a run does not want to hear that it is not done."""
    asked: list[str] = []

    def done(info: AnswerInfo) -> bool:
        asked.append(info.text)
        return False

    model = ScriptedModel([calls(call("read")), "never"])
    Agent(
        model, tools=[counting([], "read")], stop_when=stop.has_tool_call("read"), done_when=done
    ).generate_sync("go")

    assert [] == asked


@pytest.mark.parametrize(
    "options", [AgentOptions(max_done_retries=2), AgentOptions(max_verify_retries=2)]
)
def test_a_number_of_retries_without_a_check_is_refused(options: AgentOptions) -> None:
    """L46: an option that could have no effect says so."""
    with pytest.raises(ConfigError, match=r"max_.*_retries"):
        Agent(ScriptedModel([]), **options)


def test_a_client_tool_may_need_an_approval_first() -> None:
    """T05: it waits twice: for a yes, and then for its result."""
    client = Tool(name="client", description="Elsewhere.", parameters=NUMBER, needs_approval=True)
    agent = Agent(ScriptedModel([calls(call("client")), "done"]), tools=[client])

    parked = agent.generate_sync("go")
    assert ["approval"] == [one.kind for one in parked.pending]
    allowed = agent.resume_sync(parked, approvals={parked.pending[0].key: True})
    assert ["client_tool"] == [one.kind for one in allowed.pending]
    done = agent.resume_sync(allowed, tool_results={allowed.pending[0].key: "here"})

    assert ["here"] == results_of(done.messages)


async def test_approved_and_denied_calls_of_one_turn_are_one_step() -> None:
    """A08, A09, A17: the stream tells a denial from a failure, and the loop goes on."""
    ran: list[str] = []
    model = ScriptedModel([calls(call("pay", 1), call("pay", 2), call("read")), "done"])
    agent = Agent(
        model,
        tools=[counting(ran, needs_approval=True), failing([])],
        approve_tool_call=lambda one: one.arguments == '{"x": 1}',
    )

    stream = agent.stream("go")
    states: dict[str, list[tuple[str, bool]]] = {}
    async for part in stream.full_stream:
        if isinstance(part, ToolState):
            states.setdefault(part.key, []).append((part.state, part.denied))
    steps = len((await stream.result()).steps)
    assert ["pay 1"] == ran
    assert 2 == steps
    assert ("complete", False) == states["c0.0"][-1]
    assert ("error", True) == states["c0.1"][-1]
    assert ("error", False) == states["c0.2"][-1]


def test_a_client_s_result_and_an_approval_are_taken_up_whole() -> None:
    """A13: every id is answered, whoever answers it; what nobody decided is denied."""
    ran: list[str] = []
    client = Tool(name="client", description="Elsewhere.", parameters=NUMBER)
    tools = [client, counting(ran, needs_approval=True)]
    three = calls(call("client"), call("pay", 1), call("pay", 2))
    parked = Agent(ScriptedModel([three]), tools=tools).generate_sync("go")

    later = ScriptedModel(["done"])
    result = Agent(later, tools=tools).generate_sync(
        messages=[UserMessage("go"), *parked.messages],
        approvals={"pay-1": True},
        tool_results={"client-1": "here"},
    )

    assert ["pay 1"] == ran
    assert paired(later.requests[0].messages)
    statuses = [one.status for one in result.messages if isinstance(one, ToolResult)]
    assert ["ok", "ok", "denied"] == statuses


def test_signed_tokens_refuse_an_approval_without_its_token() -> None:
    """A20: a bare yes proves nothing, and its giver is told before it counts as a no."""
    ran: list[str] = []
    agent = Agent(
        ScriptedModel([calls(call("pay")), "ok"]),
        tools=[counting(ran, needs_approval=True)],
        approval_secret="s",  # noqa: S106 - of this test
    )
    parked = agent.generate_sync("go")

    with pytest.raises(ConfigError, match=r"call\.approve\(\)"):
        agent.resume_sync(parked, approvals={parked.pending[0].key: True})

    assert [] == ran


def test_an_approver_decides_for_the_agents_below_too() -> None:
    """D04: who is asked above is asked below, and only a yes runs."""
    ran: list[str] = []
    heard: list[tuple[str, ...]] = []

    def approver(one: object) -> bool:
        heard.append(getattr(one, "agents", ()))
        return False

    clerk = agent_tool(
        ScriptedModel([calls(call("pay")), "not paid"], label="clerk"),
        name="clerk",
        description="Pays.",
        tools=[counting(ran, needs_approval=True)],
    )
    chief = ScriptedModel([ask("clerk"), "done"], label="chief")

    result = Agent(chief, tools=[clerk], approve_tool_call=approver).generate_sync("go")

    assert ([], [("clerk",)]) == (ran, heard)
    assert EndReason.COMPLETED is result.end_reason


def test_what_an_agent_below_uses_is_part_of_the_bill() -> None:
    """D06: tokens of children count, and count toward the budget."""
    helper = ScriptedModel([calls(call("read")), "found"], label="helper")
    tool = agent_tool(helper, name="helper", description="…", tools=[counting([], "read")])
    chief = ScriptedModel([ask("helper"), "done"], label="chief")

    result = Agent(chief, tools=[tool]).generate_sync("go")

    own = result.steps[0].usage + result.steps[1].usage
    assert result.run.spent.usage.total_tokens > own.total_tokens
    assert 4 == result.run.spent.model_calls


async def test_an_abort_reaches_the_tools_of_agents_below() -> None:
    """D07: nothing goes on in the dark."""

    begun, ended = asyncio.Event(), asyncio.Event()

    async def execute(_: Mapping[str, int], __: ToolContext) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    slow = Tool(name="slow", parameters=NUMBER, execute=execute)
    helper = agent_tool(
        ScriptedModel([calls(call("slow"))], label="helper"),
        name="helper",
        description="…",
        tools=[slow],
    )
    agent = Agent(ScriptedModel([ask("helper")], label="chief"), tools=[helper])
    stream = agent.stream("go")
    result = asyncio.ensure_future(stream.result())
    await begun.wait()
    stream.abort("stop")

    assert EndReason.ABORTED is (await result).end_reason
    assert ended.is_set()


def test_an_agent_that_is_cut_off_quotes_its_last_words() -> None:
    """D08: the caller is not stopped by a child's limit, nor told that its work was done."""
    helper = ScriptedModel([{"text": "so far: 42", **calls(call("read"))}, "never"], label="helper")
    tool = agent_tool(
        helper, name="helper", description="…", tools=[counting([], "read")], max_steps=1
    )
    chief = ScriptedModel([ask("helper"), "done"], label="chief")

    result = Agent(chief, tools=[tool]).generate_sync("go")

    (told,) = results_of(result.messages)
    assert told.startswith("The agent gave no answer; it ended by max_steps.")
    assert told.endswith("which are no answer: so far: 42")


def test_each_call_of_an_agent_is_a_conversation_of_its_own() -> None:
    """D10: the second task is not told of the first."""
    helper = ScriptedModel(["one", "two"], label="helper")
    tool = agent_tool(helper, name="helper", description="…")
    chief = ScriptedModel([ask("helper", "first"), ask("helper", "second"), "done"], label="chief")

    Agent(chief, tools=[tool]).generate_sync("go")

    assert [["first"], ["second"]] == [
        [one.content for one in request.messages if isinstance(one, UserMessage)]
        for request in helper.requests
    ]


def test_a_prepare_step_sees_the_conversation_made_shorter() -> None:
    """Its word is the last: what it returns is what is sent."""
    seen: list[int] = []
    talk = [
        UserMessage("begin"),
        *(
            one
            for number in range(12)
            for one in (AssistantMessage((TextPart("word " * 200),)), UserMessage(f"and {number}?"))
        ),
    ]
    model = ScriptedModel(["in short", "done"])

    def prepare(info: StepInfo) -> None:
        seen.append(len(info.messages))

    agent = Agent(model, compaction=Compaction(1_000, keep_recent_turns=1), prepare_step=prepare)
    agent.generate_sync(messages=talk)

    assert seen == [len(model.requests[-1].messages)]
    assert seen[0] < len(talk)


def test_a_synchronous_caller_may_resume_by_the_result(tmp_path: Path) -> None:
    """D13: each synchronous call closes what it opened, and the next one opens it again."""
    ran: list[str] = []
    agent = Agent(
        ScriptedModel([calls(call("pay")), "done"]),
        tools=[counting(ran, needs_approval=True)],
        store=str(tmp_path / "runs.db"),
    )

    parked = agent.generate_sync("go")
    result = agent.resume_sync(parked, approvals={parked.pending[0].key: True})

    assert (["pay 1"], "done") == (ran, result.text)
