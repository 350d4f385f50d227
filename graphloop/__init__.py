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
    from .agent.stream import RunStream
    from .agent.sub_agents import AgentTool
    from .agent.tool_runner import ToolRunner
    from .agent.turn_in_hand import PendingTurn
    from .conversation.compaction import Compaction
    from .driver.pending import Pending
    from .effects import PersonSaid
    from .errors import AskFailed, OutputInvalid, ToolError
    from .graph import END, Edges
    from .limits import stop
    from .limits.model_price import ModelPrice
    from .node_protocol import Node
    from .own_nodes.asking import Asking, ask_agent, ask_model, ask_person, tell
    from .own_nodes.compose import fallback, loop_until, map_over, parallel, retry, router
    from .own_nodes.node_decorator import node
    from .own_nodes.node_signature import NodeContext
    from .own_nodes.sub_graph import sub_graph
    from .own_nodes.sub_plan import ChildResult
    from .policy.approvals import Approval, approve, decline
    from .policy.policy import Policy, allow, ask, deny
    from .proofs.check import check
    from .providers.retries import Retries
    from .providers.timeouts import Timeouts
    from .run import EndReason
    from .spending import Budget, budget
    from .tools.options import NOT_DONE, UNKNOWN, Found
    from .tools.provider_tools import (
        anthropic_code_execution,
        anthropic_web_fetch,
        anthropic_web_search,
        provider_tool,
    )
    from .tools.tool import Tool, ToolContext, tool
    from .topology.loaded import (
        Topology,
        dump,
        fingerprint,
        load,
    )
    from .topology.registration import Registry, registry
    from .topology.with_agents import with_agents
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
    ".agent.stream": ("RunStream",),
    ".agent.sub_agents": ("AgentTool",),
    ".agent.tool_runner": ("ToolRunner",),
    ".agent.turn_in_hand": ("PendingTurn",),
    ".conversation.compaction": ("Compaction",),
    ".driver.pending": ("Pending",),
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
    ".limits": ("stop",),
    ".limits.model_price": ("ModelPrice",),
    ".node_protocol": ("Node",),
    ".own_nodes.asking": (
        "Asking",
        "ask_agent",
        "ask_model",
        "ask_person",
        "tell",
    ),
    ".own_nodes.compose": (
        "fallback",
        "loop_until",
        "map_over",
        "parallel",
        "retry",
        "router",
    ),
    ".own_nodes.node_decorator": ("node",),
    ".own_nodes.node_signature": ("NodeContext",),
    ".own_nodes.sub_graph": ("sub_graph",),
    ".own_nodes.sub_plan": ("ChildResult",),
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
    ".tools.options": (
        "NOT_DONE",
        "UNKNOWN",
        "Found",
    ),
    ".tools.provider_tools": (
        "anthropic_code_execution",
        "anthropic_web_fetch",
        "anthropic_web_search",
        "provider_tool",
    ),
    ".tools.tool": (
        "Tool",
        "ToolContext",
        "tool",
    ),
    ".topology.loaded": (
        "Topology",
        "dump",
        "fingerprint",
        "load",
    ),
    ".topology.registration": (
        "Registry",
        "registry",
    ),
    ".topology.with_agents": ("with_agents",),
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
