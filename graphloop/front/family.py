"""family: a loop with all the agents that its runs can start, for diagrams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..graph import Graph as KernelGraph
from ..views.family import Family, known_family
from .agent import Agent
from .bindings import carried_by
from .known import graph_of
from .options import Tools
from .sub_agents import Plan
from .world import split_tools

__all__ = ["family_of"]


def family_of(loop: Agent | KernelGraph[Any], tools: Tools = ()) -> Family:
    """Return a loop's graph with its agents, theirs included.

    Args:
        loop: an agent, or a graph.
        tools: the tools that a graph's runs are given, for the agents among them.
    """
    if isinstance(loop, Agent):
        return known_family(loop.graph)
    _, given = split_tools(tools)
    known, brought = known_family(loop), carried_by(loop.nodes.values()).agents
    return Family(loop, {**known.tools, **_families(given)}, {**_families(brought), **known.agents})


def _families(plans: Mapping[str, Plan]) -> dict[str, Family]:
    found = {name: graph_of(plan.opener) for name, plan in plans.items()}
    return {name: known_family(graph) for name, graph in found.items() if graph is not None}
