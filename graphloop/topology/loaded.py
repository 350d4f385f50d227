"""Topology: a graph loaded from a file, with the tools, agents and functions that the file names.

    graph = load("support.yaml")
    result = await graph.run(None, model="anthropic:claude-opus-4-8", prompt="…")
    print(dump(graph))

The registry supplies the named tools, predicates and functions, so a run needs only a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias, cast, final, overload

from typing_extensions import TypeVar

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
    graph_of,
    passed_on,
)
from ..contract import contract_of
from ..driver import Callback
from ..errors import ConfigError
from ..graph import NodeGraph, Surroundings
from ..policy import Condition, Policy
from ..rules import Rules
from ..tools import legal_name
from .document import Document, Ignore, document_of, graphs_run, rows_with
from .reader import read_path, read_text
from .references import conditional_rules, known_tools
from .registration import Category, Registry, registry
from .servers import RegisteredServer
from .writer import fingerprint_of, topology_text

__all__ = ["Topology", "dump", "fingerprint", "load"]

NO_PATH: Final = ("\n", "\r", "\0")
"""A string with one of these characters is read as the text of a topology, and not as a path."""

S = TypeVar("S", default=Any)

OwnAgents: TypeAlias = "Mapping[str, Agent[Any, Any] | Topology]"


@final
class Topology(Graph[S]):
    """A graph loaded from a file; `load` makes it.

    Attributes:
        document: the content of the file.
        registry: maps names in the file to Python objects.
        own_agents: agents made in Python, by name; each replaces the file's agent of that name.
    """

    def __init__(
        self,
        document: Document,
        registry: Registry,
        made: dict[int, Topology] | None = None,
        own_agents: OwnAgents | None = None,
    ) -> None:
        graph = document.graph
        super().__init__(
            graph.name,
            graph.nodes[graph.start],
            rows_with(graph),
            state_type=document.state_type,
            ignore=document.ignore,
        )
        self.source = graph.source
        self.document = document
        self.registry = registry
        self.own_agents = own_agents or {}
        self._remote = {
            name: tool
            for server in document.servers.values()
            for name, tool in server.tools(registry).items()
        }
        # Agents with the same document share one graph.
        made = {} if made is None else made
        self._agents = {
            name: _agent_graph(
                _with_reasons(agent.document, name, document.ignore),
                registry,
                made,
                self.own_agents.get(name),
            )
            for name, agent in document.agents.items()
            if agent.document is not None
        }
        self.surroundings = self._surroundings()
        run = {*graphs_run(graph.nodes.values())}
        if any(node.kind == "execute" for node in graph.nodes.values()):
            run |= self.surroundings.called
        self._ignore = {
            (node, code): reason
            for (node, code), reason in document.ignore.items()
            if node.partition("/")[0] not in self._agents or "/" not in node
        }
        for name, agent in self._agents.items():
            # Skip agents that no run calls: their `ignore` entries would match no finding.
            self._ignore |= _ignore_of_agent(name, agent.ignore) if name in run else {}

    def _surroundings(self) -> Surroundings:
        """Return the tools, agents and options that checks and drawings read."""
        document = self.document
        tools = {
            name: self._remote.get(name) or self.registry.get("tool", name)
            for name in document.tools
        }
        agents = {
            name: graph_of(tool.opener)
            for name, tool in tools.items()
            if isinstance(tool, AgentTool)
        }
        known = {**{name: self._agents.get(name) for name in document.agents}, **agents}
        called = frozenset(document.tools) & frozenset(known)
        handoffs = called & {name for name, agent in document.agents.items() if agent.takes_over}
        placed = called & {
            name for name, agent in document.agents.items() if agent.place == "anywhere"
        }
        options = {
            "description": document.description,
            "instructions": document.instructions,
            "prompt": document.prompt,
            "tools": {
                name: tool.tool if isinstance(tool, AgentTool) else tool
                for name, tool in tools.items()
            },
            "agents": {name: agent.description for name, agent in document.agents.items()},
        }
        tool_names = known_tools(document, self.registry)
        return Surroundings(tool_names, known, called, handoffs, placed, options)

    def __eq__(self, other: object) -> bool:
        is_equal = super().__eq__(other)
        if is_equal is not True or not isinstance(other, Topology):
            return is_equal
        return self.document == other.document

    def __hash__(self) -> int:
        return super().__hash__()

    @property
    def prompt(self) -> str:
        """The file's prompt, for a run whose caller gives none; may be empty."""
        return self.document.prompt

    @property
    def needs_model(self) -> bool:
        """Whether a node, or an agent without its own model, uses the run's model."""
        agents = [agent for name, agent in self._agents.items() if not self._has_model(name)]
        return asks_model(self) or any(agent.needs_model for agent in agents)

    @property
    def rules(self) -> Rules:
        """The temporal rules in the file."""
        return self.document.rules

    @cached_property
    def is_endless(self) -> bool:
        """Whether the graph or an agent's graph has a cycle without a bound."""
        return bool(self.endless) or any(agent.is_endless for agent in self._agents.values())

    def unbounded(self, reason: str) -> Topology[S]:
        """Return a copy of the graph that may run although it has cycles without a bound.

        `reason` is added to `ignore` for each such cycle, also in agents' graphs.
        """
        if not self.is_endless:
            return super().unbounded(reason)
        ignore = {**self.document.ignore, **self._ignore_cycles(reason)}
        return self.with_document(replace(self.document, ignore=ignore))

    def _ignore_cycles(self, reason: str) -> Ignore:
        """Return an `ignore` entry with `reason` for each unbounded cycle, also those of agents."""
        own = super().unbounded(reason).ignore if self.endless else dict[tuple[str, str], str]()
        reasons = {place: why for place, why in own.items() if place not in self.ignore}
        for name, agent in self._agents.items():
            reasons |= _ignore_of_agent(name, agent._ignore_cycles(reason))
        return reasons

    def with_document(self, document: Document, own_agents: OwnAgents | None = None) -> Topology[S]:
        """Return a topology of another document, with `own_agents` added to this one's agents."""
        agents = {**self.own_agents, **(own_agents or {})}
        return Topology(document, self.registry, own_agents=agents)

    def with_tools(self, given: Tools = ()) -> Tools:
        """Return the registered tools of the file, joined with the tools given to a run.

        Raises:
            ConfigError: a tool name is in both, or a tool of the file is no longer registered.
        """
        names = [name for name in self.document.tools if name not in self._agents]
        return _join_tools({name: self._find_tool(name) for name in names}, given)

    def _find_tool(self, name: str) -> ToolInput:
        """Return the tool of a server, or a registered tool, which the toolbox checks later."""
        return self._remote.get(name) or cast("ToolInput", self._find_registered("tool", name))

    def _has_model(self, name: str) -> bool:
        """Whether the named agent was made in Python as an `Agent`, with its own model."""
        return isinstance(self.own_agents.get(name), Agent)

    def _terms(self, options: GraphOptions[Any], own_gates: Policy | None = None) -> RunTerms[Any]:
        for name, server in self.document.servers.items():
            RegisteredServer(name, self.registry).found().note(server.definitions)
        agents = {name: self._make_agent(name, options) for name in self._agents}
        tools: dict[str, ToolInput] = {
            name: agents.get(name) or self._find_tool(name) for name in self.document.tools
        }
        asked = {name: agent for name, agent in agents.items() if name not in tools}
        merged: GraphOptions[Any] = {
            **options,
            "tools": _join_tools(tools, options.get("tools", ())),
        }
        merged["agents"] = {**asked, **options.get("agents", {})}
        if self.document.instructions:
            merged.setdefault("instructions", self.document.instructions)
        merged["callbacks"] = {**self._called_functions(), **(options.get("callbacks") or {})}
        terms = super()._terms(merged, own_gates or self._own_gates())
        made = [agent for name, agent in agents.items() if not self._has_model(name)]
        theirs = [one for agent in made for one in agent.opener.terms.own_to_close]
        return terms.evolved(own_to_close=(*terms.own_to_close, *theirs))

    def _own_gates(self) -> Policy | None:
        """Return a policy of the gates' conditional rules and predicates; None without such rules.

        Unconditional rules are left out: an unconditional rule of one gate would be applied before
        the predicate of a later gate is called.
        """
        rules = conditional_rules(self.nodes.values())
        if not rules:
            return None
        predicates = {
            rule.condition: self._find_registered("predicate", rule.condition) for rule in rules
        }
        # The cast is safe: the registry accepts only functions as predicates.
        return Policy(tuple(rules), cast("dict[str, Condition]", predicates))

    def _called_functions(self) -> dict[str, Callback[Any]]:
        """Return, by name, the registered functions that the graph's nodes call.

        A node without a contract may name its function in its `callback` attribute.
        """
        silent = [node for node in self.every_node if contract_of(node) is None]
        names = [*functions_named(self.every_node)]
        names += [str(getattr(node, "callback", "")) for node in silent]
        functions = {name: self.registry.get("function", name) for name in names}
        # An unregistered name belongs to a node made in Python, which contains its function.
        known = {name: function for name, function in functions.items() if function is not None}
        return cast("dict[str, Callback[Any]]", known)

    def _make_agent(self, name: str, options: GraphOptions[Any]) -> AgentTool:
        entry, own = self.document.agents[name], self.own_agents.get(name)
        called, described = legal_name(name), entry.description  # Nodes keep the file's `name`.
        over, place = entry.takes_over, entry.place
        if isinstance(own, Agent):
            return own.as_tool(name=called, description=described, takes_over=over, place=place)
        passed, graph = passed_on({**options}), self._agents[name]
        return graph.as_tool(
            None, name=called, description=described, takes_over=over, place=place, **passed
        )

    def _find_registered(self, category: Category, name: str) -> object:
        value = self.registry.get(category, name)
        if value is None:
            raise ConfigError(
                f"graph {self.name!r}: expected the {category} {name!r}, found it is not "
                f"registered any more. Fix: register it with @registry.{category}"
            )
        return value


