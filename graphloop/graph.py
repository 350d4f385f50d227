"""NodeGraph: nodes and the one table that says where each of their outcomes leads.

The engine executes this table, the diagram draws it, the proofs walk it; there is no transition
anywhere else. A graph that exists has a row for each node, and in it each outcome exactly once:
everything that is not so is reported at construction, all of it at once, each with its fix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from enum import Enum
from types import EllipsisType
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, cast, final, get_args

from msgspec import Struct

from .errors import GraphError, Problem, nearest
from .lazy import called_from
from .node_protocol import NAME_MAX, Kind, Node, control_in, escaped, node_flaw_of
from .outcomes import Outcome, outcome_name
from .rules import Rules, Vocabulary, spelled_tools

__all__ = ["END", "Edge", "Edges", "EndType", "NodeGraph", "Row", "TableSource", "names_of"]

S = TypeVar("S")


class EndType(Enum):
    """The type of `END`."""

    END = "END"


END: Final = EndType.END
"""Where a run is over. Not a node: it has no row and no behaviour."""

Row: TypeAlias = Mapping[type[Outcome] | EllipsisType, Node[S, Outcome] | Literal[EndType.END]]
Edges: TypeAlias = Mapping[Node[S, Outcome], Row[S]]


@dataclass(frozen=True, slots=True)
class Edge:
    """A drawn line: the names of a node, of its outcome, and of the target."""

    source: str
    outcome: str
    target: str


@final
class TableSource(Struct, frozen=True):
    """Where a graph's table was written.

    Attributes:
        file: the file, as it was given.
        line: the line of the `Graph(…)` call, or at which a file of data begins.
        rows: the lines of a data file's rows by node and `""`, and of its cells by node and
            outcome; None for a program.
        rules: the lines of the temporal rules that stand in the file, by their words.
    """

    file: str
    line: int
    rows: Mapping[tuple[str, str], int] | None = None
    rules: Mapping[str, int] | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def at(self, node: str = "", outcome: str = "") -> int:
        """Return the line of a cell, else of its row, else of the graph."""
        rows = self.rows or {}
        return rows.get((node, outcome), rows.get((node, ""), self.line))


class NodeGraph(Generic[S]):
    """A topology: a start node and a row of outcomes for every node.

    In a row, `...` stands for every outcome not named there.

    Args:
        name: the graph's name in journals and diagrams.
        start: the node a run begins at.
        edges: for every node, where each of its outcomes leads: another node, or `END`.

    Raises:
        GraphError: with every problem found: an outcome without a place to go, an outcome the
            node does not have, a `...` that covers nothing, a target without a row, two nodes
            of one name, a node of no known kind, anything that is not of its type.
    """

    def __init__(self, name: str, start: Node[S, Outcome], edges: Edges[S]) -> None:
        self.name = name
        # Names come from any source, and messages go to terminals.
        problems = [
            Problem(escaped(one.place), escaped(one.found), escaped(one.fix), one.code)
            for one in _problems(name, start, edges)
        ]
        line = called_from()
        self.source: TableSource | None = None if line is None else TableSource(*line)
        """Where the table was written, if that is known."""
        if problems:
            raise GraphError(name, problems, str(self.source or ""))
        self.start = start.name
        self.nodes: Mapping[str, Node[S, Outcome]] = {node.name: node for node in edges}
        self.table: Mapping[str, Mapping[type[Outcome], str]] = {
            node.name: _complete(node, row) for node, row in edges.items()
        }
        self.tool_names: tuple[str, ...] | None = None
        """The tools that may be called in its runs and below; None where the graph cannot know."""
        self.agents: Mapping[str, NodeGraph[Any] | None] = {}
        """The agents of its runs by name, as far as it knows; None for one of an unknown graph."""
        self.called: frozenset[str] = frozenset()
        """Those of them that its models may call like tools."""
        self.handoffs: frozenset[str] = frozenset()
        """Those of these that take over."""
        self.facts: object = None
        """The facts about its nodes that each run starts with; the first run finds them."""
        self.run_options: Mapping[str, object] = {}
        """What its runs are given beside the table, by option: budget, rules, tools, prompts."""

    @property
    def rules(self) -> Rules:
        """The temporal rules that the graph itself brings; none, unless a file says so."""
        return Rules()

    @property
    def ignore(self) -> Mapping[tuple[str, str], str]:
        """Why findings of the checker are set aside, by node and code; none, unless it is said."""
        return {}

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The table as lines, in the order it was written."""
        return tuple(
            Edge(source, outcome_name(outcome), target)
            for source, row in self.table.items()
            for outcome, target in row.items()
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NodeGraph):
            return NotImplemented
        mine = (self.name, self.start, self.nodes, self.table)
        # isinstance leaves the state type unknown; equality does not depend on it.
        return mine == (other.name, other.start, other.nodes, other.table)  # pyright: ignore[reportUnknownMemberType]

    def __hash__(self) -> int:
        # Rows are equal in whatever order they were written.
        return hash((self.name, self.start, frozenset(self.edges)))

    def __repr__(self) -> str:
        return f"<Graph {self.name!r}: {len(self.nodes)} nodes, {len(self.edges)} edges>"


