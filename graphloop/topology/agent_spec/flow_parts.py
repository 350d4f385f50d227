"""A flow of Open Agent Spec while it is read, and how its parts become a topology's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, TypeAlias, final

from ..forms import Data
from .components import Component, Components, word
from .loop_data import appended
from .read_agents import plain_name

__all__ = [
    "DEFAULT",
    "LEAVE",
    "NEXT",
    "SPEAKING",
    "By",
    "Flow",
    "Made",
    "To",
    "Way",
    "branches_of",
    "listed",
    "pruned",
    "row_data",
]

NEXT: Final = "next"
DEFAULT: Final = "default"

LISTED_MAX: Final = 10
"""How many names of branches a message lists."""

SPEAKING: Final = (
    "AgentNode",
    "LlmNode",
    "FlowNode",
    "ParallelFlowNode",
    "MapNode",
    "ParallelMapNode",
)
"""The nodes whose outputs stand in the conversation."""


@final
@dataclass(frozen=True)
class By:
    """A way on: where the flow leads by a branch of the node."""

    branch: str


@final
@dataclass(frozen=True)
class To:
    """A way on: to another of the nodes that one node becomes."""

    node: str


LEAVE: Final = To("END")
"""The way on that ends the run."""

Way: TypeAlias = By | To
"""Branches are named as the document likes, nodes as a topology's are: neither is the other."""


@final
@dataclass
class Made:
    """What became of one node: its entry, its nodes, and the way on from each by each outcome."""

    entry: str
    nodes: dict[str, dict[str, Data]]
    rows: dict[str, dict[str, Way]]


@final
@dataclass
class Flow:
    """One flow, while it is read.

    Attributes:
        own: the flow.
        start: the id of the node that it starts at.
        nodes: its nodes, by their ids.
        ways: where each branch of each node leads.
        sources: for an input of a node, the node and the output that it comes from.
        told: the nodes that another node than the start leads to.
        agents: the agents of the topology that it becomes.
        taken: the names of that topology's nodes.
    """

    own: Component
    start: str = ""
    nodes: dict[str, Component] = field(default_factory=dict[str, Component])
    ways: dict[str, dict[str, str]] = field(default_factory=dict[str, "dict[str, str]"])
    sources: dict[tuple[str, str], tuple[str, str]] = field(
        default_factory=dict["tuple[str, str]", "tuple[str, str]"]
    )
    told: set[str] = field(default_factory=set[str])
    agents: dict[str, Data] = field(default_factory=dict[str, Data])
    taken: set[str] = field(default_factory=set[str])

    def named(self, name: str) -> str:
        """Return a name for a node that no other has."""
        found = plain_name(name, self.taken)
        self.taken.add(found)
        return found

    def agent(self, name: str, graph: dict[str, Data]) -> str:
        """Keep an agent, and return the name that it has here."""
        found = plain_name(name, self.agents)
        self.agents[found] = {"graph": graph}
        return found


def branches_of(one: Component, components: Components) -> Mapping[str, None]:
    """Return the branches that a node is left by, in their order."""
    known = components.branches
    if id(one) not in known:
        known[id(one)] = dict.fromkeys(_branches(one, components))
    return known[id(one)]


def _branches(one: Component, components: Components) -> tuple[str, ...]:
    if one.kind == "EndNode":
        return ()
    given = tuple([word(value) for value in components.items(one, "branches")])
    match one.kind:
        case "BranchingNode":
            mapped = [word(entry.value) for entry in components.pairs(one, "mapping")]
            return (*mapped, DEFAULT)
        case "FlowNode":
            inner = [*components.every(components.at(one, "subflow"), "nodes")]
            ends = [node for node in inner if node.kind == "EndNode"]
            names = [components.text(node, "branch_name", NEXT) for node in ends]
            return tuple(names) or (NEXT,)
        case "StartNode" | "LlmNode" | "ToolNode" | "ParallelFlowNode" | "MapNode":
            return (NEXT,)
        case "ParallelMapNode":
            return (NEXT,)
        case _:
            return given or (NEXT,)


def listed(branches: Iterable[str]) -> str:
    """Return the names of branches for a message: a document may have thousands."""
    names = [*islice(branches, LISTED_MAX + 1)]
    return ", ".join(names[:LISTED_MAX]) + (", …" if names[LISTED_MAX:] else "") or "none"


def row_data(row: Mapping[str, Way], ways: Mapping[str, str]) -> dict[str, Data]:
    """Return a row with its targets; `ways` is where the branches of its node lead."""

    def target(way: Way) -> str:
        return way.node if isinstance(way, To) else ways.get(way.branch, "END")

    if [*row] == [NEXT]:
        return appended(target(row[NEXT]))
    return {outcome: target(to) for outcome, to in row.items()}


def pruned(data: dict[str, Data]) -> dict[str, Data]:
    """Leave out what no way leads to: what stands after a node that was refused."""
    nodes, edges = data["nodes"], data["edges"]
    assert isinstance(nodes, dict)
    assert isinstance(edges, dict)
    waiting, reached = [data["start"]], set[object]()
    while waiting:
        one = waiting.pop()
        row = edges.get(str(one))
        if one in reached or not isinstance(row, dict):
            continue
        reached.add(one)
        waiting += row.values()
    kept = {name: one for name, one in nodes.items() if name in reached}
    rows = {name: one for name, one in edges.items() if name in reached}
    used = {name for one in kept.values() if isinstance(one, dict) for name in _agents_in(one)}
    agents = data.get("agents")
    held = agents if isinstance(agents, dict) else {}
    agents_kept: dict[str, Data] = {name: one for name, one in held.items() if name in used}
    rest = {key: one for key, one in data.items() if key != "agents"}
    added: dict[str, Data] = {"agents": agents_kept} if agents_kept else {}
    return {**rest, **added, "nodes": kept, "edges": rows}


def _agents_in(node: dict[str, Data]) -> set[str]:
    names = {str(node["agent"])} if "agent" in node else set[str]()
    branches = node.get("branches")
    for one in branches if isinstance(branches, list) else []:
        if isinstance(one, dict):
            names.add(str(one["agent"]))
    return names