@overload
def load(source: str | Path, *, registry: Registry = registry) -> Topology: ...
@overload
def load(
    source: str | Path, *, state_type: type[S], registry: Registry = registry
) -> Topology[S]: ...
def load(
    source: str | Path, *, state_type: type[Any] | None = None, registry: Registry = registry
) -> Topology:
    """Load a graph from a YAML or JSON file, or from the text of such a file.

        graph = load("news.yaml", state_type=Article)  # a Topology[Article]

    Args:
        source: the path of the file, which must be JSON if the path ends in `.json`; or the text.
            A string with a line break or a leading brace is a text. A text cannot include files.
        state_type: the type of the state, for the type checker and for the fields that the file
            names; by default the type that the file's own nodes declare.
        registry: the nodes, tools and functions that the file may name besides the library's nodes.

    Raises:
        TopologyError: the file is invalid, or does not fit `state_type`; the error lists each
            problem with file, line and column.
    """
    if isinstance(source, str) and (
        any(sign in source for sign in NO_PATH) or source.lstrip("\ufeff \t").startswith("{")
    ):
        return Topology(read_text(source, registry, state_type=state_type), registry)
    return Topology(read_path(Path(source), registry, state_type), registry)


def dump(graph: NodeGraph[Any], *, registry: Registry = registry) -> str:
    """Return a graph as YAML text that `load` reads back as an equal graph.

    The graphs of included files are written into the text. An agent whose graph is unknown is
    written as `given: true`: the caller passes the agent to each run. `registry` holds the names
    that the text may use.

    Raises:
        GraphError: a file cannot represent a node, or `load` could not read the text, for example
            because it is nested too deeply. The error names each such node and the reason.
    """
    return topology_text(document_of(graph), registry)


