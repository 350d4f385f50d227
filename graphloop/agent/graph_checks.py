"""Graph checks: find unknown names and useless options of a graph before it runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from .. import proofs, states
from ..contract import contract_of
from ..driver import Callback
from ..errors import ConfigError, GraphError, nearest
from ..graph import NodeGraph
from ..limits import tools_in
from ..node_protocol import Node, flaw_of
from ..nodes import Function, Gate, PrepareStep, StopCheck
from ..outcomes import Outcome
from ..states import known_state_type, state_type_of
from .bindings import asks_model, carried_by, check_carried, facts_of
from .child_runs import output_types
from .inputs import Model, checked_tool_names, choice_of, offered
from .options import Options
from .resources import AgentResources, check_gate, check_rules

if TYPE_CHECKING:
    from ..proofs import Endless, Ignore

__all__ = ["endless_refusal", "looked_up", "prepared", "reasons_for_cycles", "refuse_idle_gate"]

S = TypeVar("S")

GATED: Final = ("gate", "graph")
"""The kinds of nodes that can enforce the rules of a gate."""


def looked_up(
    graph: NodeGraph[S],
    model: Model | None,
    callbacks: Mapping[str, Callback[S]] | None,
    options: Options,
) -> tuple[AgentResources, Mapping[str, Callback[S]]]:
    """Return the resources of a graph's runs, and the functions that its nodes invoke.

    Raises:
        ConfigError: a node names a model, agent, function or tool that the runs do not have, or an
            option has no effect.
    """
    carried = facts_of(graph).carried
    brought = carried.joined(callbacks or {})
    resources = AgentResources(model, options, carried.agents)
    _look_up(graph, resources, brought, has_model=model is not None)
    if resources.children.keys() - carried.agents.keys():
        _refuse_fields(graph, known_state_type(graph), output_types(resources.children))
    _look_up_tools(graph, resources)
    if options.gate is not None:
        check_gate(options.gate, resources.callable_names)
        refuse_idle_gate(graph, "`gate`")
    return resources, brought


def refuse_idle_gate(graph: NodeGraph[Any], place: str) -> None:
    """Raise an error if no node of a graph can enforce the rules of a gate.

    Raises:
        ConfigError: no node can enforce the rules; the message begins with `place`.
    """
    if not any(node.kind in GATED for node in graph.nodes.values()):
        raise ConfigError(
            f"{place} has no effect: graph {graph.name!r} has no node that checks calls (Gate), "
            "and none that runs an agent (Child)"
        )


def _look_up_tools(graph: NodeGraph[Any], resources: AgentResources) -> None:
    """Raise an error if nodes name unknown tools; a run without any tools is not checked.

    Raises:
        ConfigError: a tool is unknown; the message lists unknown tools and the nearest known names.
    """
    if not resources.callable_names:
        return
    problems: list[str] = []
    for node in facts_of(graph).naming_tools:
        try:
            _check_tools(node, resources)
        except ConfigError as error:
            problems.append(f"node {node.name!r} of graph {graph.name!r}: {error}")
    if problems:
        raise ConfigError("; ".join(problems))


def _check_tools(node: Node[Any, Outcome], resources: AgentResources) -> None:
    """Raise an error if this node names a tool that the run does not have."""
    specs = resources.toolbox.specs
    match node:
        case Gate():
            check_rules(node.rules, resources.callable_names, "a rule")
        case StopCheck() if specs:
            checked_tool_names("stop.has_tool_call", tools_in(node.conditions), specs)
        case PrepareStep() if specs:
            if node.active_tools is not None:
                checked_tool_names("active_tools", node.active_tools, specs)
            choice_of(node.tool_choice, offered(specs, node.active_tools))
        case _:
            pass


def _look_up(
    graph: NodeGraph[Any], resources: AgentResources, functions: Collection[str], *, has_model: bool
) -> None:
    """Raise an error if a run lacks a model, agent or function that its nodes name.

    Raises:
        ConfigError: a name is unknown; the message lists unknown names and the nearest known names.
    """
    missing = list(_open_models(graph, resources))
    if not has_model and asks_model(graph):
        missing.insert(0, _no_model(graph))
    facts = facts_of(graph)
    kinds = (
        ("runs the agent", facts.agents, resources.children, "agents"),
        ("invokes the function", facts.functions, functions, "callbacks"),
    )
    for does, named, known, option in kinds:
        missing += [
            f"node {node!r} of graph {graph.name!r} {does} {name!r}; the run has "
            f"{', '.join(map(repr, known)) or 'none'}.{nearest(name, known)} "
            f"Fix: {option}={{{name!r}: …}}"
            for name, node in named.items()
            if name not in known
        ]
    if missing:
        raise ConfigError("; ".join(missing))


def _no_model(graph: NodeGraph[Any]) -> str:
    problem = f"graph {graph.name!r} asks a model: say which, with `model=`"
    for node in graph.every_node:
        if isinstance(node, Function) and node.asks is not None and node.asks.models is None:
            return f"{problem}; or say that generator {node.name!r} asks none: @node(model_calls=0)"
    return problem


def _open_models(graph: NodeGraph[Any], resources: AgentResources) -> Iterator[str]:
    """Add the models that only nodes name to the resources; yield a text for each failure."""
    for label, node in facts_of(graph).models.items():
        if label in resources.models:
            continue
        if label.startswith("script:") and graph.source and graph.source.rows is not None:
            # A script model reads a file, and a topology file could name any path of this machine.
            yield f"node {node!r} asks {label!r}: data opens no file. Fix: give the run that model"
            continue
        try:
            resources.add_model(label)
        except ConfigError as error:
            yield f"node {node!r} asks the model {label!r}, and {error}"


def prepared(
    graph: NodeGraph[S], state_type: type[S] | None, ignore: Ignore | None
) -> tuple[type[S] | None, Ignore]:
    """Check a new graph, and return the type of its state and the findings to ignore.

    Raises:
        ConfigError: an agent's name cannot be part of a path `agent/node`, or a finding is ignored
            without a reason.
        GraphError: two nodes carry different functions or agents under one name, or take states of
            different types.
    """
    _refuse_odd_agents(graph.nodes)
    set_aside = _check_reasons(ignore or {})
    check_carried(graph)
    kind = cast("type[S] | None", state_type_of(graph, state_type))
    _refuse_fields(graph, kind)
    return kind, set_aside


def _refuse_fields(
    graph: NodeGraph[Any], kind: object, answers: Mapping[str, object] | None = None
) -> None:
    """Raise an error for nodes that name fields of the state which do not fit them.

    Args:
        graph: the graph.
        kind: the type of the state.
        answers: the types of agents' answers, by name; by default of the agents that nodes carry.

    Raises:
        GraphError: naming each such node, its option and the nearest field.
    """
    if not isinstance(kind, type):
        return  # Its fields are unknown, or it has none.
    if answers is None:
        answers = output_types(carried_by(graph.every_node).agents)
    if problems := states.field_problems(graph.nodes.values(), kind, answers):
        raise GraphError(graph.name, problems)


def reasons_for_cycles(
    graph: NodeGraph[S], reason: str, ignore: Ignore, endless: tuple[Endless, ...]
) -> Ignore:
    """Return the findings to ignore, with `reason` added for each unbounded cycle (GL4)."""
    if not endless:
        raise ConfigError(f"graph {graph.name!r} is bounded: it needs no reason to run")
    cycles = proofs.endless(graph, every=True)
    return _check_reasons({**ignore, **{(cycle.node, "GL4"): reason for cycle in cycles}})


def endless_refusal(graph: NodeGraph[Any], found: tuple[Endless, ...]) -> ConfigError:
    """Return the error for a graph with unbounded cycles; its message lists the possible fixes."""
    reasons = ", ".join(f'({cycle.node!r}, "GL4"): "why"' for cycle in found)
    return ConfigError(
        f"graph {graph.name!r} may run for ever, so it does not run: "
        f"{' '.join(cycle.words for cycle in found)} Or, if that is meant, say why: "
        f"Graph(…, ignore={{{reasons}}}), `ignore` in a topology's file, or --unbounded REASON on "
        "the command line."
    )


def _refuse_odd_agents(nodes: Mapping[str, Node[S, Outcome]]) -> None:
    """Raise an error if an agent's name cannot be part of a path `agent/node`.

    Raises:
        ConfigError: an agent has an invalid name; the message names the agent and its node.
    """
    for name, node in nodes.items():
        promised = contract_of(node)
        if promised is None:
            continue
        for agent in [child.name for child in promised.children]:
            if flaw := flaw_of(agent):
                raise ConfigError(
                    f"node {name!r} runs {agent!r:.80}, which is not an agent's name: {flaw}. "
                    "Fix: choose another"
                )


def _check_reasons(ignore: Ignore) -> Ignore:
    """Return a copy of the findings to ignore, after a check of their reasons.

    Raises:
        ConfigError: a finding is ignored without a reason.
    """
    for (node, code), reason in ignore.items():
        if not reason.strip():
            raise ConfigError(
                f"`ignore[{node!r}, {code!r}]`: expected a reason in words, found {reason!r:.80}"
            )
    return dict(ignore)
