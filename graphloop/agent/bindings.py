"""Bindings: find the functions, agents and models that a graph's nodes name or carry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar, final, runtime_checkable

from msgspec import Struct, field

from .. import nodes as node_room
from ..contract import Contract, contract_of
from ..driver import Callback, counted_limits
from ..errors import ConfigError, GraphError, Problem
from ..graph import NodeGraph
from ..limits import CountedLimit, deeper
from ..node_protocol import Node, nodes_within, unwrapped
from ..nodes import (
    Compact,
    Execute,
    Function,
    Gate,
    ModelCall,
    PrepareStep,
    StopCheck,
)
from ..outcomes import Outcome
from ..states import FIELD, field_callback, known_state_type
from ..tools import DepsNeed, Toolbox, kind_name, uncovered
from .hooks import hook_needs
from .options import Options
from .sub_agents import Nesting, Plan

__all__ = [
    "DEPTH_MAX",
    "Bindings",
    "GraphFacts",
    "ReadsDeps",
    "agents_named",
    "asks_model",
    "carried_by",
    "check_carried",
    "deps_needs",
    "facts_of",
    "functions_named",
    "models_named",
    "nesting_of",
    "runs_one_at_a_time",
    "with_deps",
]

S = TypeVar("S")

NAMING_TOOLS: Final = (Gate, PrepareStep, StopCheck)
"""The node classes whose parameters can contain tool names."""


@final
class Bindings(Struct, frozen=True):
    """Functions and agents, keyed by the names that nodes use for them in effects.

    Args:
        callbacks: the functions that nodes invoke, by name.
        agents: the agents that nodes start as child runs, by name.
    """

    callbacks: Mapping[str, Callback[Any]] = field(default_factory=dict[str, Callback[Any]])
    agents: Mapping[str, Plan] = field(default_factory=dict[str, Plan])

    def joined(self, given: Mapping[str, Callback[S]]) -> Mapping[str, Callback[S]]:
        """Return one mapping with these functions and the caller's functions in `given`.

        Raises:
            ConfigError: a function of the caller has the name of one of these functions.
        """
        if not given:
            return self.callbacks
        twice = sorted(given.keys() & self.callbacks.keys())
        if twice:
            raise ConfigError(
                f"`callbacks` names {twice[0]!r}, a function that the node of that name brings "
                "along. Fix: leave it out, or give one of the two another name."
            )
        return {**self.callbacks, **given}


def _carried_by(node: Node[Any, Outcome]) -> Bindings | None:
    """Return the functions and agents that a node carries as `carried`; None without any."""
    # A protocol with `isinstance` would cost a third of an agent's making.
    carried: Bindings | None = getattr(node, "carried", None)
    return carried


def carried_by(nodes: Sequence[Node[Any, Outcome]]) -> Bindings:
    """Collect the functions and agents that nodes carry, such as `every_node` of a graph.

    Raises:
        ConfigError: two nodes carry different functions or agents under one name.
    """
    if (problem := next(_twice_brought(nodes), None)) is not None:
        raise ConfigError(str(problem))
    callbacks: dict[str, Callback[Any]] = {}
    agents: dict[str, Plan] = {}
    for node in nodes:
        if (carried := _carried_by(node)) is not None:
            callbacks |= carried.callbacks
            agents |= carried.agents
    return Bindings(callbacks, agents)


def check_carried(graph: NodeGraph[Any]) -> None:
    """Raise an error if nodes of a graph carry different functions or agents under one name.

    Raises:
        GraphError: two nodes disagree about a name; the error lists each such node.
    """
    problems = list(_twice_brought(graph.every_node))
    if problems:
        raise GraphError(graph.name, problems)


def models_named(nodes: Iterable[Node[Any, Outcome]]) -> dict[str, str]:
    """Map the label of each model that nodes name to the first node with that label."""
    return _agents_named(nodes, _models_of)


def agents_named(nodes: Iterable[Node[Any, Outcome]]) -> dict[str, str]:
    """Map the name of each agent that nodes may run to the first node that runs it."""
    return _agents_named(
        nodes, lambda node: [child.name for child in _contract_or_default(node).children]
    )


def functions_named(nodes: Iterable[Node[Any, Outcome]]) -> dict[str, str]:
    """Map the name of each function that nodes invoke to the first node that invokes it."""
    return _agents_named(nodes, lambda node: _contract_or_default(node).functions)


def _agents_named(
    nodes: Iterable[Node[Any, Outcome]], names: Callable[[Node[Any, Outcome]], Iterable[str]]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in nodes:
        for name in filter(None, names(node)):
            found.setdefault(name, node.name)
    return found


def _contract_or_default(node: Node[Any, Outcome]) -> Contract:
    return contract_of(node) or Contract()


def _models_of(node: Node[Any, Outcome]) -> Iterable[str]:
    match node:
        case ModelCall():
            return (node.model, *node.fallbacks)
        case Compact(compaction=compaction) if compaction is not None:
            return (compaction.summary_model,)
        # `node.kind` is tested first: naming Critique or Router would import its module.
        case _ if node.kind == "check" and isinstance(node, node_room.Critique | node_room.Router):
            return (node.model,)
        case _:
            return ()


def _twice_brought(nodes: Iterable[Node[Any, Outcome]]) -> Iterator[Problem]:
    """Yield a problem for each name under which nodes carry different functions or agents."""
    known: dict[tuple[str, str], object] = {}
    for node in nodes:
        if (carried := _carried_by(node)) is None:
            continue
        found: dict[tuple[str, str], object] = {
            **{("functions", name): function for name, function in carried.callbacks.items()},
            **{("agents", name): plan for name, plan in carried.agents.items()},
        }
        for (what, name), brought in found.items():
            if known.setdefault((what, name), brought) != brought:
                yield Problem(
                    f"node {node.name!r}",
                    f"two different {what} are brought along as {name!r}.",
                    "give one of the nodes another `name=`.",
                )


@final
class GraphFacts(Struct, frozen=True):
    """Facts about a graph's nodes, computed once and used at the start of each run.

    Attributes:
        carried: the functions and agents that the nodes carry.
        models: the label of each model that nodes name, with the first node that names the model.
        agents: the name of each agent that nodes may run, with the first node that runs the agent.
        functions: the name of each function that nodes invoke and do not carry, with the first
            node that invokes the function.
        naming_tools: the nodes whose parameters can contain tool names.
        asks_model: see `asks_model`.
        needs_messages: whether a node sends the run's conversation to a model.
        one_at_a_time: see `runs_one_at_a_time`.
        asked: the labels of the models that nodes ask first with the run's conversation.
        reading: the nodes whose own functions read `deps`.
        limits: the limits of the nodes on costs and tokens.
    """

    carried: Bindings
    models: Mapping[str, str]
    asked: frozenset[str]
    agents: Mapping[str, str]
    functions: Mapping[str, str]
    naming_tools: tuple[Node[Any, Outcome], ...]
    asks_model: bool
    needs_messages: bool
    one_at_a_time: bool
    reading: tuple[DepsNeed, ...]
    limits: tuple[CountedLimit, ...]

    @classmethod
    def of(cls, graph: NodeGraph[Any]) -> GraphFacts:
        """Compute the facts from the nodes of a graph."""
        nodes, every = graph.nodes.values(), graph.every_node
        asking = [node for node in nodes if _asks_model(node)]
        carried, named = carried_by(every), functions_named(every)
        kind = known_state_type(graph)
        # The functions that read and write fields of the state are made here, for their nodes.
        fields = {name: field_callback(name, kind) for name in named if name.startswith(FIELD)}
        carried = Bindings({**carried.callbacks, **fields}, carried.agents)
        return cls(
            carried=carried,
            models=models_named(every),
            asked=frozenset([each.model for each in every if isinstance(each, ModelCall)]) - {""},
            agents=agents_named(every),
            functions={name: named[name] for name in named if name not in carried.callbacks},
            naming_tools=tuple([node for node in every if isinstance(node, NAMING_TOOLS)]),
            asks_model=bool(asking),
            # A `Function` node sends its own prompt, so its model reads no conversation.
            needs_messages=any(
                not isinstance(node, Function) and _asks_model(node)
                for node in _innermost_nodes(asking)
            ),
            one_at_a_time=any(
                isinstance(node, Execute) and node.max_tool_concurrency == 1 for node in nodes
            ),
            reading=_needs_of_callbacks(carried.callbacks),
            limits=counted_limits(graph),
        )


def facts_of(graph: NodeGraph[Any]) -> GraphFacts:
    """Return the facts of a graph, computed at the first call and cached on the graph."""
    facts = graph.facts
    if not isinstance(facts, GraphFacts):
        facts = graph.facts = GraphFacts.of(graph)
    return facts


def asks_model(graph: NodeGraph[Any]) -> bool:
    """Whether a node of this graph calls a model; model calls of child runs do not count."""
    return facts_of(graph).asks_model


def runs_one_at_a_time(graph: NodeGraph[Any]) -> bool:
    """Whether an `Execute` node of the graph runs the tool calls of a turn one after the other."""
    return facts_of(graph).one_at_a_time


def _innermost_nodes(nodes: Iterable[Node[Any, Outcome]]) -> Iterator[Node[Any, Outcome]]:
    for node in unwrapped(nodes):
        if not nodes_within(node):
            yield node


def _asks_model(node: Node[Any, Outcome]) -> bool:
    if node.kind == "model":
        return True
    promised = contract_of(node)
    return promised is not None and node.kind != "graph" and promised.model_calls != 0


DEPTH_MAX: Final = 2
"""The default of `max_agent_depth`."""


def nesting_of(graph: NodeGraph[Any], plans: Mapping[str, Plan], given: int | None) -> Nesting:
    """Return the longest chains of agents below a graph: all of them, and those that models call.

    A chain of a graph's nodes that is too long becomes the `problem` of the result.

    Args:
        graph: the graph that runs.
        plans: the agents that the graph's runs may start, by name.
        given: `max_agent_depth`; None if the caller does not give it.

    Raises:
        ConfigError: agents that call each other are nested deeper than the default, and
            `max_agent_depth` is not given.
    """
    most = DEPTH_MAX if given is None else given
    path, within = tuple[str, ...](), ""
    for name in facts_of(graph).agents if plans else ():
        if name in plans:
            below = plans[name].opener.terms.nesting
            path, within = max(path, (name, *below.path), key=len), within or below.problem
    if len(path) > most:
        within = f"graph {graph.name!r}: {deeper([path[most]], most, len(path))}"
    ways = [(name, *plan.opener.terms.nesting.called) for name, plan in plans.items()]
    called = max(ways, key=len, default=tuple[str, ...]())
    if given is None and (deep := len(called)) > most >= len(path):
        raise ConfigError(
            f"`max_agent_depth`: expected at least {deep}, as agents call each other "
            f"({' > '.join(map(repr, called))}), found no value, so {most}: no model can call "
            f"{called[most]!r}. Fix: max_agent_depth={deep}; or give max_agent_depth={most}, if "
            "that is meant."
        )
    return Nesting(path, within, called[:most])


@runtime_checkable
class ReadsDeps(Protocol):
    """A callback of a node whose function may read the `deps` of its run."""

    @property
    def deps_type(self) -> object:
        """The type of `deps` that the function reads; `object` if it reads none."""
        ...

    def with_deps(self, deps: object, /) -> Callback[Any]:
        """Return the callback for a run with these dependencies."""
        ...


def with_deps(callbacks: Mapping[str, Callback[S]], deps: object) -> Mapping[str, Callback[S]]:
    """Return the callbacks of one run, which hand its `deps` to the functions of its nodes."""
    if deps is None:
        return callbacks
    return {
        name: call.with_deps(deps) if isinstance(call, ReadsDeps) else call
        for name, call in callbacks.items()
    }


def _needs_of_callbacks(callbacks: Mapping[str, object]) -> tuple[DepsNeed, ...]:
    return tuple(
        [
            DepsNeed(f"node {name!r}", call.deps_type)
            for name, call in callbacks.items()
            if isinstance(call, ReadsDeps) and call.deps_type is not object
        ]
    )


def deps_needs(
    graph: NodeGraph[Any],
    callbacks: Mapping[str, object],
    toolbox: Toolbox,
    plans: Mapping[str, Plan],
    options: Options,
) -> tuple[DepsNeed, ...]:
    """Return the parts of a graph's runs that read `deps`, or the agent that declares their type.

    Args:
        graph: the graph that runs.
        callbacks: the functions that its nodes invoke, by name.
        toolbox: the tools of its runs.
        plans: the agents that its runs may start, by name.
        options: the options of its runs, with the agent's `deps_type`.

    Raises:
        ConfigError: a part reads `deps` of another type than the agent declares.
    """
    facts, declared = facts_of(graph), options.deps_type
    # A run without callbacks of its caller looks at none: a graph may have thousands.
    is_own = callbacks is facts.carried.callbacks
    needs = [
        *[DepsNeed(f"tool {tool.name!r}", tool.deps_type) for tool in toolbox.tools],
        *(facts.reading if is_own else _needs_of_callbacks(callbacks)),
        *hook_needs(options.given),
        *[
            DepsNeed(f"agent {child!r}", need.kind)
            for child, plan in plans.items()
            for need in plan.opener.inherited_deps
        ],
    ]
    read = tuple([need for need in needs if need.kind is not object])
    if declared is None:
        return read
    if (misled := uncovered(declared, read)) is not None:
        raise ConfigError(
            f"agent {graph.name!r}: expected `deps` of type {kind_name(misled.kind)}, which "
            f"{misled.place} reads, found deps_type={kind_name(declared)}. Fix: declare that type, "
            "or give a child agent its own: as_tool(deps=…)."
        )
    return (DepsNeed(f"agent {graph.name!r}", declared),)
