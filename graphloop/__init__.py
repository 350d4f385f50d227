"""graphloop: LLM agents as explicit, typed graphs that you can see, prove, run and resume."""

from typing import TYPE_CHECKING

from .lazy import front_door

if TYPE_CHECKING:
    from .agent import (
        Agent,
        AgentTool,
        AnswerInfo,
        Graph,
        Model,
        ObjectResult,
        PendingTurn,
        Review,
        RunResult,
        Runs,
        RunStream,
        StepChanges,
        StepInfo,
        ToolRunner,
        agent_tool,
        generate_object,
        generate_object_sync,
        generate_text,
        generate_text_sync,
        stream_chat,
    )
    from .conversation import Compaction
    from .errors import OutputInvalid, ToolError
    from .graph import END, Edges
    from .limits import ModelPrice, stop
    from .messages import dump_messages, load_messages
    from .node_protocol import Node
    from .own_nodes import NodeContext, node
    from .policy import Approval, Policy, allow, approve, ask, decline, deny
    from .proofs import check
    from .providers import Retries, Timeouts
    from .questions import Pending
    from .run import EndReason
    from .spending import Budget, budget
    from .tools import Tool, ToolContext, tool
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
    "Review",
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
    "agent_tool",
    "allow",
    "approve",
    "ask",
    "budget",
    "check",
    "decline",
    "deny",
    "dump_messages",
    "generate_object",
    "generate_object_sync",
    "generate_text",
    "generate_text_sync",
    "load_messages",
    "node",
    "stop",
    "stream_chat",
    "tool",
]

_HOMES = {
    ".agent": (
        "Agent",
        "AgentTool",
        "AnswerInfo",
        "Graph",
        "Model",
        "ObjectResult",
        "PendingTurn",
        "RunResult",
        "RunStream",
        "Runs",
        "StepChanges",
        "StepInfo",
        "ToolRunner",
        "Review",
        "agent_tool",
        "generate_object",
        "generate_object_sync",
        "generate_text",
        "generate_text_sync",
        "stream_chat",
    ),
    ".conversation": ("Compaction",),
    ".questions": ("Pending",),
    ".errors": (
        "OutputInvalid",
        "ToolError",
    ),
    ".graph": (
        "END",
        "Edges",
    ),
    ".limits": (
        "ModelPrice",
        "stop",
    ),
    ".messages": (
        "dump_messages",
        "load_messages",
    ),
    ".node_protocol": ("Node",),
    ".own_nodes": (
        "NodeContext",
        "node",
    ),
    ".policy": (
        "Approval",
        "Policy",
        "allow",
        "approve",
        "ask",
        "decline",
        "deny",
    ),
    ".proofs": ("check",),
    ".providers": (
        "Retries",
        "Timeouts",
    ),
    ".run": ("EndReason",),
    ".spending": (
        "Budget",
        "budget",
    ),
    ".tools": (
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


__getattr__ = front_door(__name__, _HOMES)


def __dir__() -> list[str]:
    """Return all public names, including names that are not loaded yet."""
    return sorted(__all__)
