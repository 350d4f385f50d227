"""What agents below do is seen in the one stream of the agent above, while they do it."""

from __future__ import annotations

import asyncio
from collections import Counter

from graphloop import Agent, AgentTool, agent_tool
from graphloop.parts.kinds import Part, SubAgent, ToolCallPart, ToolResultPart
from graphloop.providers.base import TextDelta
from graphloop.testing import ScriptedModel
from tests.regressions.worlds import call, calls, counting


def ask(*names: str) -> dict[str, object]:
    """Return a reply that calls agents."""
    return {"calls": [{"name": name, "arguments": {"prompt": "do it"}} for name in names]}


def worker(name: str) -> AgentTool:
    """Return an agent that looks something up and says so."""
    model = ScriptedModel([calls(call("read")), f"{name} has read"], label=name)
    return agent_tool(model, name=name, description="…", tools=[counting([], "read")])


def parts_of(agent: Agent) -> list[Part]:
    """Return all parts of a run."""

    async def scenario() -> list[Part]:
        return [part async for part in agent.stream("go").full_stream]

    return asyncio.run(scenario())


def test_openai_agents_python_864_parallel_tool_calls_are_seen() -> None:
    """openai/openai-agents-python#864: an agent as a tool showed nothing but its last words."""
    chief = ScriptedModel([ask("left", "right"), "done"], label="chief")

    parts = parts_of(Agent(chief, tools=[worker("left"), worker("right")]))

    inner = [part for part in parts if isinstance(part, SubAgent)]
    called = Counter(one.agents for one in inner if isinstance(one.part, ToolCallPart))
    answered = Counter(one.agents for one in inner if isinstance(one.part, ToolResultPart))
    assert {("left",): 1, ("right",): 1} == called == answered


def test_openai_agents_js_705_one_stream_has_all_agents() -> None:
    """openai/openai-agents-js#705: a stream held the main agent's events alone."""
    middle_model = ScriptedModel([ask("inner"), "middle has asked"], label="middle")
    middle = agent_tool(middle_model, name="middle", description="…", tools=[worker("inner")])

    parts = parts_of(Agent(ScriptedModel([ask("middle"), "done"], label="c"), tools=[middle]))

    said: dict[tuple[str, ...], str] = {}
    for part in parts:
        if isinstance(part, SubAgent) and isinstance(part.part, TextDelta):
            said[part.agents] = said.get(part.agents, "") + part.part.text
    assert {("middle",): "middle has asked", ("middle", "inner"): "inner has read"} == said
    assert not any(isinstance(part.part, SubAgent) for part in parts if isinstance(part, SubAgent))


def test_openai_agents_python_2065_an_agent_is_heard_in_its_run() -> None:
    """openai/openai-agents-python#2065: how to see what an agent streams that is a tool?"""
    parts = parts_of(Agent(ScriptedModel([ask("left"), "done"], label="c"), tools=[worker("left")]))

    heard = [
        at
        for at, part in enumerate(parts)
        if isinstance(part, SubAgent) and isinstance(part.part, TextDelta)
    ]
    (answer,) = [at for at, part in enumerate(parts) if isinstance(part, ToolResultPart)]
    assert heard
    assert max(heard) < answer


async def test_langgraph_4718_nested_events_are_apart_without_a_flag() -> None:
    """langchain-ai/langgraph#4718: a subgraph was silent unless asked for, and then unlabelled."""
    agent = Agent(ScriptedModel([ask("left"), "done"], label="c"), tools=[worker("left")])

    assert "done" == "".join([text async for text in agent.stream("go").text_stream])
