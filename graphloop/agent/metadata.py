"""Metadata: attach the agents and options of a graph's runs to the graph.

Proofs and drawings of a graph need the agents that models call, the instructions and the budget.
The graph's own table does not contain these data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any, Final

from ..graph import NodeGraph
from ..rules import rules_of
from .callbacks import stop_input
from .child_runs import ChildOpener
from .options import Options
from .resources import AgentResources
from .sub_agents import AgentTool, Opener, Plan
from .terms import RunTerms

__all__ = ["attach_metadata", "graph_of"]

PLAIN: Final = (
    *("instructions", "max_tokens", "temperature", "top_p", "stop_sequences", "seed"),
    *("provider_options", "approve_tool_call", "approval_ttl_s", "max_agent_depth"),
    *("step_timeout_s", "on_bad_history", "base_url", "output_type", "output_mode", "done_when"),
    *("verify", "prepare_step", "compact", "max_output_retries"),
    *("retries", "timeouts", "price", "prices"),
)
"""The options that are copied to a graph unchanged; its nodes hold the others, except secrets."""


def attach_metadata(graph: NodeGraph[Any], world: AgentResources, options: Options) -> None:
    """Store the tool names, sub-agents and options of an agent on the agent's graph."""
    graph.tool_names = world.callable_names
    graph.agents = _graphs(world.children)
    # The agents that only screen are run by a node; no model can call them.
    graph.called = frozenset(world.children) & {spec.name for spec in world.toolbox.specs}
    graph.handoffs = frozenset(_taking_over(world.children))
    graph.run_options = _run_options(world, options)


def graph_of(opener: Opener) -> NodeGraph[Any] | None:
    """Return an opener's graph with metadata; None for an opener class of another library."""
    if not isinstance(opener, ChildOpener):
        return None
    # isinstance cannot tell the type of the state.
    terms: RunTerms[Any] = opener.terms  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if terms.known_graph is None:
        terms.known_graph = _with_metadata(terms)
    return terms.known_graph


def _with_metadata(terms: RunTerms[Any]) -> NodeGraph[Any]:
    """Return a copy of the terms' graph with metadata; the graph itself if nothing is missing."""
    graph, world = terms.graph, terms.world
    # Agents that nodes carry are listed in the contracts of these nodes.
    more = {
        name: plan
        for name, plan in world.children.items()
        if isinstance(plan, AgentTool) and name not in graph.agents
    }
    options = {**graph.run_options, **_run_options(world, terms.options)}
    if not more and options == graph.run_options:
        return graph
    copied = copy(graph)
    copied.run_options = options
    copied.tool_names = terms.tool_names
    offered = {spec.name for spec in world.toolbox.specs}
    copied.agents = {**_graphs(more), **graph.agents}
    copied.called = graph.called | (offered & set(more))
    copied.handoffs = graph.handoffs | (copied.called & set(_taking_over(more)))
    return copied


def _taking_over(plans: Mapping[str, Plan]) -> Iterator[str]:
    for name, plan in plans.items():
        if isinstance(plan, AgentTool) and plan.takes_over:
            yield name


def _graphs(plans: Mapping[str, Plan]) -> dict[str, NodeGraph[Any] | None]:
    return {name: graph_of(plan.opener) for name, plan in plans.items()}


def _run_options(world: AgentResources, options: Options) -> Mapping[str, object]:
    given = options.given
    tools = {spec.name: world.toolbox.get(spec.name) or spec for spec in world.toolbox.specs}
    agents = {
        name: plan.tool for name, plan in world.children.items() if isinstance(plan, AgentTool)
    }
    _, predicates = stop_input(options.stop_when)  # `StopCheck` holds the conditions.
    return {
        "model": world.label,
        "tools": {**tools, **agents},
        "budget": options.allowance,
        "signed": options.approval_secret is not None,
        "rules": rules_of(options.rules),
        **({"stop_when": predicates} if predicates else {}),
        **{name: given[name] for name in PLAIN if given.get(name) is not None},
    }
