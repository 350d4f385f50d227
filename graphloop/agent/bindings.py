"""Bindings: the functions, agents and models that the nodes of a graph name or bring along."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar, final, runtime_checkable

from msgspec import Struct

from .. import nodes as node_room
from ..contract import Contract, contract_of
from ..driver import Callback
from ..errors import ConfigError, GraphError, Problem
from ..graph import NodeGraph
from ..limits import deeper
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
from .sub_agents import Nesting, Plan

__all__ = [
    "DEPTH_MAX",
    "Bindings",
    "Binds",
    "GraphFacts",
    "agents_named",
    "asks_model",
    "carried_by",
    "check_carried",
    "facts_of",
    "functions_named",
    "models_named",
    "needs_messages",
    "nesting_of",
    "runs_one_at_a_time",
]

S = TypeVar("S")

NAMING_TOOLS: Final = (Gate, PrepareStep, StopCheck)
"""The nodes that may name tools."""


@final
@dataclass(frozen=True)
class Bindings:
    """Functions and agents, by the names that nodes give in their effects.

    Args:
        callbacks: the functions that are invoked.
        agents: the agents whose runs are started.
    """

    callbacks: Mapping[str, Callback[Any]] = field(default_factory=dict[str, Callback[Any]])
    agents: Mapping[str, Plan] = field(default_factory=dict[str, Plan])

    def joined(self, given: Mapping[str, Callback[S]]) -> Mapping[str, Callback[S]]:
        """Return these functions and the caller's functions.

        Raises:
            ConfigError: two functions have one name.
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


@runtime_checkable
class Binds(Protocol):
    """A node that brings along the functions and agents that its effects name."""

    @property
    def carried(self) -> Bindings:
        """The functions and agents that the node brings along."""
        ...


def carried_by(nodes: Iterable[Node[Any, Outcome]]) -> Bindings:
    """Return the functions and agents that these nodes, and the nodes within them, bring along.

    Raises:
        ConfigError: two nodes bring different functions or agents under one name.
    """
    every = tuple(unwrapped(nodes))
    if (problem := next(_twice_brought(every), None)) is not None:
        raise ConfigError(str(problem))
    callbacks: dict[str, Callback[Any]] = {}
    agents: dict[str, Plan] = {}
    for node in every:
        if isinstance(node, Binds):
            carried = node.carried
            callbacks |= carried.callbacks
            agents |= carried.agents
    return Bindings(callbacks, agents)


def check_carried(graph: NodeGraph[Any]) -> None:
    """Refuse a graph whose nodes bring different functions or agents under one name.

    Raises:
        GraphError: naming each node.
    """
    problems = list(_twice_brought(graph.nodes.values()))
    if problems:
        raise GraphError(graph.name, problems)


def models_named(nodes: Iterable[Node[Any, Outcome]]) -> dict[str, str]:
    """Return the labels of the models that nodes name, each with the first node that names it."""
    return _named(nodes, _models_of)


def agents_named(nodes: Iterable[Node[Any, Outcome]]) -> dict[str, str]:
    """Return the agents that nodes may run, each with the first node that names it."""
    return _named(nodes, lambda node: [child.name for child in _contract(node).children])


def functions_named(nodes: Iterable[Node[Any, Outcome]]) -> dict[str, str]:
    """Return the functions that nodes invoke, each with the first node that names it."""
    return _named(nodes, lambda node: _contract(node).functions)


