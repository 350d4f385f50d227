"""The public API of agents and graphs.

Owns options, results, streams, approvals, stored runs and sub-agents.
Raises an error for an option that would have no effect, before any request is sent.
Start with `agent.py`; `runs.py` gives access to stored runs.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door
from .agent import Agent
from .answers import Answers, approval_from, path_key
from .bindings import Bindings, asks_model, carried_by, functions_named
from .child_runs import ChildOpener, graph_of
from .final_answer import FINAL_ANSWER, NOT_TAKEN, answers_of, json_output, output_from
from .graph import Graph
from .graph_checks import refuse_idle_gate
from .graph_terms import GraphOptions, passed_on
from .hooks import AnswerInfo, Review, Screen, StepChanges, StepInfo, StopContext
from .inputs import (
    CallInput,
    CallOptions,
    IteratedInput,
    MessageInput,
    Model,
    ModelSettings,
    ResumeInput,
    messages_of,
)
from .options import AgentOptions, EveryAgentOption, RunOptions, ToolInput, Tools
from .pending_turn import PendingTurn
from .resources import check_gate, screens_of, split_tools
from .result import RunResult
from .runs import Runs, StoreInput
from .stored_runs import StoredRuns
from .stream import RunStream
from .sub_agents import AgentPlan, AgentTool, Brief, NamedAgent, Plan
from .terms import RunTerms
from .tool_runner import ToolRunner

if TYPE_CHECKING:
    from .chats import Chat, ChatOptions
    from .generate import (
        ObjectResult,
        agent_tool,
        generate_object,
        generate_object_sync,
        generate_text,
        generate_text_sync,
        stream_chat,
    )

__all__ = [
    "FINAL_ANSWER",
    "NOT_TAKEN",
    "Agent",
    "AgentOptions",
    "AgentPlan",
    "AgentTool",
    "AnswerInfo",
    "Answers",
    "Bindings",
    "Brief",
    "CallInput",
    "CallOptions",
    "Chat",
    "ChatOptions",
    "ChildOpener",
    "EveryAgentOption",
    "Graph",
    "GraphOptions",
    "IteratedInput",
    "MessageInput",
    "Model",
    "ModelSettings",
    "NamedAgent",
    "ObjectResult",
    "PendingTurn",
    "Plan",
    "ResumeInput",
    "Review",
    "RunOptions",
    "RunResult",
    "RunStream",
    "RunTerms",
    "Runs",
    "Screen",
    "StepChanges",
    "StepInfo",
    "StopContext",
    "StoreInput",
    "StoredRuns",
    "ToolInput",
    "ToolRunner",
    "Tools",
    "agent_tool",
    "answers_of",
    "approval_from",
    "asks_model",
    "carried_by",
    "check_gate",
    "functions_named",
    "generate_object",
    "generate_object_sync",
    "generate_text",
    "generate_text_sync",
    "graph_of",
    "json_output",
    "messages_of",
    "output_from",
    "passed_on",
    "path_key",
    "refuse_idle_gate",
    "screens_of",
    "split_tools",
    "stream_chat",
]

# An agent needs none of these modules, so each loads on first use.
__getattr__ = front_door(
    __name__,
    {
        ".chats": ("Chat", "ChatOptions"),
        ".generate": (
            *("ObjectResult", "agent_tool", "generate_object", "generate_object_sync"),
            *("generate_text", "generate_text_sync", "stream_chat"),
        ),
    },
)