def _complete(node: Node[S, Outcome], row: Row[S]) -> dict[type[Outcome], str]:
    """Return the row by outcome type, with `...` spelled out."""
    cells = [(one, to) for one, to in row.items() if not isinstance(one, EllipsisType)]
    named = {outcome: _target_name(target) for outcome, target in cells}
    if ... in row:
        rest = sorted(node.outcomes - set(named), key=outcome_name)
        named |= dict.fromkeys(rest, _target_name(row[...]))
    return named


def _target_name(target: Node[S, Outcome] | Literal[EndType.END]) -> str:
    return "END" if target is END else target.name


def _problems(name: object, start: object, edges: object) -> Iterator[Problem]:
    """Yield each problem; the types are open, for tables also come from unchecked code."""
    if not isinstance(name, str) or not name.strip() or control_in(name):
        is_not = "which is no line of text" if isinstance(name, str) else "not a str"
        found = f"has the name {name!r}, {is_not}." if name else "has no name."
        yield Problem("the graph", found, 'name it, e.g. Graph("support-desk", …).')
    table = _mapping(edges)
    if table is None:
        found = f"is of type {type(edges).__name__!r}, not a mapping from nodes to their rows."
        yield Problem("edges", found, "write `edges={node: {Outcome: target}}`.")
    if not _has_row(start, table or {}):
        wrong = _no_node(start)
        if wrong is not None:
            yield Problem(f"start={start!r}", *wrong)
        elif table is not None:
            called = _called(start)
            fix = f"add `{called}: {{…}}`."
            yield Problem(f"start={called!r}", "the start node has no row.", fix)
    names: set[str] = set()
    for node in table or {}:
        yield from _node_problems(node, names)
    for node, row in (table or {}).items():
        yield from _row_problems(node, row, table or {})


def _node_problems(node: object, names: set[str]) -> Iterator[Problem]:
    wrong = _no_node(node)
    if wrong is not None:
        yield Problem(f"node {node!r}", *wrong)
        return
    name, kind = _called(node), cast("object", getattr(node, "kind", None))
    place = f"node {name!r}"
    if name in {"", "END"}:
        yield Problem(f"node {node!r}", f"{name!r} is not a name.", "choose a word other than END.")
    elif flaw := node_flaw_of(name):
        fix = f"choose a word of at most {NAME_MAX} characters."
        yield Problem(f"node {name!r:.60}", f"{name!r:.60} is not a name: {flaw}.", fix)
    elif name in names:
        found = "two different nodes have this name."
        yield Problem(place, found, "give one of them another `name=`.")
    names.add(name)
    if kind not in get_args(Kind):
        found = f"is of the unknown kind {kind!r}.{nearest(str(kind), get_args(Kind))}"
        yield Problem(place, found, f"choose one of {', '.join(get_args(Kind))}.")
    outcomes = _outcomes(node)
    if outcomes is None:
        found = "its `outcomes` are not a set of types derived from Outcome."
        fix = "derive each from Outcome, and write `outcomes = outcomes_of(This | That)`."
        yield Problem(place, found, fix)
    elif not outcomes:
        found = "declares no outcome, so a run could never leave it."
        yield Problem(place, found, "declare at least one outcome.")
    elif len(set(map(outcome_name, outcomes))) < len(outcomes):
        found = "has two outcome types of one name, which no diagram could tell apart."
        yield Problem(place, found, "rename one of the classes.")


def _row_problems(
    node: object, written: object, table: Mapping[object, object]
) -> Iterator[Problem]:
    name = _called(node)
    place = f"row of {name!r}"
    row = _mapping(written)
    if row is None:
        found = f"is of type {type(written).__name__!r}, not a mapping from outcomes to targets."
        yield Problem(place, found, "write `{Outcome: <node or END>}`.")
        return
    outcomes = _outcomes(node)
    if outcomes is not None:
        declared = {outcome_name(outcome): outcome for outcome in outcomes}
        for key in row:
            yield from _key_problems(name, key, declared)
        yield from _missing_problems(place, row, declared)
    # A target that is wrong twice in one row is one mistake.
    yield from dict.fromkeys(
        problem for target in row.values() for problem in _target_problems(place, target, table)
    )


