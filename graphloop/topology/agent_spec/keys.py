"""The keys of the components of Open Agent Spec that are read; every other key is a mistake.

Versions 25.4.1 to 26.3.1 of the specification. Components of other types are refused whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["KEYS", "REFERENCE", "REFERENCED", "ROOT_KEYS", "VERSIONS", "VERSION_WRITTEN"]

VERSIONS: Final = ("25.4.1", "25.4.2", "26.1.0", "26.1.2", "26.3.1")
VERSION_WRITTEN: Final = "26.1.2"
"""The earliest version that has all that is written."""

REFERENCE: Final = "$component_ref"
REFERENCED: Final = "$referenced_components"

ROOT_KEYS: Final = ("agentspec_version",)

COMMON: Final = ("component_type", "id", "name", "description", "metadata", REFERENCED)
IO: Final = (*COMMON, "inputs", "outputs")
NODE: Final = (*IO, "branches")
TOOL: Final = (*IO, "requires_confirmation")
LLM: Final = (
    *COMMON,
    "model_id",
    "provider",
    "api_provider",
    "api_type",
    "url",
    "api_key",
    "default_generation_parameters",
    "retry_policy",
)
SERVED: Final = (*LLM, "key_file", "cert_file", "ca_file")

KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "Flow": (
        *IO,
        "start_node",
        "nodes",
        "control_flow_connections",
        "data_flow_connections",
    ),
    "ControlFlowEdge": (*COMMON, "from_node", "from_branch", "to_node"),
    "DataFlowEdge": (
        *COMMON,
        "source_node",
        "source_output",
        "destination_node",
        "destination_input",
    ),
    "StartNode": NODE,
    "EndNode": (*NODE, "branch_name"),
    "LlmNode": (*NODE, "llm_config", "prompt_template"),
    "AgentNode": (*NODE, "agent"),
    "ToolNode": (*NODE, "tool"),
    "BranchingNode": (*NODE, "mapping"),
    "FlowNode": (*NODE, "subflow"),
    "ParallelFlowNode": (*NODE, "subflows"),
    "MapNode": (*NODE, "subflow", "reducers"),
    "ParallelMapNode": (*NODE, "subflow", "reducers"),
    "Agent": (
        *IO,
        "llm_config",
        "system_prompt",
        "tools",
        "toolboxes",
        "human_in_the_loop",
        "transforms",
    ),
    "ManagerWorkers": (*IO, "group_manager", "workers"),
    "ServerTool": TOOL,
    "ClientTool": TOOL,
    "LlmConfig": LLM,
    "OpenAiConfig": LLM,
    "OpenAiCompatibleConfig": SERVED,
    "VllmConfig": SERVED,
    "OllamaConfig": SERVED,
    "OciGenAiConfig": (
        *LLM,
        "compartment_id",
        "serving_mode",
        "client_config",
        "conversation_store_id",
    ),
    "GeminiConfig": (*LLM, "auth"),
}
