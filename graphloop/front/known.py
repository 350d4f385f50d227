"""known: what a graph knows of its runs beside its table: their agents and their options.

A table says nothing of the agents that models call like tools, nor of instructions and budgets. An
agent, a file or a child's options say it, and tell the graph, so that it is proven and drawn too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, Final, cast

from ..graph import Graph
from ..spending import Budget
from ..temporal import rules_of
from .options import AgentOptions, RunOptions, StopInput
from .runner import Runner
from .standard import stop_input
from .sub_agents import AgentTool, Opener, Plan
from .world import World

if TYPE_CHECKING:
    # A program that only runs agents never loads the readers of files.
    from ..topology.document import Document
    from ..topology.registration import Names

__all__ = ["graph_of", "registered_agents", "tell", "tell_document"]

PLAIN: Final = (
    *("instructions", "max_tokens", "temperature", "top_p", "stop_sequences", "seed"),
    *("provider_options", "approve_tool_call", "approval_ttl_s", "max_agent_depth"),
    *("step_timeout_s", "on_bad_history", "base_url", "output_type", "output_mode", "done_when"),
    *("verify", "prepare_step", "compact", "max_output_retries"),
    *("retries", "timeouts", "price", "prices"),
)
"""The options that a graph is told as they are; its nodes have the others, or they are secrets."""


def tell(graph: Graph[Any], world: World, options: AgentOptions) -> None:
    """Tell the graph of an agent its tools, agents and options."""
    graph.tool_names = world.callable_names
    graph.agents = _graphs(world.children)
    graph.called = frozenset(world.children)
    graph.handoffs = frozenset(_taking_over(world.children))
    graph.run_options = _run_options(world, options)


def tell_document(graph: Graph[Any], document: Document, names: Names) -> None:
    """Tell the graph of a file the options that its file says, with its registered tools."""
    found = {name: names.find("tool", name) for name in document.tools}
    tools = {name: one.tool if isinstance(one, AgentTool) else one for name, one in found.items()}
    graph.run_options = {
        "description": document.description,
        "instructions": document.instructions,
        "prompt": document.prompt,
        "tools": tools,
        "agents": {name: one.description for name, one in document.agents.items()},
    }


def graph_of(opener: Opener) -> Graph[Any] | None:
    """Return the graph of an opener's runs; None for an opener of another library."""
    if not isinstance(opener, Runner):
        return None
    # isinstance cannot tell the type of the state.
    runner: Runner[Any] = opener  # pyright: ignore[reportUnknownVariableType]
    if runner.told_graph is None:
        runner.told_graph = _told(runner)
    return runner.told_graph


def _told(runner: Runner[Any]) -> Graph[Any]:
    """Return a runner's graph, told the runner's options; the same graph where it knows them."""
    graph, world = runner.graph, runner.world
    # The agents that nodes carry stand in their contracts.
    more = {
        name: plan
        for name, plan in world.children.items()
        if isinstance(plan, AgentTool) and name not in graph.agents
    }
    options = {**graph.run_options, **_run_options(world, runner.options)}
    if not more and options == graph.run_options:
        return graph
    told = copy(graph)
    told.run_options = options
    told.tool_names = runner.tool_names
    offered = {spec.name for spec in world.toolbox.specs}
    told.agents = {**_graphs(more), **graph.agents}
    told.called = graph.called | (offered & set(more))
    told.handoffs = graph.handoffs | (told.called & set(_taking_over(more)))
    return told


def registered_agents(tools: Iterable[str], names: Names) -> dict[str, Graph[Any] | None]:
    """Return the graphs of those among the registered tools that are agents."""
    found = {name: names.find("tool", name) for name in tools}
    return {name: graph_of(one.opener) for name, one in found.items() if isinstance(one, AgentTool)}


def _taking_over(plans: Mapping[str, Plan]) -> Iterator[str]:
    for name, plan in plans.items():
        if isinstance(plan, AgentTool) and plan.takes_over:
            yield name


def _graphs(plans: Mapping[str, Plan]) -> dict[str, Graph[Any] | None]:
    return {name: graph_of(plan.opener) for name, plan in plans.items()}


def _run_options(world: World, options: AgentOptions | RunOptions) -> Mapping[str, object]:
    given: Mapping[str, object] = {**options}
    tools = {one.name: world.toolbox.get(one.name) or one for one in world.toolbox.specs}
    agents = {name: one.tool for name, one in world.children.items() if isinstance(one, AgentTool)}
    # Conditions stand in a node.
    _, predicates = stop_input(cast("StopInput", given.get("stop_when", ())))
    return {
        "model": world.label,
        "tools": {**tools, **agents},
        "budget": options.get("budget") or Budget(),
        "signed": options.get("approval_secret") is not None,
        "rules": rules_of(options.get("rules", ())),
        **({"stop_when": predicates} if predicates else {}),
        **{name: given[name] for name in PLAIN if given.get(name) is not None},
    }
