"""Reader: a topology's file as a `Document`, or all problems of it and of its includes.

It knows every key, evaluates nothing and imports no module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from ..graph import END, NodeGraph
from ..node_protocol import NAME_MAX, flaw_of, node_flaw_of
from ..rules import Rules
from .compose import bytes_of, compose, text_at
from .conditions import lines_of_rules, read_rules, rule_words
from .diagnostics import Diagnostics, ParseError
from .document import AgentEntry, Document
from .includes import IncludeCache, IncludePlace
from .models import (
    AnyNode,
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
from .node_models import NODE
from .references import Declared, brought_tools, note_uncallable, note_unknown_tools, read_ignored
from .registration import RegisteredNames
from .schema import AGENT, GRAPH, SOURCES, TOPOLOGY
from .table import Rows, made_graph, read_rows
from .tree import Entry, Fields, Items, Mark, Value, entry_at, plain_data, value_at

__all__ = ["NODES_MAX", "read_path", "read_text"]

NODES_MAX: Final = 2_000
"""The nodes of a topology, with those of its agents, once for each agent."""

T = TypeVar("T")

FIELDS: Final = {
    key: TypeAdapter[Any](TOPOLOGY.forms[key])
    for key in ("graphloop", "name", "description", "instructions", "start", "tools", "prompt")
}
LISTED: Final = TypeAdapter(list[object])


def _keys_of(model: Model) -> Model:
    """Return the model that knows the keys of another, and takes any values."""
    return model_of("keys", dict.fromkeys(model.forms, Any), model.needed)


GRAPH_KEYS: Final = _keys_of(GRAPH)
TOPOLOGY_KEYS: Final = _keys_of(TOPOLOGY)


def read_path(path: Path, names: RegisteredNames) -> Document:
    """Return the document of a file.

    Raises:
        TopologyError: with every problem of the file and of those that it includes.
    """

    def read(diagnostics: Diagnostics) -> Document:
        if "\0" in str(path):
            found = "a NUL character stands in the path."
            raise diagnostics.error(Mark(1, 1), found, "name a file.")
        resolved = path.resolve()
        place = IncludePlace(IncludeCache(resolved.parent), resolved, (resolved,))
        return _file(path, place, diagnostics, names)

    return _whole(Diagnostics(str(path)), read)


def read_text(text: str | bytes, names: RegisteredNames, title: str = "topology") -> Document:
    """Return the document of a text, which can include nothing.

    Raises:
        TopologyError: with every problem of the text.
    """
    place = IncludePlace(IncludeCache(None), None)
    return _whole(Diagnostics(title), lambda to: _text(text, place, to, names))


def _whole(diagnostics: Diagnostics, read: Callable[[Diagnostics], Document]) -> Document:
    try:
        return read(diagnostics)
    except ParseError:
        diagnostics.refuse()
        raise AssertionError("the diagnostics hold the reason") from None


def _file(
    path: Path, place: IncludePlace, diagnostics: Diagnostics, names: RegisteredNames
) -> Document:
    content = bytes_of(path, diagnostics)
    return _text(content, place, diagnostics, names, must_be_json=path.suffix == ".json")


def _text(
    given: str | bytes,
    place: IncludePlace,
    diagnostics: Diagnostics,
    names: RegisteredNames,
    *,
    must_be_json: bool = False,
) -> Document:
    tree = compose(text_at(given, diagnostics), diagnostics, must_be_json=must_be_json)
    document = _Reader(place, Reading(diagnostics, names)).document(tree, TOPOLOGY_KEYS)
    _refuse_any(diagnostics)
    return document


def _refuse_any(diagnostics: Diagnostics) -> None:
    if diagnostics.problems:
        raise ParseError("a part of it")


class _Reader:
    """Reads one graph; `to` takes the problems."""

    def __init__(self, place: IncludePlace, to: Reading) -> None:
        self._place = place
        self._to = to
        self._diagnostics = to.diagnostics
        self._unread: set[str] = set()

    def document(self, tree: Value, keys: Model) -> Document:
        entries = self._entries(tree, keys)
        agents = self._part(entries, "agents", self._agents, dict[str, AgentEntry]())
        documents = {name: agent.document for name, agent in agents.items()}
        graphs = {name: one.graph if one else None for name, one in documents.items()}
        self._to = to = replace(self._to, agents=graphs)
        said = {key: self._said(entries, key) for key in FIELDS}
        nodes = self._part(entries, "nodes", self._nodes, Nodes())
        rows = self._part(entries, "edges", lambda value: read_rows(value, nodes, to), Rows())
        start = self._start(entries, said["start"], nodes)
        declared = Declared(nodes, agents, tuple(said["tools"]))
        if declared.tools:
            note_uncallable(entries["tools"].value, declared, self._unread, to)
        if "nodes" in entries:
            note_unknown_tools(entries["nodes"].value, declared, to)
        document = Document(
            description=said["description"],
            instructions=said["instructions"],
            prompt=said["prompt"],
            tools=tuple(declared.tools),
            agents=agents,
            rules=self._rules(entries, said["name"], declared),
            ignore=self._part(
                entries, "ignore", lambda value: read_ignored(value, declared, to), {}
            ),
            # Last of all: it is made only if nothing is wrong with the rest.
            graph=self._graph(tree, said["name"], start, rows, entries),
        )
        if document.size > NODES_MAX:
            raise self._diagnostics.error(
                tree.mark,
                f"expected at most {NODES_MAX:,} nodes, with those of its agents once for each "
                f"agent; found {document.size:,}.",
                "take agents out, or hand them to each run (`given: true`).",
            )
        return document

    def _entries(self, tree: Value, keys: Model) -> dict[str, Entry]:
        """Return the entries by key; unknown and missing keys are noted."""
        entries = tree.entries if isinstance(tree, Fields) else None
        try:
            given = None if entries is None else {entry.key: None for entry in entries}
            validated(keys, given, self._to)
        except ValidationError as error:
            self._diagnostics.report(error, tree)
        if entries is None:
            raise ParseError("a topology")
        return {entry.key: entry for entry in entries}

    def _said(self, entries: Mapping[str, Entry], key: str) -> Form:
        """Return the scalar at a key; "" if it is missing or unreadable, which is reported."""
        return self._part(entries, key, lambda value: parse(FIELDS[key], value, self._to, key), "")

    def _part(
        self, entries: Mapping[str, Entry], key: str, read: Callable[[Value], T], without: T
    ) -> T:
        """Return the part at a key; `without` if it is missing or unreadable, which is reported."""
        if key not in entries:
            return without
        try:
            return read(entries[key].value)
        except ParseError:
            return without

    def _graph(
        self,
        tree: Value,
        name: str,
        start: AnyNode | None,
        rows: Rows,
        entries: Mapping[str, Entry],
    ) -> NodeGraph[Any]:
        _refuse_any(self._diagnostics)
        assert start is not None, "a start that is not known is a problem"
        written = entries["rules"].value if "rules" in entries else None
        lines = lines_of_rules(written.items) if isinstance(written, Items) else {}
        place = tree.mark, entries["edges"].value, lines
        return made_graph(name, start, rows, place, self._diagnostics)

    def _nodes(self, value: Value) -> Nodes:
        entries = entries_of(value, self._to, "nodes")
        if not entries:
            found = "`nodes`: expected at least one node, found none."
            self._diagnostics.note(value.mark, found, "add `name: {use: …}`.")
        if len(entries) > NODES_MAX:
            found = f"`nodes`: expected at most {NODES_MAX:,} nodes, found {len(entries):,}."
            fix = "give parts of it to agents of their own."
            raise self._diagnostics.error(value.mark, found, fix)
        return {entry.key: self._node(entry) for entry in entries}

    def _node(self, entry: Entry) -> AnyNode | None:
        flaw = "it is where runs end" if entry.key == END.value else node_flaw_of(entry.key)
        if flaw:
            fix = f"choose a word of at most {NAME_MAX} characters, other than END."
            found = f"{entry.key!r:.60} is not a node's name: {flaw}."
            self._diagnostics.note(entry.mark, found, fix)
        if (name := entry_at(entry.value, "name")) is not None:
            found = f"`name`: the key of the node is its name, {entry.key!r:.60}."
            self._diagnostics.note(name.mark, found, "remove the key.")
        given = plain_data(entry.value)
        if isinstance(given, dict):
            # A name that is wrong is noted already.
            given["name"] = "node" if flaw else entry.key
        try:
            return NODE.validate_python(given, context=self._to)
        except ValidationError as error:
            self._diagnostics.report(error, entry.value, entry.key)
            return None

    def _start(self, entries: Mapping[str, Entry], name: str, nodes: Nodes) -> AnyNode | None:
        if name and name not in nodes:
            hint = self._diagnostics.nearest(name, nodes)
            found = f"`start`: there is no node {name!r}.{hint}"
            self._diagnostics.note(entries["start"].value.mark, found, "name one of the nodes.")
        return nodes.get(name)

    def _agents(self, value: Value) -> dict[str, AgentEntry]:
        agents: dict[str, AgentEntry] = {}
        for entry in entries_of(value, self._to, "agents"):
            if flaw := flaw_of(entry.key):
                found = f"{entry.key!r:.60} is not an agent's name: {flaw}."
                self._diagnostics.note(entry.mark, found, "choose another.")
            # An agent that cannot be read is known all the same: its problem is told once.
            agents[entry.key] = AgentEntry()
            try:
                agents[entry.key] = self._agent(entry)
            except ParseError:
                self._unread.add(entry.key)
        return agents

    def _agent(self, entry: Entry) -> AgentEntry:
        sources = [key for key in SOURCES if entry_at(entry.value, key)]
        if len(sources) != 1 and isinstance(entry.value, Fields):
            self._diagnostics.note(
                entry.value.mark,
                f"agent {entry.key!r}: expected one of include, graph and given, found "
                f"{', '.join(sources) or 'none'}.",
                "write `include: file.yaml`, `graph: {…}` or `given: true`.",
            )
        given = parse_fields(AGENT, entry.value, self._to, entry.key)
        if len(sources) != 1:
            raise ParseError("an agent")
        source, document = value_at(entry.value, (sources[0],)), None
        if "graph" in given:
            inner = _Reader(self._place, replace(self._to, agents={}))
            document = inner.document(source, GRAPH_KEYS)
        elif "include" in given:
            document = self._included(given["include"], source.mark)
        return AgentEntry(document, given.get("description", ""), given.get("takes_over", False))

    def _included(self, named: str, mark: Mark) -> Document:
        path, place = self._place.find(named, mark, self._diagnostics)
        cache = place.cache
        if path not in cache.read:
            cache.read[path] = None
            title = str(Path(self._diagnostics.file).parent / named)
            inner = Diagnostics(title, self._diagnostics.problems)
            cache.read[path] = _file(path, place, inner, self._to.names)
        document = cache.read[path]
        if document is None:
            raise ParseError("it could not be read before")
        return document

    def _rules(self, entries: Mapping[str, Entry], graph: str, declared: Declared) -> Rules:
        words = rule_words(graph, declared.nodes, brought_tools(declared, self._to.names))

        def read(value: Value) -> Rules:
            parse(LISTED, value, self._to, "rules")
            items = value.items if isinstance(value, Items) else ()
            return read_rules(items, self._diagnostics, words=words)

        return self._part(entries, "rules", read, Rules())
