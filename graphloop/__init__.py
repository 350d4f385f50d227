"""graphloop: LLM agents as explicit, typed graphs that you can see, prove, run and resume."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import stop
    from .approvals import Approval, approve, decline
    from .asks import PersonSaid
    from .compaction import Compaction
    from .drivers.pending import Pending
    from .errors import AskFailed, OutputInvalid, ToolError
    from .front.agent import Agent
    from .front.asking import Asking, ask_agent, ask_model, ask_person, tell
    from .front.compose import fallback, loop_until, map_over, parallel, retry, router
    from .front.generate import (
        ObjectResult,
        agent_tool,
        generate_object,
        generate_object_sync,
        generate_text,
        generate_text_sync,
        stream_chat,
    )
    from .front.graph import Graph
    from .front.hooks import AnswerInfo, Model, StepChanges, StepInfo, Verdict
    from .front.node_decorator import node
    from .front.node_signature import NodeContext
    from .front.result import RunResult
    from .front.stream import RunStream
    from .front.sub_agents import AgentTool
    from .front.sub_graph import sub_graph
    from .front.sub_plan import ChildResult
    from .front.tool_runner import ToolRunner
    from .front.topology import (
        Topology,
        dump,
        fingerprint,
        load,
    )
    from .front.turn_in_hand import TurnInHand
    from .front.with_agents import with_agents
    from .graph import END, Edges
    from .model_price import ModelPrice
    from .node_protocol import Node
    from .policy import Policy, allow, ask, deny
    from .proofs.check import check
    from .provider_tools import (
        anthropic_code_execution,
        anthropic_web_fetch,
        anthropic_web_search,
        provider_tool,
    )
    from .providers.retries import Retries
    from .providers.timeouts import Timeouts
    from .run import EndReason
    from .spending import Budget, budget
    from .tool_effects import NOT_DONE, UNKNOWN, Found
    from .tools import Tool, ToolContext, tool
    from .topology.registration import Registry, registry
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
    "TurnInHand",
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
    ".approvals": ("Approval", "approve", "decline"),
    ".spending": ("Budget", "budget"),
    ".compaction": ("Compaction",),
    ".drivers.pending": ("Pending",),
    ".asks": ("PersonSaid",),
    ".errors": ("AskFailed", "OutputInvalid", "ToolError"),
    ".front.agent": ("Agent",),
    ".front.asking": ("Asking", "ask_agent", "ask_model", "ask_person", "tell"),
    ".front.sub_agents": ("AgentTool",),
    ".front.compose": ("fallback", "loop_until", "map_over", "parallel", "retry", "router"),
    ".front.generate": (
        "ObjectResult",
        "agent_tool",
        "generate_object",
        "generate_object_sync",
        "generate_text",
        "generate_text_sync",
        "stream_chat",
    ),
    ".front.graph": ("Graph",),
    ".front.node_decorator": ("node",),
    ".front.node_signature": ("NodeContext",),
    ".front.result": ("RunResult",),
    ".front.stream": ("RunStream",),
    ".front.sub_graph": ("sub_graph",),
    ".front.sub_plan": ("ChildResult",),
    ".front.hooks": ("AnswerInfo", "Model", "StepChanges", "StepInfo", "Verdict"),
    ".front.tool_runner": ("ToolRunner",),
    ".front.topology": (
        "Topology",
        "dump",
        "fingerprint",
        "load",
    ),
    ".front.turn_in_hand": ("TurnInHand",),
    ".front.with_agents": ("with_agents",),
    ".graph": ("END", "Edges"),
    ".model_price": ("ModelPrice",),
    ".node_protocol": ("Node",),
    ".policy": ("Policy", "allow", "ask", "deny"),
    ".proofs.check": ("check",),
    ".provider_tools": (
        "anthropic_code_execution",
        "anthropic_web_fetch",
        "anthropic_web_search",
        "provider_tool",
    ),
    ".providers.retries": ("Retries",),
    ".providers.timeouts": ("Timeouts",),
    ".run": ("EndReason",),
    ".turn": ("StepResult",),
    ".tool_effects": ("NOT_DONE", "UNKNOWN", "Found"),
    ".tools": ("Tool", "ToolContext", "tool"),
    ".topology.registration": ("Registry", "registry"),
    ".values": ("FinishReason", "ToolChoice", "Usage"),
}


def __getattr__(name: str) -> object:
    """Load a public name from its home on first use, so that importing costs what is used.

    The homes stand here twice, because type checkers follow import statements only; a test holds
    the two against each other.
    """
    if name == "stop":
        return import_module(".stop", __name__)
    for home, names in _HOMES.items():
        if name in names:
            value: object = getattr(import_module(home, __name__), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