def _named(
    nodes: Iterable[Node[Any, Outcome]], names: Callable[[Node[Any, Outcome]], Iterable[str]]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in unwrapped(nodes):
        for name in filter(None, names(node)):
            found.setdefault(name, node.name)
    return found


def _contract(node: Node[Any, Outcome]) -> Contract:
    return contract_of(node) or Contract()


def _models_of(node: Node[Any, Outcome]) -> Iterable[str]:
    match node:
        case ModelCall():
            return (node.model, *node.fallbacks)
        case Compact(compaction=compaction) if compaction is not None:
            return (compaction.summary_model,)
        # Few graphs have such a node, and its module is loaded only for them.
        case _ if node.kind == "check" and isinstance(node, node_room.Critique | node_room.Router):
            return (node.model,)
        case _:
            return ()


def _twice_brought(nodes: Iterable[Node[Any, Outcome]]) -> Iterator[Problem]:
    """Yield a problem for each name under which nodes bring different functions or agents."""
    known: dict[tuple[str, str], object] = {}
    for node in unwrapped(nodes):
        if not isinstance(node, Binds):
            continue
        carried = node.carried
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
    """The facts about the nodes of a graph that each of its runs starts with.

    Attributes:
        carried: the functions and agents that the nodes bring along.
        models: the labels of the models that nodes name, each with the first such node.
        agents: the agents that nodes may run, likewise.
        functions: the functions that nodes invoke and do not bring along, likewise.
        naming_tools: the nodes that name tools.
        asks_model: see `asks_model`.
        needs_messages: see `needs_messages`.
        one_at_a_time: see `runs_one_at_a_time`.
    """

    carried: Bindings
    models: Mapping[str, str]
    agents: Mapping[str, str]
    functions: Mapping[str, str]
    naming_tools: tuple[Node[Any, Outcome], ...]
    asks_model: bool
    needs_messages: bool
    one_at_a_time: bool

    @classmethod
    def of(cls, graph: NodeGraph[Any]) -> GraphFacts:
        """Return the facts of a graph, by a look at each of its nodes."""
        nodes = graph.nodes.values()
        asking = [node for node in nodes if _asks(node)]
        carried, named = carried_by(nodes), functions_named(nodes)
        return cls(
            carried=carried,
            models=models_named(nodes),
            agents=agents_named(nodes),
            functions={name: named[name] for name in named if name not in carried.callbacks},
            naming_tools=tuple(
                [node for node in unwrapped(nodes) if isinstance(node, NAMING_TOOLS)]
            ),
            asks_model=bool(asking),
            # A generator's model is asked by a prompt of its own.
            needs_messages=any(
                not isinstance(node, Function) and _asks(node) for node in _innermost(asking)
            ),
            one_at_a_time=any(
                isinstance(node, Execute) and node.concurrency == 1 for node in nodes
            ),
        )


def facts_of(graph: NodeGraph[Any]) -> GraphFacts:
    """Return the facts of a graph, which keeps them: no run looks at each node."""
    facts = graph.facts
    if not isinstance(facts, GraphFacts):
        facts = graph.facts = GraphFacts.of(graph)
    return facts


def asks_model(graph: NodeGraph[Any]) -> bool:
    """Whether a node of the graph itself asks a model; child runs do not count."""
    return facts_of(graph).asks_model


def needs_messages(graph: NodeGraph[Any]) -> bool:
    """Whether a model of the graph itself reads its conversation.

    The model of a `Function` node reads a prompt of its own.
    """
    return facts_of(graph).needs_messages


def runs_one_at_a_time(graph: NodeGraph[Any]) -> bool:
    """Whether a node of the graph runs the calls of a turn one after the other."""
    return facts_of(graph).one_at_a_time


def _innermost(nodes: Iterable[Node[Any, Outcome]]) -> Iterator[Node[Any, Outcome]]:
    for node in unwrapped(nodes):
        if not nodes_within(node):
            yield node


def _asks(node: Node[Any, Outcome]) -> bool:
    if node.kind == "model":
        return True
    promised = contract_of(node)
    return promised is not None and node.kind != "graph" and promised.model_calls != 0


DEPTH_MAX: Final = 2
"""The default of `max_agent_depth`."""


def nesting_of(graph: NodeGraph[Any], plans: Mapping[str, Plan], given: int | None) -> Nesting:
    """Return how deep the child runs of a graph go.

    Args:
        graph: the graph that runs.
        plans: the agents of its runs.
        given: `max_agent_depth`; None if the caller does not give it.

    Raises:
        ConfigError: the default depth would keep models from calling one of the agents.
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
            f"agents {' > '.join(map(repr, called))} are {deep} deep, so no model can call "
            f"{called[most]!r}. Fix: max_agent_depth={deep}, or max_agent_depth={most} if meant"
        )
    return Nesting(path, within, called[:most])