def _key_problems(
    name: str, key: object, declared: Mapping[str, type[Outcome]]
) -> Iterator[Problem]:
    if key is ... or key in declared.values():
        return
    place, words = f"row of {name!r}", ", ".join(sorted(declared)) or "none"
    if isinstance(key, type):
        invented = outcome_name(key)
        found = f"{name!r} never leaves by {invented!r}.{nearest(invented, declared)}"
        yield Problem(place, found, f"remove it; the outcomes are {words}.")
        return
    meant, fix = _meant(key, declared), f"write the type of one of its outcomes: {words}."
    if isinstance(meant, type):
        fix = f"write `{meant.__name__}`, the type itself."
    found = f"the key {key!r} is of type {type(key).__name__!r}, not an outcome type."
    yield Problem(place, found, fix)


def _missing_problems(
    place: str, row: Mapping[object, object], declared: Mapping[str, type[Outcome]]
) -> Iterator[Problem]:
    named = [_meant(key, declared) for key in row]
    missing = [outcome for _, outcome in sorted(declared.items()) if outcome not in named]
    if ... not in row:
        for outcome in missing:
            yield Problem(
                place,
                f"outcome {outcome_name(outcome)!r} leads nowhere.",
                f"add `{outcome.__name__}: <node or END>`, or `...: END` for the rest.",
            )
    elif not missing:
        yield Problem(place, "`...` covers no outcome: all are named.", "remove the `...`.")


def _target_problems(
    place: str, target: object, table: Mapping[object, object]
) -> Iterator[Problem]:
    if target is END or _has_row(target, table):
        return
    wrong = _no_node(target)
    if wrong is None:
        name = _called(target)
        fix = f"add `{name}: {{…}}` to the edges."
        yield Problem(place, f"leads to {name!r}, which has no row.", fix)
        return
    found, fix = wrong
    yield Problem(place, f"leads to {target!r}, which {found}", fix)


def _no_node(value: object) -> tuple[str, str] | None:
    """Return what `value` is instead of a node, and how to mend it; None for a node."""
    kind = f"is of type {type(value).__name__!r}, not a node"
    if value is END:
        return "is where a run is over, not a node.", "begin at a node, and give END no row."
    if isinstance(value, type):
        return "is a class, not a node.", f"write an instance of it: `{value.__name__}(…)`."
    if isinstance(value, str):
        end = value.upper() == "END"
        return f"{kind}.", "write END without quotes." if end else "write the node, not its name."
    lacking = [word for word in ("kind", "outcomes") if not hasattr(value, word)]
    lacking += [word for word in ("enter", "on") if not callable(getattr(value, word, None))]
    if not isinstance(getattr(value, "name", None), str):
        lacking.insert(0, "a name of type str")
    if lacking:
        lacks = f": it lacks {', '.join(lacking)}" if len(lacking) < 5 else ""
        return f"{kind}{lacks}.", "write a node here, or END as a target."
    try:
        hash(value)
    except TypeError as error:
        return f"has no place in a table: {error}.", "freeze its dataclass, and what is in it."
    return None


def _called(node: object) -> str:
    """Return the node's name, or how Python writes what is no node."""
    name = None if isinstance(node, type) else cast("object", getattr(node, "name", None))
    return name if isinstance(name, str) else repr(node)


def _outcomes(node: object) -> Set[type[Outcome]] | None:
    """Return the outcomes of a node, or None where they are not what they should be."""
    declared = cast("object", getattr(node, "outcomes", None))
    if isinstance(node, type) or not isinstance(declared, Set):
        return None
    types = cast("Set[object]", declared)  # isinstance cannot tell what is in it.
    if all(isinstance(one, type) and issubclass(one, Outcome) for one in types):
        return cast("Set[type[Outcome]]", types)  # The line above has looked at each.
    return None


def _meant(key: object, declared: Mapping[str, type[Outcome]]) -> object:
    """Return the outcome type that a key stands for, also as an instance or as a name."""
    if isinstance(key, Outcome):
        return type(key)
    if isinstance(key, str):
        return next((one for word, one in declared.items() if key in {word, one.__name__}), None)
    return key


def _mapping(value: object) -> Mapping[object, object] | None:
    # isinstance cannot tell what is in it.
    return cast("Mapping[object, object]", value) if isinstance(value, Mapping) else None


def _has_row(node: object, table: Mapping[object, object]) -> bool:
    try:
        return node in table
    except TypeError:  # It cannot be hashed.
        return False


def names_of(graph: NodeGraph[S], tools: Iterable[str] | None = None) -> Vocabulary:
    """Return what the rules of a graph may speak of.

    Without `tools`, those count that the graph knows, and those that its own rules speak of by
    their kind (`tool:deploy`): runs may bring them. Where the graph knows none, a tool is spoken of
    by its kind only, and not looked for.
    """
    cells = [(node, outcome_name(one)) for node, row in graph.table.items() for one in row]
    known = graph.tool_names if tools is None else tuple(tools)
    if tools is None and known is not None:
        known = tuple(dict.fromkeys((*known, *spelled_tools(graph.rules))))
    return Vocabulary(graph.name, (*graph.nodes, "END"), tuple(cells), known)
