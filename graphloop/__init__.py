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
        RunResult,
        RunStream,
        StepChanges,
        StepInfo,
        ToolRunner,
        Verdict,
        agent_tool,
        generate_object,
        generate_object_sync,
        generate_text,
        generate_text_sync,
        stream_chat,
    )
    from .conversation import Compaction
    from .driver import Pending
    from .effects import PersonSaid
    from .errors import AskFailed, OutputInvalid, ToolError
    from .graph import END, Edges
    from .limits import ModelPrice, stop
    from .node_protocol import Node
    from .own_nodes import (
        Asking,
        ChildResult,
        NodeContext,
        ask_agent,
        ask_model,
        ask_person,
        fallback,
        loop_until,
        map_over,
        node,
        parallel,
        retry,
        router,
        sub_graph,
        tell,
    )
    from .policy import Approval, Policy, allow, approve, ask, decline, deny
    from .proofs import check
    from .providers import Retries, Timeouts
    from .run import EndReason
    from .spending import Budget, budget
    from .tools import (
        NOT_DONE,
        UNKNOWN,
        Found,
        Tool,
        ToolContext,
        anthropic_code_execution,
        anthropic_web_fetch,
        anthropic_web_search,
        provider_tool,
        tool,
    )
    from .topology import Registry, Topology, dump, fingerprint, load, registry, with_agents
    from .turn import StepResult
    from .values import FinishReason, ToolChoice, Usage

__all__ = [
    "END",
    "NOT_DONE",
    "UNKNOWN",
    "Agent",
    "AgentTool",
    "AnswerInfo",
    "Approval",
    "AskFailed",
    "Asking",
    "Budget",
    "ChildResult",
    "Compaction",
    "Edges",
    "EndReason",
    "FinishReason",
    "Found",
    "Graph",
    "Model",
    "ModelPrice",
    "Node",
    "NodeContext",
    "ObjectResult",
    "OutputInvalid",
    "Pending",
    "PendingTurn",
    "PersonSaid",
    "Policy",
    "Registry",
    "Retries",
    "RunResult",
    "RunStream",
    "StepChanges",
    "StepInfo",
    "StepResult",
    "Timeouts",
    "Tool",
    "ToolChoice",
    "ToolContext",
    "ToolError",
    "ToolRunner",
    "Topology",
    "Usage",
    "Verdict",
    "agent_tool",
    "allow",
    "anthropic_code_execution",
    "anthropic_web_fetch",
    "anthropic_web_search",
    "approve",
    "ask",
    "ask_agent",
    "ask_model",
    "ask_person",
    "budget",
    "check",
    "decline",
    "deny",
    "dump",
    "fallback",
    "fingerprint",
    "generate_object",
    "generate_object_sync",
    "generate_text",
    "generate_text_sync",
    "load",
    "loop_until",
    "map_over",
    "node",
    "parallel",
    "provider_tool",
    "registry",
    "retry",
    "router",
    "stop",
    "stream_chat",
    "sub_graph",
    "tell",
    "tool",
    "with_agents",
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
        "StepChanges",
        "StepInfo",
        "ToolRunner",
        "Verdict",
        "agent_tool",
        "generate_object",
        "generate_object_sync",
        "generate_text",
        "generate_text_sync",
        "stream_chat",
    ),
    ".conversation": ("Compaction",),
    ".driver": ("Pending",),
    ".effects": ("PersonSaid",),
    ".errors": (
        "AskFailed",
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
    ".node_protocol": ("Node",),
    ".own_nodes": (
        "Asking",
        "ChildResult",
        "NodeContext",
        "ask_agent",
        "ask_model",
        "ask_person",
        "fallback",
        "loop_until",
        "map_over",
        "node",
        "parallel",
        "retry",
        "router",
        "sub_graph",
        "tell",
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
        "Found",
        "NOT_DONE",
        "Tool",
        "ToolContext",
        "UNKNOWN",
        "anthropic_code_execution",
        "anthropic_web_fetch",
        "anthropic_web_search",
        "provider_tool",
        "tool",
    ),
    ".topology": (
        "Registry",
        "Topology",
        "dump",
        "fingerprint",
        "load",
        "registry",
        "with_agents",
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
    """List the public names, loaded or not."""
    return sorted(__all__)
