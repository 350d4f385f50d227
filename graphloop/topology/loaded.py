"""Topology: a graph from a file, with all that the file names.

    graph = load("support.yaml")
    result = await graph.run(None, model="anthropic:claude-opus-4-8", prompt="…")
    print(dump(graph))

The file brings tools, agents, predicates and functions by name, so a run needs only a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias, cast, final

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
from ..graph import NodeGraph
from ..node_protocol import unwrapped
from ..policy import Condition, Policy
from ..rules import Rules
from ..tools import legal_name
from .document import Document, Ignore, document_of, graphs_run, rows_with
from .reader import read_path, read_text
from .references import conditional_rules, known_tools
from .registration import Category, Registry, registry
from .writer import fingerprint_of, topology_text

__all__ = ["Topology", "dump", "fingerprint", "load"]

NO_PATH: Final = ("\n", "\r", "\0")
"""Characters that no path has: line breaks, which a text has, and NUL, which both refuse."""

OwnAgents: TypeAlias = "Mapping[str, Agent | Topology]"


@final
class Topology(Graph[Any]):
    """A graph from a file, and its `document`. Make one with `load`.

    Attributes:
        document: all that the file says.
        registry: the meaning of the names in the file.
        own_agents: the agents from Python by name; they take the place of those of the file.
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
            graph.name, graph.nodes[graph.start], rows_with(graph), ignore=document.ignore
        )
        self.source = graph.source
        self.document = document
        self.registry = registry
        self.own_agents = own_agents or {}
        # An agent that is used at many places is one graph.
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
        self._describe_runs()
        run = {*graphs_run(graph.nodes.values())}
        if any(node.kind == "execute" for node in graph.nodes.values()):
            run |= self.called
        self._ignore = {
            (node, code): reason
            for (node, code), reason in document.ignore.items()
            if node.partition("/")[0] not in self._agents or "/" not in node
        }
        for name, agent in self._agents.items():
            # A reason for an agent that no run calls would suppress nothing.
            self._ignore |= _within(name, agent.ignore) if name in run else {}

    def _describe_runs(self) -> None:
        """Set what proofs and drawings read of the file."""
        document = self.document
        tools = {name: self.registry.get("tool", name) for name in document.tools}
        agents = {
            name: graph_of(tool.opener)
            for name, tool in tools.items()
            if isinstance(tool, AgentTool)
        }
        self.tool_names = known_tools(document, self.registry)
        self.agents = {**{name: self._agents.get(name) for name in document.agents}, **agents}
        self.called = frozenset(document.tools) & frozenset(self.agents)
        self.handoffs = self.called & {
            name for name, agent in document.agents.items() if agent.takes_over
        }
        self.run_options = {
            "description": document.description,
            "instructions": document.instructions,
            "prompt": document.prompt,
            "tools": {
                name: tool.tool if isinstance(tool, AgentTool) else tool
                for name, tool in tools.items()
            },
            "agents": {name: agent.description for name, agent in document.agents.items()},
        }

    def __eq__(self, other: object) -> bool:
        is_equal = super().__eq__(other)
        if is_equal is not True or not isinstance(other, Topology):
            return is_equal
        return self.document == other.document

    def __hash__(self) -> int:
        return super().__hash__()

    @property
    def prompt(self) -> str:
        """The question of a run without a prompt; empty for none."""
        return self.document.prompt

    @property
    def needs_model(self) -> bool:
        """Whether a node or an agent asks the model of the run."""
        agents = [agent for name, agent in self._agents.items() if not self._has_model(name)]
        return asks_model(self) or any(agent.needs_model for agent in agents)

    @property
    def rules(self) -> Rules:
        """The temporal rules of the file."""
        return self.document.rules

    @cached_property
    def is_endless(self) -> bool:
        """Whether the graph or an agent has an unbounded cycle."""
        return bool(self.endless) or any(agent.is_endless for agent in self._agents.values())

    def unbounded(self, reason: str) -> Topology:
        """Return this graph with a reason for each cycle without a bound.

        The reason stands in `ignore`, also for the nodes of agents.
        """
        if not self.is_endless:
            return super().unbounded(reason)
        ignore = {**self.document.ignore, **self._reasons(reason)}
        return self.with_document(replace(self.document, ignore=ignore))

    def _reasons(self, reason: str) -> Ignore:
        """Return the unbounded cycles, named from this file, with the reason."""
        own = super().unbounded(reason).ignore if self.endless else dict[tuple[str, str], str]()
        reasons = {place: why for place, why in own.items() if place not in self.ignore}
        for name, agent in self._agents.items():
            reasons |= _within(name, agent._reasons(reason))
        return reasons

    def with_document(self, document: Document, own_agents: OwnAgents | None = None) -> Topology:
        """Return the graph of another document, with more agents."""
        agents = {**self.own_agents, **(own_agents or {})}
        return Topology(document, self.registry, own_agents=agents)

    def with_tools(self, given: Tools = ()) -> Tools:
        """Return the registered tools of the file, and a run's own.

        Raises:
            ConfigError: a name stands twice, or is not registered any more.
        """
        names = [name for name in self.document.tools if name not in self._agents]
        own = {name: cast("ToolInput", self._find("tool", name)) for name in names}
        return _joined(own, given)

    def _has_model(self, name: str) -> bool:
        """Whether an agent asks its own model."""
        return isinstance(self.own_agents.get(name), Agent)

    def _terms(self, options: GraphOptions[Any], own_gates: Policy | None = None) -> RunTerms[Any]:
        agents = {name: self._agent(name, options) for name in self._agents}
        tools: dict[str, ToolInput] = {
            # A toolbox checks a registered tool.
            name: agents.get(name) or cast("ToolInput", self._find("tool", name))
            for name in self.document.tools
        }
        asked = {name: agent for name, agent in agents.items() if name not in tools}
        merged: GraphOptions[Any] = {**options, "tools": _joined(tools, options.get("tools", ()))}
        merged["agents"] = {**asked, **options.get("agents", {})}
        if self.document.instructions:
            merged.setdefault("instructions", self.document.instructions)
        merged["callbacks"] = {**self._functions(), **(options.get("callbacks") or {})}
        terms = super()._terms(merged, own_gates or self._own_gates())
        for name, agent in agents.items():
            if not self._has_model(name):
                terms.own_resources += agent.opener.terms.own_resources
        return terms

    def _own_gates(self) -> Policy | None:
        """Return the conditional rules of the gates with their predicates.

        Rules without a condition are left out: one before another would keep the predicate of a
        second gate from being asked.
        """
        rules = conditional_rules(self.nodes.values())
        if not rules:
            return None
        predicates = {rule.condition: self._find("predicate", rule.condition) for rule in rules}
        # The registry takes only functions.
        return Policy(tuple(rules), cast("dict[str, Condition]", predicates))

    def _functions(self) -> dict[str, Callback[Any]]:
        """Return the registered functions that nodes name.

        A node without a contract may name its function in `callback`.
        """
        silent = [node for node in unwrapped(self.nodes.values()) if contract_of(node) is None]
        names = [*functions_named(self.nodes.values())]
        names += [str(getattr(node, "callback", "")) for node in silent]
        functions = {name: self.registry.get("function", name) for name in names}
        # The registry takes only functions; a node from Python brings its own.
        known = {name: function for name, function in functions.items() if function is not None}
        return cast("dict[str, Callback[Any]]", known)

    def _agent(self, name: str, options: GraphOptions[Any]) -> AgentTool:
        entry, own = self.document.agents[name], self.own_agents.get(name)
        called, described = legal_name(name), entry.description  # Nodes use the name in the file.
        over = entry.takes_over
        if isinstance(own, Agent):
            return own.as_tool(name=called, description=described, takes_over=over)
        passed, graph = passed_on({**options}), self._agents[name]
        return graph.as_tool(None, name=called, description=described, takes_over=over, **passed)

    def _find(self, category: Category, name: str) -> object:
        value = self.registry.get(category, name)
        if value is None:
            raise ConfigError(
                f"graph {self.name!r}: expected the {category} {name!r}, found it is not "
                f"registered any more. Fix: register it with @registry.{category}"
            )
        return value


