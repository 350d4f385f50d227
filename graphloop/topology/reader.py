"""Reader: a topology's file as a `Document`, or all that is wrong with it and its includes.

Every key has to be known, and means what it says: nothing is evaluated, no module is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from ..errors import GraphError
from ..graph import END, NodeGraph
from ..node_protocol import NAME_MAX, Node, flaw_of, node_flaw_of
from ..outcomes import Outcome, outcome_name
from ..rules import Rules
from ..rules import Vocabulary as Words
from ..table_source import TableSource
from ..tools import legal_name
from .compose import compose, is_json
from .diagnostics import Diagnostics, ParseError
from .document import AgentEntry, Document
from .ignored import Findable, read_ignored
from .includes import IncludeCache, IncludePlace
from .models import Form, Model, Reading, entries_of, model_of, parse, parse_fields, validated
from .node_models import NODE
from .registration import RegisteredNames
from .ruled_tools import brought_tools, refuse_unruled
from .schema import AGENT, GRAPH, SOURCES, TOPOLOGY
from .source import bytes_of, text_at
from .table import Nodes, Rows, lines_of, read_rows
from .temporal_form import lines_of_rules, read_rules
from .tree import Entry, Fields, Items, Mark, Value, entry_at, plain_data, value_at

__all__ = ["NODES_MAX", "read_path", "read_text"]

NODES_MAX: Final = 2_000
"""How many nodes a topology has at most, with those of its agents, once for each agent."""

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
    """Return what a file says.

    Raises:
        TopologyError: with every problem of the file and of those that it includes.
    """
    diagnostics = Diagnostics(str(path))
    try:
        if "\0" in str(path):
            found = "a NUL character stands in the path."
            raise diagnostics.error(Mark(1, 1), found, "name a file.")
        resolved = path.resolve()
        place = IncludePlace(IncludeCache(resolved.parent), resolved, (resolved,))
        return _file(path, place, diagnostics, names)
    except ParseError:
        diagnostics.refuse()
        raise AssertionError("the diagnostics hold the reason") from None


def read_text(text: str | bytes, names: RegisteredNames, title: str = "topology") -> Document:
    """Return what a text says, which is read as JSON if it is; it can include nothing.

    Raises:
        TopologyError: with every problem of the text.
    """
    diagnostics = Diagnostics(title)
    try:
        return _text(text, IncludePlace(IncludeCache(None), None), diagnostics, names)
    except ParseError:
        diagnostics.refuse()
        raise AssertionError("the diagnostics hold the reason") from None


def _file(
    path: Path, place: IncludePlace, diagnostics: Diagnostics, names: RegisteredNames
) -> Document:
    content = bytes_of(path, diagnostics)
    return _text(content, place, diagnostics, names, as_json=path.suffix == ".json")


def _text(
    given: str | bytes,
    place: IncludePlace,
    diagnostics: Diagnostics,
    names: RegisteredNames,
    *,
    as_json: bool | None = None,
) -> Document:
    text = text_at(given, diagnostics)
    tree = compose(text, diagnostics, as_json=is_json(text) if as_json is None else as_json)
    document = _Reader(place, Reading(diagnostics, names)).document(tree, TOPOLOGY_KEYS)
    _refuse_any(diagnostics)
    return document


def _refuse_any(diagnostics: Diagnostics) -> None:
    if diagnostics.problems:
        raise ParseError("a part of it")


class _Reader:
    """Reads one graph; `to` takes what is wrong with it."""

    def __init__(self, place: IncludePlace, to: Reading) -> None:
        self._place = place
        self._to = to
        self._diagnostics = to.diagnostics
        self._unread: set[str] = set()

    def document(self, tree: Value, keys: Model) -> Document:
        entries = self._entries(tree, keys)
        agents = self._part(entries, "agents", self._agents, dict[str, AgentEntry]())
        graphs = {
            name: None if agent.document is None else agent.document.graph
            for name, agent in agents.items()
        }
        self._to = to = replace(self._to, agents=graphs)
        said = {key: self._said(entries, key) for key in FIELDS}
        nodes = self._part(entries, "nodes", self._nodes, Nodes())
        rows = self._part(entries, "edges", lambda value: read_rows(value, nodes, to), Rows())
        start = self._start(entries, said["start"], nodes)
        tools: tuple[str, ...] = tuple(said["tools"])
        if tools:
            self._check_tools(entries["tools"].value, tools, agents)
        if "nodes" in entries:
            refuse_unruled(entries["nodes"].value, tools, agents, nodes, to)
        words = _words(said["name"], nodes, tuple(brought_tools(tools, agents, to.names)))
        findable = Findable(nodes, agents, tools)
        document = Document(
            description=said["description"],
            instructions=said["instructions"],
            prompt=said["prompt"],
            tools=tools,
            agents=agents,
            rules=self._part(entries, "rules", lambda value: self._rules(value, words), Rules()),
            ignore=self._part(
                entries, "ignore", lambda value: read_ignored(value, findable, to), {}
            ),
            # Last of all: it is made only if nothing is wrong with the rest.
            graph=self._graph(tree, (said["name"], start, rows), entries),
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
        """Return what stands at each key; unknown and missing ones are noted."""
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
        """Return a simple value; an empty one where there is none."""
        return self._part(entries, key, lambda value: parse(FIELDS[key], value, self._to, key), "")

    def _part(
        self, entries: Mapping[str, Entry], key: str, read: Callable[[Value], T], without: T
    ) -> T:
        """Return what stands at a key; `without` where nothing does, or nothing that is read."""
        if key not in entries:
            return without
        try:
            return read(entries[key].value)
        except ParseError:
            return without

    def _graph(
        self,
        tree: Value,
        parts: tuple[str, Node[Any, Outcome] | None, Rows],
        entries: Mapping[str, Entry],
    ) -> NodeGraph[Any]:
        name, start, rows = parts
        _refuse_any(self._diagnostics)
        assert start is not None, "a start that is not known is a problem"
        try:
            graph: NodeGraph[Any] = NodeGraph(name, start, rows)
        except GraphError as error:
            for problem in error.problems:
                self._diagnostics.note(tree.mark, f"{problem.place}: {problem.found}", problem.fix)
            raise ParseError("the table") from error
        lines = lines_of(entries["edges"].value, graph)
        written = entries["rules"].value if "rules" in entries else None
        rules = lines_of_rules(written.items) if isinstance(written, Items) else {}
        graph.source = TableSource(self._diagnostics.file, tree.mark.line, lines, rules)
        return graph

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

    def _node(self, entry: Entry) -> Node[Any, Outcome] | None:
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

    def _start(
        self, entries: Mapping[str, Entry], name: str, nodes: Nodes
    ) -> Node[Any, Outcome] | None:
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
            # One that cannot be read is known all the same: its problem is told once.
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

    def _check_tools(
        self, value: Value, tools: tuple[str, ...], agents: Mapping[str, AgentEntry]
    ) -> None:
        """Note tools that stand there twice, and agents that no model can call."""
        if len(set(tools)) < len(tools):
            found = f"`tools`: a tool stands here twice: {', '.join(tools)}."
            self._diagnostics.note(value.mark, found, "remove one of the two.")
        for name in tools:
            known = None if name in self._unread else agents.get(name)
            if known is not None and (known.document is None or not known.description):
                found = f"agent {name!r} is called as a tool, and models know nothing of it."
                fix = "give it a `description`; one that is `given` is no tool of the file."
                self._diagnostics.note(value.mark, found, fix)
            if known is not None and (legal := legal_name(name)) != name:
                found = f"agent {name!r:.60} is called as a tool, and no tool can have that name."
                self._diagnostics.note(value.mark, found, f"name it {legal!r}.")

    def _rules(self, value: Value, words: Words | None) -> Rules:
        parse(LISTED, value, self._to, "rules")
        return read_rules(
            value.items if isinstance(value, Items) else (), self._diagnostics, words=words
        )


def _words(name: str, nodes: Nodes, tools: tuple[str, ...]) -> Words | None:
    """Return what rules may speak of; None where a node could not be read."""
    known = {node: made.outcomes for node, made in nodes.items() if made is not None}
    if len(known) < len(nodes):
        return None
    outcomes = tuple((node, outcome_name(out)) for node, every in known.items() for out in every)
    return Words(name, (*known, END.value), outcomes, tools)
