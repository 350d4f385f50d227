"""Reader: a topology's file as a `Document`, or all that is wrong with it and its includes.

Every key has to be known, and means what it says: nothing is evaluated, no module is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, cast

from ..errors import GraphError
from ..graph import END, Graph
from ..naming import NAME_MAX, control_in, flaw_of, node_flaw_of
from ..node_protocol import Node
from ..outcomes import Outcome, outcome_name
from ..table_source import TableSource
from ..temporal import Rules
from ..temporal_names import Names as Words
from ..tool_name import legal_name
from .compose import compose
from .document import AgentEntry, Document
from .forms import Flag, Many, Reading, Text, Whole, put_off
from .ignored import Findable, read_ignored
from .includes import Place, Shelf
from .json_text import is_json
from .names import ToolForm
from .node_forms import read_node, read_part
from .problems import Complaints, Mark, Misread
from .record import mapping_of, refuse_unknown
from .registration import Names
from .ruled_tools import brought_tools, refuse_unruled
from .source import bytes_of, text_of
from .table import Rows, lines_of, read_rows
from .temporal_form import lines_of_rules, read_rules
from .tree import Entry, Items, Scalar, Value

__all__ = ["KEYS", "VERSION", "read_path", "read_text"]

VERSION: Final = 1
NODES_MAX: Final = 2_000
"""How many nodes a topology has at most, with those of its agents, once for each agent."""

KEYS: Final[Mapping[str, str]] = {
    "graphloop": "The version of this form: 1.",
    "name": "The graph's name in journals and diagrams.",
    "description": "What it is for.",
    "instructions": "The system message of its models, put before the conversation.",
    "start": "The node that a run begins at.",
    "nodes": "The nodes by name.",
    "edges": "For each node, where each of its outcomes leads: to a node, or to END.",
    "rules": "Temporal rules: what must never happen, or only after something else.",
    "agents": "The agents that nodes run, or models call, by name.",
    "tools": "The registered tools, or agents of this file, that models may call.",
    "prompt": "What is asked when nobody asks anything else.",
    "ignore": "Findings of the checker that are set aside, each with its reason.",
}
NEEDED: Final = ("graphloop", "name", "start", "nodes", "edges")
AGENT_KEYS: Final[Mapping[str, str]] = {
    "include": "The file of the agent's topology, from the folder of this one.",
    "graph": "The agent's topology itself.",
    "given": "true, if the agent is handed to each run (`agents=`).",
    "description": "What it is for; the models that may call it decide by this.",
    "takes_over": "Whether it takes the conversation over when it is called.",
}
T = TypeVar("T")
Nodes: TypeAlias = dict[str, Node[Any, Outcome] | None]
"""The nodes by name; None for one that could not be read."""


def read_path(path: Path, names: Names) -> Document:
    """Return what a file says.

    Raises:
        TopologyError: with every problem of the file and of those that it includes.
    """
    complaints = Complaints(str(path))
    try:
        if "\0" in str(path):
            found = "a NUL character stands in the path."
            raise complaints.misread(Mark(1, 1), found, "name a file.")
        resolved = path.resolve()
        place = Place(Shelf(resolved.parent), resolved, (resolved,))
        return _file(path, place, complaints, names)
    except Misread:
        complaints.refuse()
        raise AssertionError("what is misread is among the complaints") from None


def read_text(text: str | bytes, names: Names, title: str = "topology") -> Document:
    """Return what a text says, which is read as JSON if it is; it can include nothing.

    Raises:
        TopologyError: with every problem of the text.
    """
    complaints = Complaints(title)
    try:
        return _text(text, Place(Shelf(None), None), complaints, names)
    except Misread:
        complaints.refuse()
        raise AssertionError("what is misread is among the complaints") from None


def _file(path: Path, place: Place, complaints: Complaints, names: Names) -> Document:
    content = bytes_of(path, complaints)
    return _text(content, place, complaints, names, json=path.suffix == ".json")


def _text(
    given: str | bytes,
    place: Place,
    complaints: Complaints,
    names: Names,
    *,
    json: bool | None = None,
) -> Document:
    text = text_of(given, complaints)
    tree = compose(text, complaints, json=is_json(text) if json is None else json)
    to = Reading(complaints, names, read_part)
    document = _Reader(place, to).document(tree, top=True)
    put_off(failed=bool(complaints.problems))
    return document


class _Reader:
    """Reads one graph; `to` takes what is wrong with it."""

    def __init__(self, place: Place, to: Reading) -> None:
        self._place = place
        self._to = to
        self._complaints = to.complaints
        self._unread: set[str] = set()

    def document(self, tree: Value, *, top: bool) -> Document:
        entries = {one.key: one for one in mapping_of(tree, "a topology", self._to)}
        refuse_unknown("a topology", KEYS, tuple(entries.values()), self._to)
        self._needed(tree, entries, top=top)
        agents = self._part(entries, "agents", self._agents, dict[str, AgentEntry]())
        graphs = {
            name: None if one.document is None else one.document.graph
            for name, one in agents.items()
        }
        self._to = to = replace(self._to, agents=graphs, ruled=[])
        name = self._name(entries)
        nodes = self._part(entries, "nodes", self._nodes, Nodes())
        rows = self._part(entries, "edges", lambda one: read_rows(one.value, nodes, to), Rows())
        start = self._start(entries, nodes)
        no_tools: tuple[str, ...] = ()
        tools = self._part(entries, "tools", lambda one: self._tools(one, agents), no_tools)
        refuse_unruled(to.ruled, tools, agents, nodes, to)
        words = _words(name, nodes, tuple(brought_tools(tools, agents, to.names)))
        findable = Findable(nodes, agents, tools)
        document = Document(
            description=self._said(entries, "description"),
            instructions=self._said(entries, "instructions"),
            prompt=self._said(entries, "prompt"),
            tools=tools,
            agents=agents,
            rules=self._part(entries, "rules", lambda one: self._rules(one, words), Rules()),
            ignore=self._part(entries, "ignore", lambda one: read_ignored(one, findable, to), {}),
            # Last of all: it is made only if nothing is wrong with the rest.
            graph=self._graph(tree, (name, start, rows), entries),
        )
        if document.size > NODES_MAX:
            raise to.complaints.misread(
                tree.mark,
                f"a topology has at most {NODES_MAX:,} nodes, with those of its agents once for "
                f"each agent; found {document.size:,}.",
                "take agents out, or hand them to each run (`given: true`).",
            )
        return document

    def _needed(self, tree: Value, entries: Mapping[str, Entry], *, top: bool) -> None:
        for key in NEEDED:
            if key not in entries and (top or key != "graphloop"):
                fix = "add `graphloop: 1`." if key == "graphloop" else f"add `{key}: …`."
                self._complaints.note(tree.mark, f"a topology lacks `{key}`.", fix)
        version = entries.get("graphloop")
        if version is None:
            return
        try:
            found = Whole(1).read(version.value, self._to)
        except Misread:
            return
        if found != VERSION:
            self._complaints.note(
                version.value.mark,
                f"version {VERSION} of the form is read here; found {found}.",
                f"write `graphloop: {VERSION}`, or install a newer graphloop.",
            )

    def _said(self, entries: Mapping[str, Entry], key: str) -> str:
        if key not in entries:
            return ""
        try:
            return Text(filled=True).read(entries[key].value, self._to)
        except Misread:
            return ""

    def _part(
        self, entries: Mapping[str, Entry], key: str, read: Callable[[Entry], T], without: T
    ) -> T:
        """Return what stands at a key; `without` where nothing does, or nothing that is read."""
        if key not in entries:
            return without
        try:
            return read(entries[key])
        except Misread:
            return without

    def _name(self, entries: Mapping[str, Entry]) -> str:
        name = self._said(entries, "name")
        control = control_in(name)
        if control is not None:
            found = f"{name!r:.60} is no name: it holds the control character {control!r}."
            self._complaints.note(entries["name"].value.mark, found, "leave it out.")
        return name

    def _graph(
        self,
        tree: Value,
        parts: tuple[str, Node[Any, Outcome] | None, Rows],
        entries: Mapping[str, Entry],
    ) -> Graph[Any]:
        name, start, rows = parts
        put_off(failed=bool(self._complaints.problems))
        assert start is not None, "a start that is not known is a problem"
        try:
            graph: Graph[Any] = Graph(name, start, rows)
        except GraphError as error:
            for one in error.problems:
                self._complaints.note(tree.mark, f"{one.place}: {one.found}", one.fix)
            raise Misread("the table") from error
        lines = lines_of(entries["edges"].value, graph)
        written = entries["rules"].value if "rules" in entries else None
        rules = lines_of_rules(written.items) if isinstance(written, Items) else {}
        graph.source = TableSource(self._complaints.file, tree.mark.line, lines, rules)
        return graph

    def _nodes(self, entry: Entry) -> Nodes:
        nodes: Nodes = {}
        entries = mapping_of(entry.value, "`nodes`", self._to)
        if not entries:
            found = "a topology has at least one node; found none."
            self._complaints.note(entry.value.mark, found, "add `name: {use: …}`.")
        if len(entries) > NODES_MAX:
            found = f"a topology has at most {NODES_MAX:,} nodes; found {len(entries):,}."
            fix = "give parts of it to agents of their own."
            raise self._complaints.misread(entry.value.mark, found, fix)
        for one in entries:
            nodes[one.key] = self._node(one)
        return nodes

    def _node(self, entry: Entry) -> Node[Any, Outcome] | None:
        flaw = "it is where runs end" if entry.key == END.value else node_flaw_of(entry.key)
        if flaw:
            fix = f"choose a word of at most {NAME_MAX} characters, other than END."
            found = f"{entry.key!r:.60} is not a node's name: {flaw}."
            self._complaints.note(entry.mark, found, fix)
        try:
            return read_node(entry.value, self._to, entry.key)
        except Misread:
            return None

    def _start(self, entries: Mapping[str, Entry], nodes: Nodes) -> Node[Any, Outcome] | None:
        name = self._said(entries, "start")
        if name and name not in nodes:
            hint = self._complaints.nearest(name, nodes)
            found = f"a run begins at {name!r}, and there is no such node.{hint}"
            self._complaints.note(entries["start"].value.mark, found, "name one of the nodes.")
        return nodes.get(name)

    def _agents(self, entry: Entry) -> dict[str, AgentEntry]:
        agents: dict[str, AgentEntry] = {}
        for one in mapping_of(entry.value, "`agents`", self._to):
            if flaw := flaw_of(one.key):
                found = f"{one.key!r:.60} is not an agent's name: {flaw}."
                self._complaints.note(one.mark, found, "choose another.")
            # One that cannot be read is known all the same: nobody needs to hear of it twice.
            agents[one.key] = AgentEntry()
            try:
                agents[one.key] = self._agent(one)
            except Misread:
                self._unread.add(one.key)
        return agents

    def _agent(self, entry: Entry) -> AgentEntry:
        title, to = f"agent {entry.key!r}", self._to
        parts = {one.key: one for one in mapping_of(entry.value, title, to)}
        refuse_unknown(title, AGENT_KEYS, tuple(parts.values()), to)
        sources = [key for key in ("include", "graph", "given") if key in parts]
        if len(sources) != 1:
            raise self._complaints.misread(
                entry.value.mark,
                f"{title} has one of include, graph and given; found "
                f"{', '.join(sources) or 'none'}.",
                "write `include: file.yaml`, `graph: {…}` or `given: true`.",
            )
        description = self._said(parts, "description")
        takes_over = "takes_over" in parts and Flag().read(parts["takes_over"].value, to)
        source = parts[sources[0]]
        if sources == ["given"]:
            if not Flag().read(source.value, to):
                fix = "write `given: true`, or say what the agent is."
                raise to.misread(source.value, "true was expected", fix)
            document = None
        elif sources == ["graph"]:
            document = _Reader(self._place, replace(to, agents={})).document(
                source.value, top=False
            )
        else:
            document = self._included(source)
        return AgentEntry(document, description, takes_over)

    def _included(self, source: Entry) -> Document:
        path, place = self._place.find(source.value, self._to)
        shelf, root = place.shelf, place.shelf.root
        if path not in shelf.read:
            shelf.read[path] = None
            title = str(Path(self._complaints.file).parent / str(_word(source.value)))
            inner = Complaints(title, self._complaints.problems)
            assert root is not None, "what includes lies in a folder"
            shelf.read[path] = _file(path, place, inner, self._to.names)
        document = shelf.read[path]
        if document is None:
            raise Misread("it could not be read before")
        return document

    def _tools(self, entry: Entry, agents: Mapping[str, AgentEntry]) -> tuple[str, ...]:
        read = Many(ToolForm()).read(entry.value, self._to)
        names = cast("tuple[str, ...]", read)  # The form has looked at each.
        if len(set(names)) < len(names):
            found = f"a tool stands here twice: {', '.join(names)}."
            self._complaints.note(entry.value.mark, found, "remove one of the two.")
        for name in names:
            known = None if name in self._unread else agents.get(name)
            if known is not None and (known.document is None or not known.description):
                found = f"agent {name!r} is called as a tool, and models know nothing of it."
                fix = "give it a `description`; one that is `given` is no tool of the file."
                self._complaints.note(entry.value.mark, found, fix)
            if known is not None and (legal := legal_name(name)) != name:
                found = f"agent {name!r:.60} is called as a tool, and no tool can have that name."
                fix = f"name it {legal!r}."
                self._complaints.note(entry.value.mark, found, fix)
        return names

    def _rules(self, entry: Entry, words: Words | None) -> Rules:
        if not isinstance(entry.value, Items):
            fix = "write `- {never: deploy, before: review}`."
            self._to.misread(entry.value, "a list of rules was expected", fix)
            return Rules()
        return read_rules(entry.value.items, self._complaints, words=words)


def _words(name: str, nodes: Nodes, tools: tuple[str, ...]) -> Words | None:
    """Return what rules may speak of; None where a node could not be read."""
    known = {node: one.outcomes for node, one in nodes.items() if one is not None}
    if len(known) < len(nodes):
        return None
    outcomes = tuple((node, outcome_name(one)) for node, every in known.items() for one in every)
    return Words(name, (*known, END.value), outcomes, tools)


def _word(value: Value) -> object:
    return value.value if isinstance(value, Scalar) else ""
