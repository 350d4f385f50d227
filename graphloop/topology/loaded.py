"""Topology: a graph that was written down, with all that its file names: load it, dump it.

    graph = load("support.yaml")
    result = await graph.run(None, model="anthropic:claude-opus-4-8", prompt="…")
    print(dump(graph))

The file brings tools, agents, predicates and functions along by name, so a run is given only a
model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, cast, final

from .. import graph as kernel
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
from ..driver import Callback
from ..errors import ConfigError
from ..policy import Condition, Policy
from ..rules import Rules
from ..tools import legal_name
from .document import Document, Ignore, callbacks_of, document_of, graphs_run, rows_with
from .reader import read_path, read_text
from .references import conditional_rules, known_tools
from .registration import Category, RegisteredNames, Registry, registry
from .writer import fingerprint_of, topology_text

__all__ = ["Topology", "dump", "fingerprint", "load"]

NO_PATH: Final = ("\n", "\r", "\0")
"""Signs that no path has: line breaks, which a text has, and a sign that both refuse."""


@final
class Topology(Graph[Any]):
    """A graph that was written down, and its `document`. Make one with `load`."""

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
        super().__init__(
            graph.name, graph.nodes[graph.start], rows_with(graph), ignore=document.ignore
        )
        self.source = graph.source
        self.document = document
        self._names = names
        self._agents = {
            name: _agent_graph(
                _told(agent.document, name, document.ignore), names, made, self.given.get(name)
            )
            for name, agent in document.agents.items()
            if agent.document is not None
        }
        self._tell_graph()
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

    def _tell_graph(self) -> None:
        """Tell the proofs and drawings the rest of the file, beside its table."""
        document = self.document
        found = {name: self._names.find("tool", name) for name in document.tools}
        agents = {
            name: graph_of(tool.opener)
            for name, tool in found.items()
            if isinstance(tool, AgentTool)
        }
        self.tool_names = known_tools(document, self._names)
        self.agents = {**{name: self._agents.get(name) for name in document.agents}, **agents}
        self.called = frozenset(document.tools) & frozenset(self.agents)
        over = [name for name, agent in document.agents.items() if agent.takes_over]
        self.handoffs = self.called & frozenset(over)
        self.run_options = {
            "description": document.description,
            "instructions": document.instructions,
            "prompt": document.prompt,
            "tools": {
                name: tool.tool if isinstance(tool, AgentTool) else tool
                for name, tool in found.items()
            },
            "agents": {name: agent.description for name, agent in document.agents.items()},
        }

    def __eq__(self, other: object) -> bool:
        same = super().__eq__(other)
        if same is not True or not isinstance(other, Topology):
            return same
        return self.document == other.document

    def __hash__(self) -> int:
        return super().__hash__()

    @property
    def prompt(self) -> str:
        """The question of a run that is given none; empty for none."""
        return self.document.prompt

    @property
    def needs_model(self) -> bool:
        """Whether a node asks a model, its own or an agent's."""
        own = [agent for name, agent in self._agents.items() if not self._has_model(name)]
        return asks_model(self) or any(agent.needs_model for agent in own)

    @property
    def rules(self) -> Rules:
        """The temporal rules of the file."""
        return self.document.rules

    @cached_property
    def is_endless(self) -> bool:
        """Whether a cycle of the graph or of its agents has no bound."""
        return bool(self.endless) or any(agent.is_endless for agent in self._agents.values())

    def unbounded(self, reason: str) -> Topology:
        """Return this graph with a reason for each cycle without a bound.

        The reason stands among those of the file, where `ignore` names the nodes of agents, too.
        """
        if not self.is_endless:
            return super().unbounded(reason)
        ignore = {**self.document.ignore, **self._reasons(reason)}
        return self.with_document(replace(self.document, ignore=ignore))

    def _reasons(self, reason: str) -> Ignore:
        """Return the cycles to set aside, named from this file, with the reason."""
        own = super().unbounded(reason).ignore if self.endless else dict[tuple[str, str], str]()
        reasons = {place: why for place, why in own.items() if place not in self.ignore}
        for name, agent in self._agents.items():
            reasons |= _within(name, agent._reasons(reason))
        return reasons

    def with_document(
        self, document: Document, given: Mapping[str, Agent | Topology] | None = None
    ) -> Topology:
        """Return the graph of another document with the same registered names."""
        return Topology(document, self._names, given={**self.given, **(given or {})})

    def with_tools(self, given: Tools = ()) -> Tools:
        """Return the registered tools of the file, and a run's own.

        Raises:
            ConfigError: a name stands twice, or is not registered any more.
        """
        names = [name for name in self.document.tools if name not in self._agents]
        own = {name: cast("ToolInput", self._found("tool", name)) for name in names}
        return _joined(own, given)

    def _has_model(self, name: str) -> bool:
        """Whether an agent asks its own model."""
        return isinstance(self.given.get(name), Agent)

    def _terms(self, options: GraphOptions[Any], own_gates: Policy | None = None) -> RunTerms[Any]:
        agents = {name: self._agent(name, options) for name in self._agents}
        listed = self.document.tools
        tools: dict[str, ToolInput] = {
            # A toolbox looks at a registered tool.
            name: agents.get(name) or cast("ToolInput", self._found("tool", name))
            for name in listed
        }
        others = {name: agent for name, agent in agents.items() if name not in listed}
        merged: GraphOptions[Any] = {**options, "tools": _joined(tools, options.get("tools", ()))}
        merged["agents"] = {**others, **options.get("agents", {})}
        if self.document.instructions:
            merged.setdefault("instructions", self.document.instructions)
        merged["callbacks"] = {**self._functions(), **(options.get("callbacks") or {})}
        terms = super()._terms(merged, own_gates or self._own_gates())
        for name, agent in agents.items():
            if not self._has_model(name):
                terms.own_resources += agent.opener.terms.own_resources
        return terms

    def _own_gates(self) -> Policy | None:
        """Return the conditional rules of the gates, with the predicates that they name.

        Rules without a condition are left out: one before another would keep the predicate of a
        second gate from being asked.
        """
        rules = conditional_rules(self.nodes.values())
        if not rules:
            return None
        found = {rule.condition: self._found("predicate", rule.condition) for rule in rules}
        # The registry takes only functions.
        return Policy(tuple(rules), cast("dict[str, Condition]", found))

    def _functions(self) -> dict[str, Callback[Any]]:
        nodes = self.nodes.values()
        names = dict.fromkeys((*functions_named(nodes), *callbacks_of(nodes)))
        found = {name: self._names.find("function", name) for name in names}
        # The registry takes only functions; a node that was made in Python brings its own.
        known = {name: function for name, function in found.items() if function is not None}
        return cast("dict[str, Callback[Any]]", known)

    def _agent(self, name: str, options: GraphOptions[Any]) -> AgentTool:
        entry, own = self.document.agents[name], self.given.get(name)
        called, said = legal_name(name), entry.description  # Nodes run it by its name in the file.
        if isinstance(own, Agent):
            return own.as_tool(name=called, description=said, takes_over=entry.takes_over)
        graph, over = self._agents[name], entry.takes_over
        passed = passed_on({**options})
        return graph.as_tool(None, name=called, description=said, takes_over=over, **passed)

    def _found(self, category: Category, name: str) -> object:
        found = self._names.find(category, name)
        if found is None:
            raise ConfigError(
                f"graph {self.name!r}: expected the {category} {name!r}, found it is not "
                f"registered any more. Fix: register it with @registry.{category}"
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
            line break or begins with a brace, and can include no files.
        registry: the names that the file may use beside the library's nodes and the entry points
            of installed packages.

    Raises:
        TopologyError: with every problem found, each with its file, line and column.
        ConfigError: neither a path nor a text is given.
    """
    names = RegisteredNames(registry)
    given: object = source  # Callers may be unchecked.
    if not isinstance(given, str | Path):
        raise ConfigError(
            f"load: expected a path or a text, found {type(given).__name__}. Fix: decode bytes "
            "(`.decode()`), and read open files (`.read()`)"
        )
    if isinstance(source, str) and (
        any(sign in source for sign in NO_PATH) or source.lstrip("\ufeff \t").startswith("{")
    ):
        return Topology(read_text(source, names), names)
    return Topology(read_path(Path(source), names), names)


def dump(graph: kernel.Graph[Any], *, registry: Registry = registry) -> str:
    """Return a graph as YAML that `load` reads as an equal graph.

    The text holds all that a topology includes. An agent that is only known by name is `given`:
    each run is given it. `registry` has the names that the text may use.

    Raises:
        GraphError: naming each node that no file can hold, and why; or the reason why the text
            could not be read again, such as too many levels.
    """
    return topology_text(document_of(graph), RegisteredNames(registry))


def fingerprint(graph: kernel.Graph[Any], *, registry: Registry = registry) -> str:
    """Return the SHA-256 of a graph's meaning, however it was written; see `dump`.

    Raises:
        GraphError: naming each node that no file can hold, and why.
    """
    return fingerprint_of(document_of(graph), RegisteredNames(registry))


def _agent_graph(
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


def _within(agent: str, ignore: Ignore) -> dict[tuple[str, str], str]:
    """Return an agent's reasons, their nodes named from its file."""
    return {(f"{agent}/{node}", code): reason for (node, code), reason in ignore.items()}


def _told(document: Document, name: str, ignore: Ignore) -> Document:
    """Return an agent's document with the reasons in the outer file."""
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
    listed = {**given} if isinstance(given, Mapping) else {_name(tool): tool for tool in given}
    twice = sorted(own.keys() & listed.keys())
    if twice:
        raise ConfigError(
            f"`tools`: expected tools besides the topology's, found {twice[0]!r}, which the "
            "topology brings along. Fix: leave it out"
        )
    return {**own, **listed}


def _name(tool: ToolInput) -> str:
    return str(getattr(tool, "name", "") or getattr(tool, "__name__", "tool"))
