"""agent_terms: from an agent's options to its graph, and to the terms of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import ConfigError
from ..loop import standard_edges
from .callbacks import agent_callbacks
from .final_answer import FinalAnswer
from .graph import Graph
from .inputs import Model
from .known import attach_metadata
from .options import AgentOptions, Checks, group, reject_unknown_options
from .standard import standard_nodes, stop_input
from .terms import RunTerms
from .world import AgentResources

__all__ = ["agent_terms"]


def agent_terms(
    model: Model, given: AgentOptions
) -> tuple[Graph[None], RunTerms[None], AgentOptions]:
    """Return an agent's graph, the terms of its runs, and its options.

    Raises:
        ConfigError: an option, the model or a tool cannot work.
    """
    reject_unknown_options(given, AgentOptions, "an agent")
    options = _kept(given)
    if options.get("agents"):
        raise ConfigError(
            "`agents` are for the Child nodes of a graph of your own; give an agent the agents "
            "that it may call among its `tools`"
        )
    world = AgentResources(model, options, options.get("tools", ()))
    fallbacks = [world.add_model(one) for one in options.get("fallback_models", ())]
    final = _final_answer(options, [world.label, *fallbacks])
    if final is not None and final.tool is not None:
        world.answer_by(final.tool)
    conditions, predicates = stop_input(options.get("stop_when", ()))
    nodes = standard_nodes(options, world, conditions, predicates=bool(predicates))
    graph: Graph[None] = Graph(options.get("name", "agent"), nodes.prepare, standard_edges(nodes))
    attach_metadata(graph, world, options)
    terms = RunTerms(
        graph,
        options,
        world,
        callbacks=agent_callbacks(options, world, nodes.prepare, predicates, final),
        own_gates=options.get("gate"),
        final=final,
    )
    return graph, terms, options


def _kept(options: AgentOptions) -> AgentOptions:
    """Return the options with tools that later changes to the caller's list do not reach."""
    kept = options.copy()
    tools = options.get("tools")
    if isinstance(tools, Mapping):
        kept["tools"] = dict(tools)
    elif isinstance(tools, Sequence):
        kept["tools"] = tuple(tools)
    return kept


def _final_answer(options: AgentOptions, labels: Sequence[str]) -> FinalAnswer | None:
    checks = group(options, Checks)
    if checks.output_type is None:
        return None
    own_server = options.get("base_url") is not None
    return FinalAnswer(checks.output_type, checks.output_mode, labels, own_server=own_server)
