"""Calls without a result, results without a call: never sent, whatever happened before."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from graphloop import Agent, EndReason, Tool, ToolContext
from graphloop.agent.inputs import MessageInput
from graphloop.errors import ConfigError, ProviderError
from graphloop.limits import stop
from graphloop.stores.jsonl import JsonlStore
from graphloop.testing import ScriptedModel
from graphloop.values import (
    AssistantMessage,
    FinishReason,
    OpaquePart,
    Reply,
    ToolCall,
    ToolResult,
    UserMessage,
)
from tests.regressions.worlds import NUMBER, call, calls, counting, paired, results_of

ASKED = AssistantMessage((ToolCall("a", "read", '{"x": 1}'), ToolCall("b", "read", '{"x": 2}')))


def test_pydantic_ai_4728_a_poisoned_history_is_healed_first() -> None:
    """pydantic/pydantic-ai#4728: one orphan made every later request of a conversation fail."""
    model = ScriptedModel(["fine"])
    poisoned: list[MessageInput] = [
        UserMessage("go"),
        ASKED,
        ToolResult("", "b", "read", "two"),
        ToolResult("", "nobody", "read", "?"),
        UserMessage("and now?"),
    ]

    Agent(model, tools=[counting([], "read")]).generate_sync(messages=poisoned)

    assert paired(model.requests[0].messages)
    assert "two" == results_of(model.requests[0].messages)[1]


def test_pydantic_ai_4728_a_poisoned_history_can_be_refused() -> None:
    """pydantic/pydantic-ai#4728, for those who would rather know."""
    model = ScriptedModel(["fine"])
    agent = Agent(model, tools=[counting([], "read")], on_bad_history="refuse")

    with pytest.raises(ConfigError):
        agent.generate_sync(messages=[UserMessage("go"), ASKED, UserMessage("?")])

    assert [] == model.requests


class Hanging:
    """A tool that is under way for as long as nobody ends it."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.tool = Tool(name="slow", parameters=NUMBER, execute=self.execute)

    async def execute(self, arguments: Mapping[str, int], _: ToolContext) -> str:
        self.begun.set()
        await asyncio.Event().wait()
        return "never"


async def test_pydantic_ai_7977_a_run_stopped_in_a_tool_goes_on() -> None:
    """pydantic/pydantic-ai#7977: its history could not be given to a new run with a new prompt."""
    hanging = Hanging()
    model = ScriptedModel([calls(call("slow")), "never mind then"])
    agent = Agent(model, tools=[hanging.tool])
    stream = agent.stream("go")
    ended = asyncio.ensure_future(stream.result())
    await hanging.begun.wait()
    stream.abort("the user pressed stop")
    stopped = await ended

    history = [UserMessage("go"), *stopped.messages, UserMessage("never mind")]
    result = await agent.generate(messages=history)

    assert EndReason.ABORTED is stopped.end_reason
    assert paired(model.requests[-1].messages)
    assert "never mind then" == result.text


async def test_crush_529_a_cancelled_call_is_told_as_cancelled() -> None:
    """charmbracelet/crush#529: after a cancelled call, providers refused every request."""
    hanging = Hanging()
    agent = Agent(
        ScriptedModel([calls(call("slow"), call("read"))]),
        tools=[hanging.tool, counting([], "read")],
    )
    stream = agent.stream("go")
    ended = asyncio.ensure_future(stream.result())
    await hanging.begun.wait()
    stream.abort("stop")
    result = await ended

    assert paired(result.messages)
    slow, read = results_of(result.messages)
    assert "the run was cancelled" in slow
    assert "read 1 done" == read


async def test_open_codex_50_results_after_a_cancellation_are_not_sent() -> None:
    """ymichael/open-codex#50: late results were sent to the model though the user had stopped."""
    hanging = Hanging()
    model = ScriptedModel([calls(call("slow")), "sent all the same"])
    stream = Agent(model, tools=[hanging.tool]).stream("go")
    ended = asyncio.ensure_future(stream.result())
    await hanging.begun.wait()
    stream.abort("stop")
    await ended

    assert 1 == len(model.requests)


def test_openai_agents_python_4827_stray_results_do_no_harm() -> None:
    """openai/openai-agents-python#4827: an orphaned output was kept, and no turn worked again."""
    model = ScriptedModel(["fine"])
    orphan: list[MessageInput] = [
        UserMessage("go"),
        ToolResult("", "gone", "read", "one"),
        UserMessage("still there?"),
    ]

    result = Agent(model).generate_sync(messages=orphan)

    assert "fine" == result.text
    assert ["user", "user"] == [one.role for one in model.requests[0].messages]


