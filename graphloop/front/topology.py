"""Topology: a graph that was written down, with all that its file names: load it, dump it.

    graph = load("support.yaml")
    result = await graph.run(None, model="anthropic:claude-opus-4-8", prompt="…")
    print(dump(graph))

Tools, agents, predicates and functions are brought along by name, so a run is given a model and
nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast, final

from .. import graph as kernel
from ..drivers.ports import Callback
from ..errors import ConfigError
from ..graph import END, EndType
from ..node_protocol import Node
from ..nodes.critique import Critique
from ..nodes.gate import Gate
from ..nodes.model_call import ModelCall
from ..nodes.router import Router
from ..outcomes import Outcome
from ..policy import Condition, Policy
from ..temporal import Rules
from ..topology.document import Document, document_of, inner_nodes
from ..topology.reader import read_path, read_text
from ..topology.registration import Names, Registry, registry
from ..topology.writer import data_of, fingerprint_of, yaml_of
from .carried import asks_model
from .child import AgentTool
from .graph import Graph
from .options import RunOptions, ToolInput, Tools
from .runner import Runner
from .told import Model

if TYPE_CHECKING:
    from ..proofs.report import Report
    from ..proofs.suppression import Ignore

__all__ = ["Topology", "dump", "fingerprint", "load"]

PASSED_ON: Final = ("api_key", "base_url", "timeouts", "retries", "price", "prices", "clock")
"""The options of a run that hold for the agents of its file as well: how the model is asked."""


@final
class Topology(Graph[Any]):
    """A graph that was written down. Make one with `load`.

    Attributes:
        document: all that its file says.
    """

    def __init__(self, document: Document, names: Names) -> None:
        graph = document.graph
        super().__init__(graph.name, graph.nodes[graph.start], _rows(graph))
        self.document = document
        self._names = names
        self._agents = {
            name: Topology(one.document, names)
            for name, one in document.agents.items()
            if one.document is not None
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
        """What is asked when nobody asks anything else; empty for nothing."""
        return self.document.prompt

    @property
    def needs_model(self) -> bool:
        """Whether a node asks a model, or one of an agent that the file says itself."""
        return asks_model(self) or any(one.needs_model for one in self._agents.values())

    @property
    def rules(self) -> Rules:
        """The temporal rules of the file."""
        return self.document.rules

    def check(self, *, rules: Rules | Iterable[Rules] = (), ignore: Ignore | None = None) -> Report:
        """Prove what can be proven of the graph, and the rules of its file; see `Graph.check`."""
        return super().check(rules=rules, ignore={**self.document.ignore, **(ignore or {})})

    def _runner(
        self,
        model: Model | None,
        callbacks: Mapping[str, Callback[Any]] | None,
        options: RunOptions,
        child_state: object = None,
    ) -> Runner[Any]:
        tools, agents = self._tools(model, options), self._others(model, options)
        merged: RunOptions = {**options, "tools": _joined(tools, options.get("tools", ()))}
        merged["agents"] = {**agents, **options.get("agents", {})}
        if self.document.instructions:
            merged.setdefault("instructions", self.document.instructions)
        functions = {**self._functions(), **(callbacks or {})}
        runner = super()._runner(model, functions, merged, child_state)
        for label in _labels(self):
            runner.world.add_model(label)
        return runner

    def _policies(self, outer: Policy | None) -> tuple[Policy, ...]:
        """Return the conditional rules of the gates, with the predicates that they name.

        Rules without a condition need nobody to look at them, and one before another would keep
        the predicate of a second gate from being asked.
        """
        rules = [
            rule
            for node in inner_nodes(self)
            if isinstance(node, Gate)
            for rule in node.rules
            if rule.condition
        ]
        if not rules:
            return super()._policies(outer)
        found = {one.condition: self._found("predicate", one.condition) for one in rules}
        # The registry has looked at each: they are functions.
        own = Policy(tuple(rules), cast("dict[str, Condition]", found))
        return (*super()._policies(outer), own)

    def _functions(self) -> dict[str, Callback[Any]]:
        names = {name: None for node in inner_nodes(self) for name in _callbacks(node)}
        found = {name: self._names.find("function", name) for name in names}
        # The registry has looked at each: they are functions. A node that was made in Python
        # brings its own.
        return cast(
            "dict[str, Callback[Any]]",
            {name: one for name, one in found.items() if one is not None},
        )

    def _tools(self, model: Model | None, options: RunOptions) -> dict[str, ToolInput]:
        return {
            name: self._agent(name, model, options)
            if name in self._agents
            else cast("ToolInput", self._found("tool", name))  # A toolbox looks at it.
            for name in self.document.tools
        }

    def _others(self, model: Model | None, options: RunOptions) -> dict[str, AgentTool]:
        """Return the agents that only nodes know."""
        others = [name for name in self._agents if name not in self.document.tools]
        return {name: self._agent(name, model, options) for name in others}

    def _agent(self, name: str, model: Model | None, options: RunOptions) -> AgentTool:
        entry = self.document.agents[name]
        given: Mapping[str, object] = {**options}
        # A TypedDict loses its type where keys are chosen; each has the type that it had.
        passed = cast("RunOptions", {key: given[key] for key in PASSED_ON if key in given})
        return self._agents[name].as_tool(
            None,
            model=model,
            name=name,
            description=entry.description,
            takes_over=entry.takes_over,
            **passed,
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
        source: the path of the file; or the text itself, which has a line break or begins with a
            brace, and can include no files.
        registry: what the file may name beside the library's nodes and what installed packages
            offer.

    Raises:
        TopologyError: with every problem found, each with its file, line and column.
    """
    names = Names(registry)
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith("{")):
        return Topology(read_text(source, names), names)
    return Topology(read_path(Path(source), names), names)


