"""graphloop: LLM agents as explicit, typed graphs that you can see, prove, run and resume."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .agent.agent import Agent
    from .agent.generate import (
        ObjectResult,
        agent_tool,
        generate_object,
        generate_object_sync,
        generate_text,
        generate_text_sync,
        stream_chat,
    )
    from .agent.graph import Graph
    from .agent.hooks import AnswerInfo, StepChanges, StepInfo, Verdict
    from .agent.inputs import Model
    from .agent.result import RunResult
    from .agent.runs import Runs
    from .agent.stream import RunStream
    from .agent.sub_agents import AgentTool
    from .agent.tool_runner import ToolRunner
    from .agent.turn_in_hand import PendingTurn
    from .conversation.compaction import Compaction
    from .driver.pending import Pending
    from .errors import OutputInvalid, ToolError
    from .graph import END, Edges
    from .limits import stop
    from .limits.model_price import ModelPrice
    from .node_protocol import Node
    from .own_nodes.node_decorator import node
    from .own_nodes.node_signature import NodeContext
    from .policy.approvals import Approval, approve, decline
    from .policy.policy import Policy, allow, ask, deny
    from .proofs.check import check
    from .providers.retries import Retries
    from .providers.timeouts import Timeouts
    from .run import EndReason
    from .spending import Budget, budget
    from .tools.tool import Tool, ToolContext, tool
    from .turn import StepResult
    from .values import FinishReason, ToolChoice, Usage

__all__ = [
    "END",
    "Agent",
    "AgentTool",
    "AnswerInfo",
    "Approval",
    "Budget",
    "Compaction",
    "Edges",
    "EndReason",
    "FinishReason",
    "Graph",
    "Model",
    "ModelPrice",
    "Node",
    "NodeContext",
    "ObjectResult",
    "OutputInvalid",
    "Pending",
    "PendingTurn",
    "Policy",
    "Retries",
    "RunResult",
    "RunStream",
    "Runs",
    "StepChanges",
    "StepInfo",
    "StepResult",
    "Timeouts",
    "Tool",
    "ToolChoice",
    "ToolContext",
    "ToolError",
    "ToolRunner",
    "Usage",
    "Verdict",
    "agent_tool",
    "allow",
    "approve",
    "ask",
    "budget",
    "check",
    "decline",
    "deny",
    "generate_object",
    "generate_object_sync",
    "generate_text",
    "generate_text_sync",
    "node",
    "stop",
    "stream_chat",
    "tool",
]

_HOMES = {
    ".agent.agent": ("Agent",),
    ".agent.generate": (
        "ObjectResult",
        "agent_tool",
        "generate_object",
        "generate_object_sync",
        "generate_text",
        "generate_text_sync",
        "stream_chat",
    ),
    ".agent.graph": ("Graph",),
    ".agent.hooks": (
        "AnswerInfo",
        "StepChanges",
        "StepInfo",
        "Verdict",
    ),
    ".agent.inputs": ("Model",),
    ".agent.result": ("RunResult",),
    ".agent.runs": ("Runs",),
    ".agent.stream": ("RunStream",),
    ".agent.sub_agents": ("AgentTool",),
    ".agent.tool_runner": ("ToolRunner",),
    ".agent.turn_in_hand": ("PendingTurn",),
    ".conversation.compaction": ("Compaction",),
    ".driver.pending": ("Pending",),
    ".errors": (
        "OutputInvalid",
        "ToolError",
    ),
    ".graph": (
        "END",
        "Edges",
    ),
    ".limits": ("stop",),
    ".limits.model_price": ("ModelPrice",),
    ".node_protocol": ("Node",),
    ".own_nodes.node_decorator": ("node",),
    ".own_nodes.node_signature": ("NodeContext",),
    ".policy.approvals": (
        "Approval",
        "approve",
        "decline",
    ),
    ".policy.policy": (
        "Policy",
        "allow",
        "ask",
        "deny",
    ),
    ".proofs.check": ("check",),
    ".providers.retries": ("Retries",),
    ".providers.timeouts": ("Timeouts",),
    ".run": ("EndReason",),
    ".spending": (
        "Budget",
        "budget",
    ),
    ".tools.tool": (
        "Tool",
        "ToolContext",
        "tool",
    ),
    ".turn": ("StepResult",),
    ".values": (
        "FinishReason",
        "ToolChoice",
        "Usage",
    ),
}


def __getattr__(name: str) -> object:
    """Load a public name from its home on first use, so that importing costs what is used.

    The homes stand here twice, because type checkers follow import statements only; a test holds
    the two against each other.
    """
    for home, names in _HOMES.items():
        if name in names:
            value: object = getattr(import_module(home, __name__), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