def test_vercel_ai_12709_messages_pass_an_approval_that_waits() -> None:
    """vercel/ai#12709: the provider refused the request, for the call that waited had no result."""
    ran: list[str] = []
    model = ScriptedModel([calls(call("pay")), "as you like"])
    agent = Agent(model, tools=[counting(ran, needs_approval=True)])

    parked = agent.generate_sync("go")
    history = [UserMessage("go"), *parked.messages, UserMessage("forget it")]
    result = agent.generate_sync(messages=history)

    assert [] == ran
    assert paired(model.requests[-1].messages)
    assert "as you like" == result.text


def test_vercel_ai_18970_no_server_tool_passes_an_approval_by() -> None:
    """vercel/ai#18970: a deferred server tool made the loop go on though an approval waited."""
    both = AssistantMessage(
        (OpaquePart('{"type": "server_tool_use", "id": "s"}'), ToolCall("p", "pay", '{"x": 1}'))
    )
    model = ScriptedModel([Reply(both, FinishReason.TOOL_CALLS), "went on"])

    parked = Agent(model, tools=[counting([], needs_approval=True)]).generate_sync("go")

    assert EndReason.PARKED is parked.end_reason
    assert 1 == len(model.requests)


def test_harness_sdk_4135_a_call_that_was_cut_never_runs() -> None:
    """strands-agents/harness-sdk#4135: a call cut by the token limit ran with empty arguments."""
    ran: list[str] = []
    cut = AssistantMessage((ToolCall("a", "read", '{"x": '),))
    model = ScriptedModel([Reply(cut, FinishReason.LENGTH)] * 3)

    result = Agent(model, tools=[counting(ran, "read")]).generate_sync("go")

    assert [] == ran
    assert paired(result.messages)
    assert EndReason.LENGTH is result.end_reason


async def test_harness_sdk_3651_a_run_left_amid_its_tools_goes_on(
    tmp_path: Path,
) -> None:
    """strands-agents/harness-sdk#3651: a turn interrupted in its tools broke its session."""
    hanging = Hanging()
    store = JsonlStore(tmp_path)
    agent = Agent(ScriptedModel([calls(call("slow"))]), tools=[hanging.tool], store=store)
    stream = agent.stream("go", run_id="left")
    driving = asyncio.ensure_future(stream.consume())
    await hanging.begun.wait()
    await stream.aclose()
    await driving

    quick = counting([], "slow")
    later = ScriptedModel(["gone on", "and again"])
    again = Agent(later, tools=[quick], store=store)
    resumed = await again.resume("left")
    after = await again.generate(messages=[UserMessage("go"), *resumed.messages, UserMessage("?")])

    assert "gone on" == resumed.text
    assert "and again" == after.text
    assert paired(later.requests[-1].messages)


def test_harness_sdk_1111_a_history_with_an_open_call_goes_on() -> None:
    """strands-agents/harness-sdk#1111: a session whose last message was a call was lost."""
    ran: list[str] = []
    model = ScriptedModel(["done"])

    result = Agent(model, tools=[counting(ran, "read")]).generate_sync(
        messages=[UserMessage("go"), ASKED], approvals={}
    )

    assert ["read 1", "read 2"] == ran
    assert paired(model.requests[0].messages)
    assert "done" == result.text


async def test_agentscope_1888_a_broken_stream_leaves_no_call_behind() -> None:
    """agentscope-ai/agentscope#1888: a call of a broken stream stayed in the memory, unanswered."""
    ran: list[str] = []
    model = ScriptedModel([{"calls": [call("read")], "error": "the line broke"}])
    agent = Agent(model, tools=[counting(ran, "read")])
    stream = agent.stream("go")

    with pytest.raises(ProviderError):
        await stream.result()
    assert stream.run is not None
    assert paired(stream.run.messages)
    assert [] == ran


def test_assistant_ui_4766_results_of_answered_calls_are_refused() -> None:
    """assistant-ui/assistant-ui#4766: a result that came too late was a second one for its call."""
    client = Tool(name="client", description="Somebody else's.", parameters=NUMBER)
    model = ScriptedModel([calls(call("client")), "done"])
    agent = Agent(model, tools=[client])

    parked = agent.generate_sync("go")
    key = parked.pending[0].key
    done = agent.resume_sync(parked, tool_results={key: "in time"})

    with pytest.raises(ConfigError):
        agent.resume_sync(done, tool_results={key: "too late"})
    assert ["in time"] == results_of(done.messages)


def test_vercel_ai_3320_a_run_stopped_by_tools_has_answered_them() -> None:
    """vercel/ai#3320: messages of a run that ended on a call could not be sent again."""
    model = ScriptedModel([calls(call("read")), "later"])
    agent = Agent(model, tools=[counting([], "read")], stop_when=stop.has_tool_call("read"))

    stopped = agent.generate_sync("go")
    agent.generate_sync(messages=[UserMessage("go"), *stopped.messages, UserMessage("so?")])

    assert paired(model.requests[-1].messages)
