"""The public API of agents and graphs.

Owns options, results, streams, approvals, stored runs and sub-agents.
Raises an error for an option that would have no effect, before any request is sent.
Start with `agent.py`; `runs.py` gives access to stored runs.
"""

from .agent import Agent
from .answers import Answers, approval_from, path_key
from .bindings import Bindings, asks_model, carried_by, functions_named
from .chats.chat import Chat, ChatOptions
from .child_runs import graph_of
from .final_answer import FINAL_ANSWER, NOT_TAKEN, answers_of, json_output, output_from
from .generate import (
    ObjectResult,
    agent_tool,
    generate_object,
    generate_object_sync,
    generate_text,
    generate_text_sync,
    stream_chat,
)
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
from .journals import fork_run, opened_child, path_of, resumption, root_of, state_after, typed
from .options import AgentOptions, EveryAgentOption, RunOptions, ToolInput, Tools
from .pending_turn import PendingTurn
from .resources import check_gate, screens_of, split_tools
from .result import RunHandle, RunResult, spent_by
from .runs import Runs, StoreInput
from .stream import RunStream
from .sub_agents import AgentPlan, AgentTool, Brief, NamedAgent, Opener, Plan
from .terms import RunTerms
from .tool_runner import ToolRunner

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
    "EveryAgentOption",
    "Graph",
    "GraphOptions",
    "IteratedInput",
    "MessageInput",
    "Model",
    "ModelSettings",
    "NamedAgent",
    "ObjectResult",
    "Opener",
    "PendingTurn",
    "Plan",
    "ResumeInput",
    "Review",
    "RunHandle",
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
    "ToolInput",
    "ToolRunner",
    "Tools",
    "agent_tool",
    "answers_of",
    "approval_from",
    "asks_model",
    "carried_by",
    "check_gate",
    "fork_run",
    "functions_named",
    "generate_object",
    "generate_object_sync",
    "generate_text",
    "generate_text_sync",
    "graph_of",
    "json_output",
    "messages_of",
    "opened_child",
    "output_from",
    "passed_on",
    "path_key",
    "path_of",
    "refuse_idle_gate",
    "resumption",
    "root_of",
    "screens_of",
    "spent_by",
    "split_tools",
    "state_after",
    "stream_chat",
    "typed",
]
