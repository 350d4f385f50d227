"""Reader: parse a topology file into a `Document`, or report all of its problems.

The reader refuses unknown keys. It evaluates no code from the file and imports no module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from ..graph import NodeGraph
from ..node_protocol import flaw_of
from ..rules import Rules, TemporalRule, describe_rule
from .compose import bytes_of, compose, text_at
from .conditions import read_rules
from .diagnostics import Diagnostics, ParseError
from .document import AgentEntry, AnyNode, Document
from .entries import NODES_MAX, Servers, read_nodes, read_servers
from .includes import IncludePlace
from .models import (
    Form,
    Model,
    Nodes,
    Reading,
    entries_of,
    model_of,
    parse,
    parse_fields,
    validated,
)
from .references import note_gate_rules, note_rules, note_tools
from .registration import Registry
from .schema import AGENT, GRAPH, IGNORE, SOURCES, TOPOLOGY
from .table import Rows, made_graph, read_rows
from .tree import Entry, Fields, Items, Mark, Value, entry_at, value_at

__all__ = ["read_path", "read_text"]

T = TypeVar("T")

FIELDS: Final = {
    key: TypeAdapter[Any](TOPOLOGY.forms[key])
    for key in ("graphloop", "name", "description", "instructions", "start", "tools", "prompt")
}
LISTED: Final = TypeAdapter(list[object])


def _keys_of(model: Model) -> Model:
    """Return a model with the same keys and required keys, which accepts any values."""
    return model_of("keys", dict.fromkeys(model.forms, Any), model.needed)


GRAPH_KEYS: Final = _keys_of(GRAPH)
TOPOLOGY_KEYS: Final = _keys_of(TOPOLOGY)


def read_path(path: Path, registry: Registry, state_type: type[Any] | None = None) -> Document:
    """Read a topology file, and the files that it includes, into a document.

    `state_type` is the type of its state, not of its agents'; None for what its nodes declare.

    Raises:
        TopologyError: a file is invalid; the error lists every problem, also of included files.
    """
    own = path.resolve()
    place = IncludePlace(own.parent, own, (own,))
    diagnostics = Diagnostics(str(path))
    reading = Reading(diagnostics, registry, state_type=state_type)
    return _read_whole(diagnostics, lambda: _read_file(own, place, reading))


def read_text(
    text: str | bytes,
    registry: Registry,
    title: str = "topology",
    state_type: type[Any] | None = None,
) -> Document:
    """Read a topology from a text, which cannot include files; see `read_path`.

    Raises:
        TopologyError: the text is invalid; the error lists every problem.
    """
    diagnostics = Diagnostics(title)
    reading = Reading(diagnostics, registry, state_type=state_type)
    return _read_whole(diagnostics, lambda: _read_text(text, IncludePlace(), reading))


def _read_whole(diagnostics: Diagnostics, read: Callable[[], Document]) -> Document:
    try:
        return read()
    except ParseError:
        diagnostics.refuse()
        raise AssertionError("the diagnostics hold the reason") from None


def _read_file(path: Path, place: IncludePlace, reading: Reading) -> Document:
    content = bytes_of(path, reading.diagnostics)
    return _read_text(content, place, reading, must_be_json=path.suffix == ".json")


def _read_text(
    text: str | bytes, place: IncludePlace, reading: Reading, *, must_be_json: bool = False
) -> Document:
    diagnostics = reading.diagnostics
    tree = compose(text_at(text, diagnostics), diagnostics, must_be_json=must_be_json)
    return _Reader(place, reading, tree).document(TOPOLOGY_KEYS)


class _Reader:
    """Builds a document from the tree of a file, or of a graph written inside a file.

    After a problem, the reader continues, so that one pass reports all problems. It checks
    references between the parts last, and only if all parts could be read.
    """

    def __init__(self, place: IncludePlace, reading: Reading, tree: Value) -> None:
        self._place = place
        self._reading = reading
        self._diagnostics = reading.diagnostics
        self._tree = tree

    def document(self, keys: Model) -> Document:
        self._note_keys(keys)
        agents = self._read_key("agents", self._read_agents, dict[str, AgentEntry]())
        graphs = {name: agent.document and agent.document.graph for name, agent in agents.items()}
        self._reading = reading = replace(self._reading, agents=graphs)
        values = {key: self._validated(key) for key in FIELDS}
        servers = self._read_key(
            "mcp", lambda value: read_servers(value, self._place, reading), Servers()
        )
        nodes = self._read_key("nodes", lambda value: read_nodes(value, reading), Nodes())
        rows = self._read_key("edges", lambda value: read_rows(value, nodes, reading), Rows())
        start = self._read_start(values["start"], nodes)
        rules = self._read_key("rules", self._read_rules, dict[TemporalRule, Mark]())
        ignore = self._read_key("ignore", self._read_ignore, dict[tuple[str, str], str]())
        self._refuse_any()
        assert start is not None, "a start that is not known is a problem"
        document = Document(
            graph=self._read_graph(values["name"], start, rows, rules),
            description=values["description"],
            instructions=values["instructions"],
            prompt=values["prompt"],
            tools=tuple(values["tools"]),
            agents=agents,
            rules=Rules(tuple(rules)),
            ignore=ignore,
        ).with_servers(servers)
        self._note_references(document, rules)
        self._refuse_any()
        return document

    def _note_keys(self, keys: Model) -> None:
        """Report unknown and missing keys of the tree.

        Raises:
            ParseError: the tree is not a mapping.
        """
        entries = self._tree.entries if isinstance(self._tree, Fields) else None
        try:
            written = None if entries is None else {entry.key: None for entry in entries}
            validated(keys, written, self._reading)
        except ValidationError as error:
            self._diagnostics.report(error, self._tree)
        if entries is None:
            raise ParseError("a topology")

    def _read_key(self, key: str, read: Callable[[Value], T], default: T) -> T:
        """Return `read(value)` for the key's value; `default` if it is missing or unreadable."""
        entry = entry_at(self._tree, key)
        if entry is None:
            return default
        try:
            return read(entry.value)
        except ParseError:
            return default

    def _validated(self, key: str) -> Form:
        """Return the validated value of a key; an empty text if it is missing or unreadable."""
        return self._read_key(key, lambda value: parse(FIELDS[key], value, self._reading, key), "")

    def _refuse_any(self) -> None:
        if self._diagnostics.problems:
            raise ParseError("a part of it")

    def _read_graph(
        self, name: str, start: AnyNode, rows: Rows, rules: dict[TemporalRule, Mark]
    ) -> NodeGraph[Any]:
        lines = {describe_rule(rule): mark.line for rule, mark in rules.items()}
        return made_graph(name, start, rows, (self._tree, lines), self._reading)

    def _note_references(self, document: Document, rules: dict[TemporalRule, Mark]) -> None:
        """Report unknown names in tools and rules, and a topology with too many nodes."""
        registry = self._reading.registry
        note_tools(self._tree, document, self._diagnostics)
        nodes = value_at(self._tree, ("nodes",))
        note_gate_rules(nodes, document, registry, self._diagnostics)
        note_rules(rules, document, registry, self._diagnostics)
        if document.size > NODES_MAX:
            problem = (
                f"expected at most {NODES_MAX:,} nodes, with those of its agents once for each "
                f"agent, found {document.size:,}."
            )
            fix = "take agents out, or hand them to each run (`given: true`)."
            self._diagnostics.note(self._tree.mark, problem, fix)

    def _read_start(self, name: str, nodes: Nodes) -> AnyNode | None:
        if name and name not in nodes:
            problem = f"`start`: there is no node {name!r}.{self._diagnostics.nearest(name, nodes)}"
            mark = value_at(self._tree, ("start",)).mark
            self._diagnostics.note(mark, problem, "name one of the nodes.")
        return nodes.get(name)

    def _read_agents(self, value: Value) -> dict[str, AgentEntry]:
        agents: dict[str, AgentEntry] = {}
        for entry in entries_of(value, self._reading, "agents"):
            if flaw := flaw_of(entry.key):
                problem = f"{entry.key!r:.60} is not an agent's name: {flaw}."
                self._diagnostics.note(entry.mark, problem, "choose another.")
            try:
                agents[entry.key] = self._read_agent(entry)
            except ParseError:
                agents[entry.key] = AgentEntry()  # References to it stay valid.
        return agents

    def _read_agent(self, entry: Entry) -> AgentEntry:
        sources = [key for key in SOURCES if entry_at(entry.value, key)]
        if len(sources) != 1 and isinstance(entry.value, Fields):
            self._diagnostics.note(
                entry.value.mark,
                f"agent {entry.key!r}: expected one of include, graph and given, found "
                f"{', '.join(sources) or 'none'}.",
                "write `include: file.yaml`, `graph: {…}` or `given: true`.",
            )
        values = parse_fields(AGENT, entry.value, self._reading, entry.key)
        if len(sources) != 1:
            raise ParseError("an agent")
        source, document = value_at(entry.value, (sources[0],)), None
        if "graph" in values:
            reading = replace(self._reading, agents={}, state_type=None)
            inner = _Reader(self._place, reading, source)
            document = inner.document(GRAPH_KEYS)
        elif "include" in values:
            document = self._read_included(values["include"], source.mark)
        given = {key: values[key] for key in values.keys() - SOURCES}
        return AgentEntry(document, **given)

    def _read_included(self, name: str, mark: Mark) -> Document:
        path, place = self._place.find(name, mark, self._diagnostics)
        if path not in place.read:
            place.read[path] = None
            title = str(Path(self._diagnostics.file).parent / name)
            inner = Diagnostics(title, self._diagnostics.problems)
            place.read[path] = _read_file(path, place, Reading(inner, self._reading.registry))
        document = place.read[path]
        if document is None:
            raise ParseError("it could not be read before")
        return document

    def _items_of(self, value: Value, name: str) -> tuple[Value, ...]:
        parse(LISTED, value, self._reading, name)
        return value.items if isinstance(value, Items) else ()

    def _read_rules(self, value: Value) -> dict[TemporalRule, Mark]:
        return read_rules(self._items_of(value, "rules"), self._diagnostics)

    def _read_ignore(self, value: Value) -> dict[tuple[str, str], str]:
        """Return the reasons for ignoring findings, by node name and finding code."""
        reasons: dict[tuple[str, str], str] = {}
        for item in self._items_of(value, "ignore"):
            try:
                values = parse_fields(IGNORE, item, self._reading, "ignore")
            except ParseError:
                continue
            place = values.get("node", ""), values["code"]
            if place in reasons:
                problem = f"{place[1]} of {place[0] or 'the graph'!r} is set aside twice."
                self._diagnostics.note(item.mark, problem, "remove one of the two.")
            reasons[place] = values["reason"]
        return reasons
