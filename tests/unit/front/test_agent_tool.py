"""agent_tool: an agent that exists only to be called by others."""

from __future__ import annotations

import asyncio

import pytest

from graphloop import Agent, agent_tool, tool
from graphloop.errors import ConfigError
from graphloop.front.sub_agents import AgentTool
from graphloop.testing import ScriptedModel
from tests.strategies import call, reply, wrong


def pay() -> str:
    """Pay."""
    return "paid"


def test_an_agent_tool_is_an_agent_as_a_tool() -> None:
    """All the options of an agent, and those of `as_tool`."""
    model = ScriptedModel(["42"], label="kid's")

    child = agent_tool(
        model, name="kid", description="knows", instructions="be brief", needs_approval=True
    )

    assert isinstance(child, AgentTool)
    assert ("kid", "knows", "agent") == (
        child.name,
        child.tool.spec.description,
        child.tool.spec.kind,
    )
    assert child.tool.needs_approval is True
    assert not child.takes_over
    parent = Agent(
        ScriptedModel([reply(call("kid", "", '{"prompt": "x"}')), "done"]),
        tools=[child],
        approve_tool_call=lambda _: True,
    )
    result = asyncio.run(parent.generate("go"))
    assert "42" == result.steps[0].tool_results[0].content
    assert "be brief" in str(model.requests[0].messages[0])


def test_an_agent_tool_can_take_over() -> None:
    """It takes no arguments then: it reads the conversation."""
    child = agent_tool(ScriptedModel([], label="m"), name="kid", description="d", takes_over=True)

    assert child.takes_over
    assert child.tool.spec.ends
    assert '"properties":{}' in child.tool.spec.parameters.replace(" ", "")


def test_a_wrong_option_is_told_at_once() -> None:
    """As an agent's."""
    with pytest.raises(ConfigError, match="max_steps"):
        agent_tool(ScriptedModel([]), description="d", max_steps=0)
    with pytest.raises(ConfigError, match="max_stpes"):
        agent_tool(ScriptedModel([]), description="d", **wrong({"max_stpes": 3}))


def test_a_child_whose_approvals_are_signed_is_not_called_by_a_parent_whose_are_not() -> None:
    """A child run takes the approvals of the run above it: it must not become easier to fool."""
    payer = agent_tool(
        ScriptedModel(["paid"], label="kid"),
        name="payer",
        description="Pays.",
        tools=[tool(pay, needs_approval=True)],
        approval_secret=b"kid",
    )

    with pytest.raises(ConfigError, match="'payer' takes signed approvals only"):
        Agent(ScriptedModel(["done"]), tools=[payer])
    parent = Agent(ScriptedModel(["done"]), tools=[payer], approval_secret=b"mine")
    assert "approval_secret" not in parent.options
