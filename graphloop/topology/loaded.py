"""Topology: a graph that was written down, with all that its file names: load it, dump it.

    graph = load("support.yaml")
    result = await graph.run(None, model="anthropic:claude-opus-4-8", prompt="…")
    print(dump(graph))

Tools, agents, predicates and functions are brought along by name, so a run is given a model and
nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast, final

from ..agent import (
    Agent,
    AgentTool,
    Graph,
    GraphOptions,
    RunTerms,
    ToolInput,
    Tools,
    asks_model,
    functions_named,
    passed_on,
)
from ..contract import contract_of
from ..driver import Callback
from ..errors import ConfigError
from ..graph import END, Edges, EndType, NodeGraph
from ..node_protocol import Node, unwrapped
from ..nodes import Gate
from ..outcomes import Outcome
from ..policy import Condition, Policy
from ..rules import Rules
from ..tools import legal_name
from .document import Document, document_of
from .reader import read_path, read_text
from .registration import RegisteredNames, Registry, registry
from .ruled_tools import known_tools, registered_agents, tell_document
from .source import text_or_path
from .writer import fingerprint_of, topology_text

__all__ = ["Topology", "dump", "fingerprint", "load"]


@final
class Topology(Graph[Any]):
    """A graph that was written down. Make one with `load`.

    Attributes:
        document: all that its file says.
    """

    def __init__(
        self,
        document: Document,
        names: RegisteredNames,
        made: dict[int, Topology] | None = None,
        given: Mapping[str, Agent | Topology] | None = None,
    ) -> None:
        self.given = given or {}
        # An agent that is used at many places is one graph.
        made = {} if made is None else made
        graph = document.graph
        super().__init__(graph.name, graph.nodes[graph.start], _rows(graph), ignore=document.ignore)
        self.source = graph.source
        self.document = document
        self._names = names
        self._agents = {
            name: _agent(
                _told(one.document, name, document.ignore), names, made, self.given.get(name)
            )
            for name, one in document.agents.items()
            if one.document is not None
        }
        self.tool_names = known_tools(document, names)
        promised = [contract_of(node) for node in graph.nodes.values()]
        run = {child.name for one in promised if one is not None for child in one.children}
        own = {name: self._agents.get(name) for name in document.agents}
        self.agents = {**own, **registered_agents(document.tools, names)}
        self.called = frozenset(document.tools) & frozenset(self.agents)
        self.handoffs = frozenset(
            [
                name
                for name, one in document.agents.items()
                if one.takes_over and name in self.called
            ]
        )
        tell_document(self, document, names)
        if any(node.kind == "execute" for node in graph.nodes.values()):
            run |= self.called
        of_agents = {
            (f"{name}/{node}", code): reason
            for name, one in self._agents.items()
            if name in run
            for (node, code), reason in one.ignore.items()
        }
        self._ignore = {**of_agents, **document.ignore}

    def __eq__(self, other: object) -> bool:
        same = super().__eq__(other)
        if same is not True or not isinstance(other, Topology):
            return same
        return self.document == other.document

    def __hash__(self) -> int:
        return super().__hash__()

    @property
    def prompt(self) -> str:
        """What is asked when nobody asks anything else; empty for nothing."""
        return self.document.prompt

    @property
    def needs_model(self) -> bool:
        """Whether a node asks a model, or one of an agent that the file says itself."""
        own = [one for name, one in self._agents.items() if not self._has_model(name)]
        return asks_model(self) or any(one.needs_model for one in own)

    @property
    def rules(self) -> Rules:
        """The temporal rules of the file."""
        return self.document.rules

    @cached_property
    def is_endless(self) -> bool:
        """Whether something has no bound, of the graph or of an agent that its file says itself."""
        return bool(self.endless) or any(one.is_endless for one in self._agents.values())

    def unbounded(self, reason: str) -> Topology:
        """Return this graph with its cycles without a bound set aside, its agents' as well.

        The reason stands among those of its file, and of its agents' files.
        """
        if not self.is_endless:
            return super().unbounded(reason)
        return self.with_document(self._excused(reason, {}))

    def with_document(
        self, document: Document, given: Mapping[str, Agent | Topology] | None = None
    ) -> Topology:
        """Return what another document says, whose names mean what they mean in this one."""
        return Topology(document, self._names, given={**self.given, **(given or {})})

    def _has_model(self, name: str) -> bool:
        """Whether an agent asks its own model."""
        return isinstance(self.given.get(name), Agent)

    def _excused(self, reason: str, made: dict[int, Document]) -> Document:
        """Return the document with the reason, made once of each graph."""
        if id(self) not in made:
            none: Mapping[tuple[str, str], str] = {}
            own = super().unbounded(reason).ignore if self.endless else none
            ignore = {
                place: why
                for place, why in own.items()
                if place not in self.ignore or place in self.document.ignore
            }
            agents = dict(self.document.agents)
            for name, one in self._agents.items():
                if one.is_endless:
                    agents[name] = replace(agents[name], document=one._excused(reason, made))
            ignore = {**self.document.ignore, **ignore}
            made[id(self)] = replace(self.document, agents=agents, ignore=ignore)
        return made[id(self)]

    def with_tools(self, given: Tools = ()) -> Tools:
        """Return the registered tools of the file, and those that a run is given besides.

        Raises:
            ConfigError: a name stands twice, or is not registered any more.
        """
        names = [name for name in self.document.tools if name not in self._agents]
        own = {name: cast("ToolInput", self._found("tool", name)) for name in names}
        return _joined(own, given)

    def _terms(self, options: GraphOptions[Any], own_gates: Policy | None = None) -> RunTerms[Any]:
        tools, agents = self._tools(options), self._others(options)
        merged: GraphOptions[Any] = {**options, "tools": _joined(tools, options.get("tools", ()))}
        merged["agents"] = {**agents, **options.get("agents", {})}
        if self.document.instructions:
            merged.setdefault("instructions", self.document.instructions)
        merged["callbacks"] = {**self._functions(), **(options.get("callbacks") or {})}
        terms = super()._terms(merged, own_gates or self._own_gates())
        made = [{**tools, **agents}[name] for name in self._agents if not self._has_model(name)]
        for one in made:
            assert isinstance(one, AgentTool), "an agent of the file was made for these runs"
            terms.own_resources += one.opener.terms.own_resources
        return terms

    def _own_gates(self) -> Policy | None:
        """Return the conditional rules of the gates, with the predicates that they name.

        Rules without a condition need nobody to look at them, and one before another would keep
        the predicate of a second gate from being asked.
        """
        rules = [
            rule
            for node in unwrapped(self.nodes.values())
            if isinstance(node, Gate)
            for rule in node.rules
            if rule.condition
        ]
        if not rules:
            return None
        found = {one.condition: self._found("predicate", one.condition) for one in rules}
        # The registry has looked at each: they are functions.
        return Policy(tuple(rules), cast("dict[str, Condition]", found))

    def _functions(self) -> dict[str, Callback[Any]]:
        nodes = self.nodes.values()
        # A node that promises nothing may invoke what it calls its callback.
        silent = [one for one in unwrapped(nodes) if contract_of(one) is None]
        meant = [one for node in silent if isinstance(one := getattr(node, "callback", None), str)]
        names = dict.fromkeys((*functions_named(nodes), *filter(None, meant)))
        found = {name: self._names.find("function", name) for name in names}
        # The registry has looked at each: they are functions. A node that was made in Python
        # brings its own.
        return cast(
            "dict[str, Callback[Any]]",
            {name: one for name, one in found.items() if one is not None},
        )

    def _tools(self, options: GraphOptions[Any]) -> dict[str, ToolInput]:
        return {
            name: self._agent(name, options)
            if name in self._agents
            else cast("ToolInput", self._found("tool", name))  # A toolbox looks at it.
            for name in self.document.tools
        }

    def _others(self, options: GraphOptions[Any]) -> dict[str, AgentTool]:
        """Return the agents that only nodes know."""
        others = [name for name in self._agents if name not in self.document.tools]
        return {name: self._agent(name, options) for name in others}

    def _agent(self, name: str, options: GraphOptions[Any]) -> AgentTool:
        entry, own = self.document.agents[name], self.given.get(name)
        if isinstance(own, Agent):
            return own.as_tool(
                name=legal_name(name), description=entry.description, takes_over=entry.takes_over
            )
        return self._agents[name].as_tool(
            None,
            name=legal_name(name),  # Nodes run it by the name that it has in the file.
            description=entry.description,
            takes_over=entry.takes_over,
            **passed_on({**options}),
        )

    def _found(self, category: str, name: str) -> object:
        found = self._names.find("tool" if category == "tool" else "predicate", name)
        if found is None:
            raise ConfigError(
                f"graph {self.name!r} names the {category} {name!r}, which is not registered any "
                f"more. Fix: register it with @registry.{category}"
            )
        return found


def load(
    source: str | Path,
    *,
    registry: Registry = registry,
) -> Topology:
    """Return the graph that a file of YAML or JSON describes.

    Args:
        source: the path of the file, JSON if it ends in `.json`; or the text itself, which has a
            line break or begins with a brace, and can include no files: what is JSON is read so.
        registry: what the file may name beside the library's nodes and what installed packages
            offer.

    Raises:
        TopologyError: with every problem found, each with its file, line and column.
        ConfigError: neither a path nor a text is given.
    """
    names = RegisteredNames(registry)
    given = text_or_path(source)
    read = read_path(given, names) if isinstance(given, Path) else read_text(given, names)
    return Topology(read, names)


def dump(graph: NodeGraph[Any], *, registry: Registry = registry) -> str:
    """Return a graph as YAML that `load` reads as an equal graph.

    What a topology includes stands in the text itself. An agent that is only known by name is
    `given`: it is handed to each run.

    Args:
        graph: a graph, from a file or from Python.
        registry: what the text may name.

    Raises:
        GraphError: naming each node that no file can hold, and why; or what keeps the text from
            being read again, such as too many levels.
    """
    return topology_text(_document(graph), RegisteredNames(registry))


def fingerprint(graph: NodeGraph[Any], *, registry: Registry = registry) -> str:
    """Return the SHA-256 of what a graph says, however it was written.

    Args:
        graph: a graph, from a file or from Python.
        registry: what its file may name.

    Raises:
        GraphError: naming each node that no file can hold, and why.
    """
    return fingerprint_of(_document(graph), RegisteredNames(registry))


def _document(graph: NodeGraph[Any]) -> Document:
    return graph.document if isinstance(graph, Topology) else document_of(graph)


def _rows(graph: NodeGraph[Any]) -> Edges[Any]:
    """Return the table of a graph as it was given."""
    to: dict[str, Node[Any, Outcome] | EndType] = {**graph.nodes, "END": END}
    return {
        graph.nodes[name]: {outcome: to[target] for outcome, target in row.items()}
        for name, row in graph.table.items()
    }


def _agent(
    document: Document,
    names: RegisteredNames,
    made: dict[int, Topology],
    given: Agent | Topology | None,
) -> Topology:
    """Return the graph of an agent, made once of each document."""
    if id(document) not in made:
        known = given.given if isinstance(given, Topology) else None
        made[id(document)] = Topology(document, names, made, known)
    return made[id(document)]


def _told(document: Document, name: str, ignore: Mapping[tuple[str, str], str]) -> Document:
    """Return an agent's document with what the file that it stands in sets aside of it."""
    within = f"{name}/"
    told = {
        (node.removeprefix(within), code): reason
        for (node, code), reason in ignore.items()
        if node.startswith(within)
    }
    return replace(document, ignore={**document.ignore, **told}) if told else document


def _joined(own: Mapping[str, ToolInput], given: Tools) -> Tools:
    """Return the file's tools and those that a run is given besides."""
    if not own:
        return given
    listed = {**given} if isinstance(given, Mapping) else {_name(one): one for one in given}
    twice = sorted(own.keys() & listed.keys())
    if twice:
        raise ConfigError(
            f"`tools` names {twice[0]!r}, which the topology brings along: leave it out"
        )
    return {**own, **listed}


def _name(tool: ToolInput) -> str:
    return str(getattr(tool, "name", "") or getattr(tool, "__name__", "tool"))
