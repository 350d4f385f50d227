"""known: what a graph knows of its runs beside its table: their agents, and what they are given.

A table says nothing of the agents that its models call like tools, nor of instructions and
budgets. Who makes the runs does, and tells the graph, for whoever proves, compares or draws it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, Final, cast

from ..events import Setup
from ..graph import Graph
from ..spending import Budget
from ..temporal import rules_of
from .options import AgentOptions, RunOptions, StopInput
from .runner import Runner
from .standard import stop_input
from .sub_agents import AgentTool, Opener, Plan
from .world import World

if TYPE_CHECKING:
    # Who only runs agents never loads the readers of files.
    from ..topology.document import Document
    from ..topology.registration import Names

__all__ = ["facts_of", "given_to", "graph_of", "registered_agents", "tell"]

PLAIN: Final = (
    *("instructions", "max_tokens", "temperature", "top_p", "stop_sequences", "seed"),
    *("provider_options", "approve_tool_call", "approval_ttl_s", "max_agent_depth"),
    *("step_timeout_s", "on_bad_history", "base_url", "output_type", "output_mode", "done_when"),
    *("verify", "prepare_step", "compact", "max_output_retries"),
    *("retries", "timeouts", "price", "prices"),
)
"""The options that are told as they are. Nodes have the others; or they change nothing of a run."""


def tell(graph: Graph[Any], world: World, options: AgentOptions) -> None:
    """Tell the graph of an agent what its runs are given."""
    graph.tool_names = world.callable_names
    graph.agents = _graphs(world.children)
    graph.called = frozenset(world.children)
    graph.handoffs = frozenset(_taking_over(world.children))
    graph.facts = _facts(world, options)


def graph_of(opener: Opener) -> Graph[Any] | None:
    """Return the graph that an opener's runs run; None for an opener of somebody else's making."""
    if not isinstance(opener, Runner):
        return None
    # What a runner runs is of a state that isinstance cannot tell, and nobody needs to know.
    runner: Runner[Any] = opener  # pyright: ignore[reportUnknownVariableType]
    graph, world = runner.graph, runner.world
    # What nodes carry stands in their contracts.
    more = {
        name: plan
        for name, plan in world.children.items()
        if isinstance(plan, AgentTool) and name not in graph.agents
    }
    rules = rules_of(runner.options.get("rules", ()))
    if not more and (not rules or graph.facts.get("rules") == rules):
        # One graph stays one, in however many places it is used.
        return graph
    told = copy(graph)
    told.facts = {**graph.facts, "rules": rules}
    told.tool_names = runner.tool_names
    offered = {spec.name for spec in world.toolbox.specs}
    told.agents = {**_graphs(more), **graph.agents}
    told.called = graph.called | (offered & set(more))
    told.handoffs = graph.handoffs | (told.called & set(_taking_over(more)))
    return told


def given_to(opener: Opener) -> Mapping[str, object]:
    """Return what an opener's runs are given, but for what its graph tells of them: rules, too."""
    if not isinstance(opener, Runner):
        return {}
    runner: Runner[Any] = opener  # pyright: ignore[reportUnknownVariableType]
    if runner.given is None:
        known, given = runner.graph.facts, _facts(runner.world, runner.options)
        runner.given = {
            name: one
            for name, one in given.items()
            if name != "rules" and (name not in known or known[name] != one)
        }
    return runner.given


def facts_of(document: Document, names: Names) -> Mapping[str, object]:
    """Return what a file says beside its table, its rules and what it sets aside.

    With what is registered of its tools: who has to agree to a call is no part of the file.
    """
    found = {name: names.find("tool", name) for name in document.tools}
    agents = {name: one for name, one in found.items() if isinstance(one, AgentTool)}
    tools = {**found, **{name: one.tool for name, one in agents.items()}}
    asked = {name: getattr(one, "needs_approval", False) for name, one in tools.items()}
    described = {name: (one.description, one.takes_over) for name, one in document.agents.items()}
    return {
        "description": document.description,
        "instructions": document.instructions,
        "prompt": document.prompt,
        "tools": tools,
        "needs_approval": {name: one for name, one in asked.items() if one is not False},
        "agents": {**described, **{name: _agent_facts(one) for name, one in agents.items()}},
    }


def _agent_facts(agent: AgentTool) -> Mapping[str, object]:
    return {"takes_over": agent.takes_over, **given_to(agent.opener)}


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


def _facts(world: World, options: AgentOptions | RunOptions) -> Mapping[str, object]:
    given: Mapping[str, object] = {**options}
    gate = options.get("gate")
    agents = {name: one for name, one in world.children.items() if isinstance(one, AgentTool)}
    tools = {one.name: world.toolbox.get(one.name) or one for one in world.toolbox.specs}
    asked = {name: one.needs_approval for name in tools if (one := world.toolbox.get(name))}
    asked |= {name: one.tool.needs_approval for name, one in agents.items()}
    facts: dict[str, object] = {
        "model": world.label,
        "tools": tools,
        "needs_approval": {name: one for name, one in asked.items() if one is not False},
        "gate": {} if gate is None else gate.conditions,
        "budget": options.get("budget") or Budget(),
        "signed": options.get("approval_secret") is not None,
        "max_agent_depth": Setup("").depth_max,
        "agents": {name: _agent_facts(one) for name, one in agents.items()},
        "rules": rules_of(options.get("rules", ())),
    }
    # Conditions stand in a node.
    _, predicates = stop_input(cast("StopInput", given.get("stop_when", ())))
    if predicates:
        facts["stop_when"] = predicates
    return facts | {name: given[name] for name in PLAIN if given.get(name) is not None}
