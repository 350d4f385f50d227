"""Open Agent Spec: its flows and agents read as topologies, and topologies written as these."""

from .findings import AgentSpecFinding, AgentSpecReport
from .reader import Read, read_agent_spec
from .writer import write_agent_spec

__all__ = [
    "AgentSpecFinding",
    "AgentSpecReport",
    "Read",
    "read_agent_spec",
    "write_agent_spec",
]
