"""agent_tool: an agent made to be called by other agents."""

from __future__ import annotations

from typing import Unpack

from ..tool_options import Approval
from .agent import Agent
from .child import AgentTool
from .options import AgentOptions
from .told import Model

__all__ = ["agent_tool"]


def agent_tool(
    model: Model,
    *,
    description: str,
    needs_approval: Approval = False,
    takes_over: bool = False,
    **options: Unpack[AgentOptions],
) -> AgentTool:
    """Return an agent that other agents call like a tool, by its `name`.

    Args:
        model: `"provider:model"`, or a provider.
        description: what it is for; the calling model decides by this.
        needs_approval: whether a human must agree to a call.
        takes_over: whether the agent reads the whole conversation and gives the run's answer.
        options: see `AgentOptions`; `name` is the tool's name too.

    Raises:
        ConfigError: an option, the model or a tool cannot work.
    """
    agent = Agent(model, **options)
    return agent.as_tool(
        description=description, needs_approval=needs_approval, takes_over=takes_over
    )