def dump(graph: kernel.Graph[Any], *, registry: Registry = registry) -> str:
    """Return a graph as YAML that `load` reads as an equal graph.

    What a topology includes stands in the text itself. An agent that is only known by name is
    `given`: it is handed to each run.

    Args:
        graph: a graph, from a file or from Python.
        registry: what the text may name.

    Raises:
        GraphError: naming each node that no file can hold, and why.
    """
    return yaml_of(data_of(_document(graph), Names(registry)))


def fingerprint(graph: kernel.Graph[Any], *, registry: Registry = registry) -> str:
    """Return the SHA-256 of what a graph says, however it was written.

    Args:
        graph: a graph, from a file or from Python.
        registry: what its file may name.

    Raises:
        GraphError: naming each node that no file can hold, and why.
    """
    return fingerprint_of(_document(graph), Names(registry))


def _document(graph: kernel.Graph[Any]) -> Document:
    return graph.document if isinstance(graph, Topology) else document_of(graph)


def _rows(graph: kernel.Graph[Any]) -> kernel.Edges[Any]:
    """Return the table of a graph as it was given."""
    to: dict[str, Node[Any, Outcome] | EndType] = {**graph.nodes, "END": END}
    return {
        graph.nodes[name]: {outcome: to[target] for outcome, target in row.items()}
        for name, row in graph.table.items()
    }


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


def _callbacks(node: object) -> Iterator[str]:
    """Yield the names of the functions that a node invokes."""
    one = getattr(node, "callback", "")
    if isinstance(one, str) and one:
        yield one
    for check in getattr(node, "checks", ()):
        yield check.callback


def _labels(graph: kernel.Graph[Any]) -> dict[str, None]:
    """Return the models that nodes name."""
    labels: dict[str, None] = {}
    for node in inner_nodes(graph):
        if isinstance(node, ModelCall | Critique | Router) and node.model:
            labels[node.model] = None
        if isinstance(node, ModelCall):
            labels |= dict.fromkeys(node.fallbacks)
    return labels