def fingerprint(graph: NodeGraph[Any], *, registry: Registry = registry) -> str:
    """Return the SHA-256 of a graph's canonical form; equal graphs have equal fingerprints.

    Raises:
        GraphError: a file cannot represent a node; the error names each such node and the reason.
    """
    return fingerprint_of(document_of(graph), registry)


def _agent_graph(
    document: Document,
    registry: Registry,
    made: dict[int, Topology],
    own: Agent[Any, Any] | Topology | None,
) -> Topology:
    """Return the topology for an agent's document; `made` caches one topology per document."""
    if id(document) not in made:
        known = own.own_agents if isinstance(own, Topology) else None
        made[id(document)] = Topology(document, registry, made, known)
    return made[id(document)]


def _ignore_of_agent(agent: str, ignore: Ignore) -> dict[tuple[str, str], str]:
    """Return an agent's `ignore` entries, with each node renamed to `agent/node`."""
    return {(f"{agent}/{node}", code): reason for (node, code), reason in ignore.items()}


def _with_reasons(document: Document, agent: str, ignore: Ignore) -> Document:
    """Return an agent's document plus the outer file's `ignore` entries for the agent's nodes."""
    prefix = f"{agent}/"
    reasons = {
        (node.removeprefix(prefix), code): reason
        for (node, code), reason in ignore.items()
        if node.startswith(prefix)
    }
    return replace(document, ignore={**document.ignore, **reasons}) if reasons else document


def _join_tools(own: Mapping[str, ToolInput], given: Tools) -> Tools:
    """Return the file's tools joined with a run's tools.

    Raises:
        ConfigError: a tool name is in both.
    """
    if not own:
        return given
    listed = {**given} if isinstance(given, Mapping) else {_tool_name(tool): tool for tool in given}
    if both := sorted(own.keys() & listed.keys()):
        raise ConfigError(
            f"`tools`: expected tools besides the topology's, found {both[0]!r}, which the "
            "topology brings along. Fix: leave it out"
        )
    return {**own, **listed}


def _tool_name(tool: ToolInput) -> str:
    return str(getattr(tool, "name", "") or getattr(tool, "__name__", "tool"))
