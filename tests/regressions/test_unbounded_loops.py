"""Loops that never ended: here each has a bound, and the bound ends it with a result."""

from __future__ import annotations

from collections.abc import Mapping

from graphloop import (
    Agent,
    EndReason,
    ModelPrice,
    StepChanges,
    StepInfo,
    ToolChoice,
    agent_tool,
    budget,
)
from graphloop.limits import stop
from graphloop.testing import ScriptedModel
from graphloop.values import ModelRequest
from tests.regressions.worlds import call, calls, counting, paired

EVER = [calls(call("read"))] * 50


def test_langgraph_6731_a_model_that_only_calls_tools_ends() -> None:
    """langchain-ai/langgraph#6731: an agent looped until the recursion limit raised."""
    ran: list[str] = []
    model = ScriptedModel(EVER)

    result = Agent(model, tools=[counting(ran, "read")], max_steps=4).generate_sync("go")

    assert EndReason.MAX_STEPS is result.end_reason
    assert 4 == len(model.requests) == len(ran)


def test_langgraph_4231_work_done_before_the_limit_is_not_lost() -> None:
    """langchain-ai/langgraph#4231: the limit's exception threw away all that the run had found."""
    result = Agent(ScriptedModel(EVER), tools=[counting([], "read")], max_steps=3).generate_sync(
        "go"
    )

    assert paired(result.messages)
    assert 3 == len(result.steps)
    assert result.run.spent.usage.total_tokens > 0


def test_langmanus_61_the_default_is_a_bound() -> None:
    """langmanus/langmanus#61: nobody had thought of a limit, and two nodes called each other."""
    result = Agent(ScriptedModel(EVER), tools=[counting([], "read")]).generate_sync("go")

    assert 20 == len(result.steps)


def test_vercel_ai_3944_a_forced_tool_is_not_forced_for_ever() -> None:
    """vercel/ai#3944: a required tool was required in every step, and the loop had no end."""

    def obedient(request: ModelRequest) -> str | Mapping[str, object]:
        return calls(call("read")) if request.tool_choice.mode == "required" else "done"

    model = ScriptedModel([obedient] * 5)
    choice = ToolChoice("required", scope="first_step")
    result = Agent(model, tools=[counting([], "read")], tool_choice=choice).generate_sync("go")

    assert EndReason.COMPLETED is result.end_reason
    assert ["required", "auto"] == [one.tool_choice.mode for one in model.requests]


def test_vercel_ai_12335_a_tool_forced_each_turn_is_bounded() -> None:
    """vercel/ai#12335: `prepareStep` forced one tool, the model called more, and it never ended."""
    ran: list[str] = []
    model = ScriptedModel([calls(call("read"), call("pay"))] * 30)

    def force(info: StepInfo) -> StepChanges:
        return StepChanges(tool_choice=ToolChoice("tool", "read"))

    tools = [counting(ran, "read"), counting(ran)]
    result = Agent(model, tools=tools, prepare_step=force, max_steps=6).generate_sync("go")

    assert ("tool_errors:pay",) == result.stopped_by
    assert ["read 1"] * 3 == ran
    assert 3 == len(model.requests)


def test_adk_python_2988_a_tool_that_ends_the_run_ends_it() -> None:
    """google/adk-python#2988: the exit tool was called, and called, and the loop went on."""
    ran: list[str] = []
    model = ScriptedModel([calls(call("exit_loop")), *EVER])
    tools = [counting(ran, "exit_loop", ends_run=True), counting(ran, "read")]

    result = Agent(model, tools=tools).generate_sync("go")

    assert ["exit_loop 1"] == ran
    assert 1 == len(model.requests)
    assert EndReason.COMPLETED is result.end_reason


def test_adk_python_3672_a_condition_ends_the_loop_before_max() -> None:
    """google/adk-python#3672: only the cap, or an empty account, ended the loop."""
    model = ScriptedModel([calls(call("read")), calls(call("finish")), *EVER])
    tools = [counting([], "read"), counting([], "finish")]

    result = Agent(model, tools=tools, stop_when=stop.has_tool_call("finish")).generate_sync("go")

    assert ("has_tool_call",) == result.stopped_by
    assert 2 == len(model.requests)


def test_langgraph_swarm_6_agents_that_call_each_other_end() -> None:
    """langchain-ai/langgraph-swarm-py#6: two agents handed over to each other without a limit."""
    third = ScriptedModel(["never asked"], label="third")
    inner = agent_tool(third, name="inner", description="…")
    middle_model = ScriptedModel([_delegation("inner"), "middle gives up"], label="middle")
    middle = agent_tool(middle_model, name="middle", description="…", tools=[inner])
    outer_model = ScriptedModel([_delegation("middle"), "outer ends"], label="outer")

    result = Agent(outer_model, tools=[middle], max_agent_depth=1).generate_sync("go")

    assert [] == third.requests
    assert "outer ends" == result.text


def _delegation(name: str) -> dict[str, object]:
    return {"calls": [{"name": name, "arguments": {"prompt": "do it"}}]}


def test_vercel_ai_8043_money_is_a_bound() -> None:
    """vercel/ai#8043: one open tab asked a model again and again for hours."""
    dear = calls(call("read")) | {"usage": {"input_tokens": 0, "output_tokens": 100_000}}
    agent = Agent(
        ScriptedModel([dear] * 30),
        tools=[counting([], "read")],
        budget=budget(usd=2.5),
        prices={"scripted": ModelPrice(input_usd=1.0, output_usd=10.0)},
    )

    result = agent.generate_sync("go")

    assert EndReason.BUDGET is result.end_reason
    assert ("budget.usd",) == result.stopped_by
    assert 3 == len(result.steps)


def test_gemini_cli_1531_the_same_mistake_again_ends_the_run() -> None:
    """google-gemini/gemini-cli#1531: loops of wrong parameters and failing tools went on."""
    wrong = {"calls": [{"name": "read", "arguments": {"x": "many"}}]}
    model = ScriptedModel([wrong] * 20)

    result = Agent(model, tools=[counting([], "read")]).generate_sync("go")

    assert EndReason.TOOL_ERRORS is result.end_reason
    assert 3 == len(model.requests)


def test_gemini_cli_1531_a_model_always_refused_is_stopped() -> None:
    """google-gemini/gemini-cli#1531, the other way to loop: asking for what is always denied."""
    model = ScriptedModel([calls(call("pay"))] * 20)

    agent = Agent(
        model, tools=[counting([], needs_approval=True)], approve_tool_call=lambda _: False
    )
    result = agent.generate_sync("go")

    assert EndReason.DENIALS is result.end_reason
    assert 5 == len(model.requests)