def load(source: str | Path, *, registry: Registry = registry) -> Topology:
    """Return the graph that a file of YAML or JSON describes.

    Args:
        source: the path of the file, JSON if it ends in `.json`; or the text itself, which has a
            line break or begins with a brace, and can include no files.
        registry: the names that the file may use beside the library's nodes.

    Raises:
        TopologyError: with every problem, each with its file, line and column.
    """
    if isinstance(source, str) and (
        any(sign in source for sign in NO_PATH) or source.lstrip("\ufeff \t").startswith("{")
    ):
        return Topology(read_text(source, registry), registry)
    return Topology(read_path(Path(source), registry), registry)


def dump(graph: NodeGraph[Any], *, registry: Registry = registry) -> str:
    """Return a graph as YAML that `load` reads as an equal graph.

    The text holds all that a topology includes. An agent without a known graph is `given`: each run
    brings it. `registry` has the names that the text may use.

    Raises:
        GraphError: naming each node that no file can hold, and why; or the reason why the text
            could not be read again, such as too many levels.
    """
    return topology_text(document_of(graph), registry)


def fingerprint(graph: NodeGraph[Any], *, registry: Registry = registry) -> str:
    """Return the SHA-256 of a graph's meaning; see `dump`.

    Raises:
        GraphError: naming each node that no file can hold, and why.
    """
    return fingerprint_of(document_of(graph), registry)


def _agent_graph(
    document: Document,
    registry: Registry,
    made: dict[int, Topology],
    own: Agent | Topology | None,
) -> Topology:
    """Return the graph of an agent, made once of each document."""
    if id(document) not in made:
        known = own.own_agents if isinstance(own, Topology) else None
        made[id(document)] = Topology(document, registry, made, known)
    return made[id(document)]


def _within(agent: str, ignore: Ignore) -> dict[tuple[str, str], str]:
    """Return an agent's reasons, their nodes named from the outer file."""
    return {(f"{agent}/{node}", code): reason for (node, code), reason in ignore.items()}


def _with_reasons(document: Document, agent: str, ignore: Ignore) -> Document:
    """Return an agent's document with the reasons of the outer file."""
    prefix = f"{agent}/"
    reasons = {
        (node.removeprefix(prefix), code): reason
        for (node, code), reason in ignore.items()
        if node.startswith(prefix)
    }
    return replace(document, ignore={**document.ignore, **reasons}) if reasons else document


def _joined(own: Mapping[str, ToolInput], given: Tools) -> Tools:
    """Return the file's tools and those of a run.

    Raises:
        ConfigError: a tool is in both.
    """
    if not own:
        return given
    listed = {**given} if isinstance(given, Mapping) else {_name(tool): tool for tool in given}
    if both := sorted(own.keys() & listed.keys()):
        raise ConfigError(
            f"`tools`: expected tools besides the topology's, found {both[0]!r}, which the "
            "topology brings along. Fix: leave it out"
        )
    return {**own, **listed}


def _name(tool: ToolInput) -> str:
    return str(getattr(tool, "name", "") or getattr(tool, "__name__", "tool"))
