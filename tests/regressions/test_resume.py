"""Resume: what ran before the pause runs never again (named after the failures of others)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from graphloop import Agent, EndReason, StepInfo, Tool, ToolContext
from graphloop.errors import RunBusy
from graphloop.testing import ScriptedModel
from tests.regressions.worlds import NUMBER, call, calls, counting, paired, results_of


def test_langgraph_6208_nothing_runs_before_all_answers() -> None:
    """langchain-ai/langgraph#6208: a node with two interrupts ran again after the first answer."""
    ran: list[str] = []
    model = ScriptedModel([calls(call("pay", 1), call("pay", 2), call("read")), "done"])
    gated, free = counting(ran, needs_approval=True), counting(ran, "read")
    agent = Agent(model, tools=[gated, free])

    parked = agent.generate_sync("go")
    half = agent.resume_sync(parked, approvals={parked.pending[0].key: True})
    assert [] == ran
    whole = agent.resume_sync(half, approvals={half.pending[0].key: True})

    assert ["pay 1", "pay 2", "read 1"] == ran
    assert 2 == len(model.requests)
    assert EndReason.COMPLETED is whole.end_reason


def test_langgraph_7780_a_question_in_a_loop_repeats_nothing() -> None:
    """langchain-ai/langgraph#7780: each resume ran again all that stood before the interrupt."""
    ran: list[str] = []
    prepared: list[int] = []
    model = ScriptedModel([*(calls(call("pay", n)) for n in range(3)), "done"])

    def prepare(info: StepInfo) -> None:
        prepared.append(info.step_index)

    agent = Agent(model, tools=[counting(ran, needs_approval=True)], prepare_step=prepare)
    result = agent.generate_sync("go")
    while result.pending:
        result = agent.resume_sync(result, approvals={result.pending[0].key: True})

    assert ["pay 0", "pay 1", "pay 2"] == ran
    assert [0, 1, 2, 3] == prepared
    assert 4 == len(model.requests)


async def test_langgraph_7417_no_other_worker_repeats_a_long_tool(
    tmp_path: Path,
) -> None:
    """langchain-ai/langgraph#7417: a tool of three minutes was run a second time meanwhile."""
    ran: list[str] = []

    begun, over = asyncio.Event(), asyncio.Event()

    async def slow(arguments: Mapping[str, int], _: ToolContext) -> str:
        ran.append("slow")
        begun.set()
        await over.wait()
        return "done"

    tools = [Tool(name="slow", parameters=NUMBER, execute=slow)]
    store = str(tmp_path / "runs.db")
    first = Agent(ScriptedModel([calls(call("slow")), "done"]), tools=tools, store=store)
    other = Agent(ScriptedModel(["done"]), tools=tools, store=store)
    async with asyncio.TaskGroup() as group:
        run = group.create_task(first.generate("go", run_id="long"))
        await begun.wait()
        with pytest.raises(RunBusy):
            await other.resume("long")
        over.set()
    assert EndReason.COMPLETED is run.result().end_reason
    await first.aclose()
    await other.aclose()
    assert ["slow"] == ran


def test_llama_index_22559_what_ran_before_the_wait_stays_done() -> None:
    """run-llama/llama_index#22559: waiting replayed the step, side effects before it included."""
    ran: list[str] = []
    model = ScriptedModel([calls(call("charge")), calls(call("pay")), "done"])
    agent = Agent(model, tools=[counting(ran, "charge"), counting(ran, needs_approval=True)])

    parked = agent.generate_sync("go")
    agent.resume_sync(parked, approvals={parked.pending[0].key: True})

    assert ["charge 1", "pay 1"] == ran


def test_adk_python_6198_a_confirmation_repeats_no_invocation() -> None:
    """google/adk-python#6198: confirming a tool made the whole invocation happen once more."""
    ran: list[str] = []
    model = ScriptedModel([calls(call("pay")), "done"])
    agent = Agent(model, tools=[counting(ran, needs_approval=True)])

    parked = agent.generate_sync("go")
    result = agent.resume_sync(parked, approvals={parked.pending[0].key: True})

    first, second = (tuple(request.messages) for request in model.requests)
    assert first == second[: len(first)]
    assert [0, 1] == [step.index for step in result.steps]


def test_langgraph_3126_an_approval_repeats_no_call_beside_it() -> None:
    """langchain-ai/langgraph#3126: one tool's interrupt had the finished tools beside it rerun."""
    ran: list[str] = []
    model = ScriptedModel([calls(call("read"), call("pay")), "done"])
    tools = [counting(ran, "read"), counting(ran, needs_approval=True)]
    agent = Agent(model, tools=tools, run_ungated=True)

    parked = agent.generate_sync("go")
    assert ["read 1"] == ran
    result = agent.resume_sync(parked, approvals={parked.pending[0].key: True})

    assert ["read 1", "pay 1"] == ran
    assert ["read 1 done", "pay 1 done"] == results_of(result.messages)


def test_openai_agents_js_1418_a_decision_is_not_judged_again() -> None:
    """openai/openai-agents-js#1418: a resume asked `needsApproval` again about decided calls."""
    judged: list[int] = []
    ran: list[str] = []

    def needs(arguments: Mapping[str, int], _: ToolContext) -> bool:
        judged.append(arguments["x"])
        return True

    agent = Agent(
        ScriptedModel([calls(call("pay")), "done"]), tools=[counting(ran, needs_approval=needs)]
    )
    parked = agent.generate_sync("go")
    agent.resume_sync(parked, approvals={parked.pending[0].key: True})

    assert [1] == judged
    assert ["pay 1"] == ran


async def test_adk_python_6497_no_earlier_run_gets_into_a_later_resume(
    tmp_path: Path,
) -> None:
    """google/adk-python#6497: replay waited for events of an invocation that was over."""
    ran: list[str] = []
    model = ScriptedModel(["first answer", calls(call("pay")), "second answer"])
    tools = [counting(ran, needs_approval=True)]
    agent = Agent(model, tools=tools, store=str(tmp_path / "runs.db"))

    await agent.generate("one", run_id="one")
    parked = await agent.generate("two", run_id="two")
    result = await agent.resume("two", approvals={parked.pending[0].key: True})
    await agent.aclose()
    assert "second answer" == result.text
    assert ["pay 1"] == ran


def test_pydantic_ai_2888_new_messages_after_resume_are_complete() -> None:
    """pydantic/pydantic-ai#2888: results that were there before the resume were left out."""
    ran: list[str] = []
    model = ScriptedModel([calls(call("read"), call("pay")), "done"])
    tools = [counting(ran, "read"), counting(ran, needs_approval=True)]
    agent = Agent(model, tools=tools, run_ungated=True)

    parked = agent.generate_sync("go")
    result = agent.resume_sync(parked, approvals={parked.pending[0].key: True})

    assert paired(result.messages)
    assert ["assistant", "tool", "tool", "assistant"] == [one.role for one in result.messages]


def test_openai_agents_python_2426_tool_calls_are_kept() -> None:
    """openai/openai-agents-python#2426: sessions forgot the calls, and the model made them anew."""
    ran: list[str] = []
    model = ScriptedModel([calls(call("read")), "done", "and again"])
    agent = Agent(model, tools=[counting(ran, "read")])

    first = agent.generate_sync("go")
    agent.generate_sync(
        messages=[
            {"role": "user", "content": "go"},
            *first.messages,
            {"role": "user", "content": "?"},
        ]
    )

    assert ["user", "assistant", "tool", "assistant", "user"] == [
        one.role for one in model.requests[-1].messages
    ]
