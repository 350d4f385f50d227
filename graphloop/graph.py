"""NodeGraph: nodes, and the table that maps each outcome of a node to the next node.

The kernel follows this table, diagrams draw it, and proofs search it; it defines all transitions.
Every graph has a row for each node, and each outcome exactly once in that row. The constructor
reports all violations at once, each with its fix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from enum import Enum
from types import EllipsisType
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, cast, final, get_args

from msgspec import Struct

from .errors import GraphError, Problem, nearest
from .lazy import called_from, notebook_display
from .node_protocol import NAME_MAX, Kind, Node, control_in, escaped, node_flaw_of, unwrapped
from .outcomes import Outcome, outcome_name
from .rules import Rules, Vocabulary, spelled_tools

__all__ = [
    "END",
    "Edge",
    "Edges",
    "EndType",
    "NodeGraph",
    "Row",
    "Surroundings",
    "TableSource",
    "names_of",
]

S = TypeVar("S")


class EndType(Enum):
    """The type of `END`."""

    END = "END"


END: Final = EndType.END
"""The target of a transition that ends the run; not a node, so it has no row."""

Row: TypeAlias = Mapping[type[Outcome] | EllipsisType, Node[S, Outcome] | Literal[EndType.END]]
Edges: TypeAlias = Mapping[Node[S, Outcome], Row[S]]


@dataclass(frozen=True, slots=True)
class Edge:
    """A transition in a diagram: the names of a node, of its outcome, and of the target."""

    source: str
    outcome: str
    target: str


@final
class TableSource(Struct, frozen=True):
    """The place in a file where a graph's table is written.

    Attributes:
        file: the path of the file, as it was given.
        line: the line of the `Graph(…)` call, or the first line of a graph in a data file.
        rows: line numbers in a data file: of rows by node and `""`, of cells by node and outcome;
            None for a Python program.
        rules: line numbers of the temporal rules in the file, by the text of the rule.
    """

    file: str
    line: int
    rows: Mapping[tuple[str, str], int] | None = None
    rules: Mapping[str, int] | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def at(self, node: str = "", outcome: str = "") -> int:
        """Return the line number of a cell of the table; if unknown, of its row or of the graph."""
        rows = self.rows or {}
        return rows.get((node, outcome), rows.get((node, ""), self.line))


@final
class Surroundings(Struct, frozen=True):
    """The tools, agents and options of a graph's runs, which its table does not hold.

    Attributes:
        tool_names: the tools that the runs and their child runs may call; None if unknown.
        agents: the graphs of the agents that the runs know, by agent; None if a graph is unknown.
        called: the names in `agents` that a model in a run may call like tools.
        handoffs: the names in `called` that are handoffs: the agent's answer becomes the run's.
        placed: the names in `called` whose runs any worker may drive, while their parent waits.
        options: the options of the runs, by name: budget, rules, tools, prompts.
    """

    tool_names: tuple[str, ...] | None = None
    agents: Mapping[str, NodeGraph[Any] | None] = {}
    called: frozenset[str] = frozenset()
    handoffs: frozenset[str] = frozenset()
    placed: frozenset[str] = frozenset()
    options: Mapping[str, object] = {}


class NodeGraph(Generic[S]):
    """A topology: a start node and a row of outcomes for every node.

    In a row, `...` stands for every outcome not named there.

    Args:
        name: the graph's name in journals and diagrams.
        start: the node at which a run begins.
        edges: for every node, where each of its outcomes leads: another node, or `END`.

    Raises:
        GraphError: with all problems found: an outcome without a target, an outcome that the
            node does not declare, a `...` that covers nothing, a target without a row, two nodes
            with one name, a node of unknown kind, or a value of the wrong type.
    """

    def __init__(self, name: str, start: Node[S, Outcome], edges: Edges[S]) -> None:
        self.name = name
        # Names may hold control characters, and terminals show these messages.
        problems = [
            Problem(escaped(one.place), escaped(one.found), escaped(one.fix), one.code)
            for one in _table_problems(name, start, edges)
        ]
        line = called_from()
        self.source: TableSource | None = None if line is None else TableSource(*line)
        """The file and line where the graph's table is written; None if unknown."""
        if problems:
            raise GraphError(name, problems, str(self.source or ""))
        self.start = start.name
        self.nodes: Mapping[str, Node[S, Outcome]] = {node.name: node for node in edges}
        self.every_node: tuple[Node[Any, Outcome], ...] = tuple(unwrapped(edges))
        """The nodes of the table, and all nodes nested in them, outer nodes before inner ones."""
        self.table: Mapping[str, Mapping[type[Outcome], str]] = {
            node.name: _complete_row(node, row) for node, row in edges.items()
        }
        self.surroundings = Surroundings()
        """The tools, agents and options of the graph's runs; proofs and pictures read them."""
        self.facts: object = None
        """A cache of facts about the graph's nodes that each run needs; the first run fills it."""
        self.form: str | None = None  # A cache of its text in revisions of code, for stores.

    @property
    def rules(self) -> Rules:
        """The temporal rules that are defined with the graph itself; empty by default."""
        return Rules()

    @property
    def ignore(self) -> Mapping[tuple[str, str], str]:
        """The reasons why findings of `check` are ignored, by node and code; empty by default."""
        return {}

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The transitions of the table, in the order in which they are written."""
        return tuple(
            Edge(source, outcome_name(outcome), target)
            for source, row in self.table.items()
            for outcome, target in row.items()
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NodeGraph):
            return NotImplemented
        mine = (self.name, self.start, self.nodes, self.table)
        # `isinstance` leaves the state type unknown; equality does not depend on this type.
        return mine == (other.name, other.start, other.nodes, other.table)  # pyright: ignore[reportUnknownMemberType]

    def __hash__(self) -> int:
        # Equality ignores the order of rows, so the hash must ignore it, too.
        return hash((self.name, self.start, frozenset(self.edges)))

    def __repr__(self) -> str:
        return f"<Graph {self.name!r}: {len(self.nodes)} nodes, {len(self.edges)} edges>"

    _repr_mimebundle_ = notebook_display


def _complete_row(node: Node[S, Outcome], row: Row[S]) -> dict[type[Outcome], str]:
    """Return the target names by outcome type, with `...` replaced by the outcomes it covers."""
    cells = [(one, to) for one, to in row.items() if not isinstance(one, EllipsisType)]
    named = {outcome: _target_name(target) for outcome, target in cells}
    if ... in row:
        rest = sorted(node.outcomes - set(named), key=outcome_name)
        named |= dict.fromkeys(rest, _target_name(row[...]))
    return named


def _target_name(target: Node[S, Outcome] | Literal[EndType.END]) -> str:
    return "END" if target is END else target.name


def _table_problems(name: object, start: object, edges: object) -> Iterator[Problem]:
    """Yield each problem; types are `object`, because callers may not use a type checker."""
    if not isinstance(name, str) or not name.strip() or control_in(name):
        is_not = "which is no line of text" if isinstance(name, str) else "not a str"
        found = f"has the name {name!r}, {is_not}." if name else "has no name."
        yield Problem("the graph", found, 'name it, e.g. Graph("support-desk", …).')
    table = _as_mapping(edges)
    if table is None:
        found = f"is of type {type(edges).__name__!r}, not a mapping from nodes to their rows."
        yield Problem("edges", found, "write `edges={node: {Outcome: target}}`.")
    if not _has_row(start, table or {}):
        wrong = _no_node(start)
        if wrong is not None:
            yield Problem(f"start={start!r}", *wrong)
        elif table is not None:
            called = _name_or_repr(start)
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
    name, kind = _name_or_repr(node), cast("object", getattr(node, "kind", None))
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
    outcomes = _declared_outcomes(node)
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
    name = _name_or_repr(node)
    place = f"row of {name!r}"
    row = _as_mapping(written)
    if row is None:
        found = f"is of type {type(written).__name__!r}, not a mapping from outcomes to targets."
        yield Problem(place, found, "write `{Outcome: <node or END>}`.")
        return
    outcomes = _declared_outcomes(node)
    if outcomes is not None:
        declared = {outcome_name(outcome): outcome for outcome in outcomes}
        for key in row:
            yield from _key_problems(name, key, declared)
        yield from _missing_problems(place, row, declared)
    # Report a wrong target once, even if several outcomes of the row lead to it.
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
    meant, fix = _outcome_of_key(key, declared), f"write the type of one of its outcomes: {words}."
    if isinstance(meant, type):
        fix = f"write `{meant.__name__}`, the type itself."
    found = f"the key {key!r} is of type {type(key).__name__!r}, not an outcome type."
    yield Problem(place, found, fix)


def _missing_problems(
    place: str, row: Mapping[object, object], declared: Mapping[str, type[Outcome]]
) -> Iterator[Problem]:
    named = [_outcome_of_key(key, declared) for key in row]
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
        name = _name_or_repr(target)
        fix = f"add `{name}: {{…}}` to the edges."
        yield Problem(place, f"leads to {name!r}, which has no row.", fix)
        return
    found, fix = wrong
    yield Problem(place, f"leads to {target!r}, which {found}", fix)


def _no_node(value: object) -> tuple[str, str] | None:
    """Return why `value` cannot be a node of a table, and the fix; None if it can."""
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


def _name_or_repr(node: object) -> str:
    """Return the node's name, or the `repr` of a value that is not a node."""
    name = None if isinstance(node, type) else cast("object", getattr(node, "name", None))
    return name if isinstance(name, str) else repr(node)


def _declared_outcomes(node: object) -> Set[type[Outcome]] | None:
    """Return the outcomes of a node, or None if they are not a set of `Outcome` types."""
    declared = cast("object", getattr(node, "outcomes", None))
    if isinstance(node, type) or not isinstance(declared, Set):
        return None
    types = cast("Set[object]", declared)  # `isinstance` cannot check the items.
    if all(isinstance(one, type) and issubclass(one, Outcome) for one in types):
        return cast("Set[type[Outcome]]", types)  # The line above has checked each item.
    return None


def _outcome_of_key(key: object, declared: Mapping[str, type[Outcome]]) -> object:
    """Return the outcome type that a key of a row means: the type, an instance or a name."""
    if isinstance(key, Outcome):
        return type(key)
    if isinstance(key, str):
        return next((one for word, one in declared.items() if key in {word, one.__name__}), None)
    return key


def _as_mapping(value: object) -> Mapping[object, object] | None:
    # `isinstance` cannot check the items.
    return cast("Mapping[object, object]", value) if isinstance(value, Mapping) else None


def _has_row(node: object, table: Mapping[object, object]) -> bool:
    try:
        return node in table
    except TypeError:  # The node is not hashable.
        return False


def names_of(graph: NodeGraph[S], tools: Iterable[str] | None = None) -> Vocabulary:
    """Return the names of nodes, outcomes and tools that temporal rules of a graph may use.

    Without `tools`, the tools are the graph's known tools, and the tools that its own rules name
    with a prefix (`tool:deploy`): runs may add such tools. If the graph knows no tools, a rule
    needs the prefix, and the tool's name is not checked.
    """
    cells = [(node, outcome_name(one)) for node, row in graph.table.items() for one in row]
    known = graph.surroundings.tool_names if tools is None else tuple(tools)
    if tools is None and known is not None:
        known = tuple(dict.fromkeys((*known, *spelled_tools(graph.rules))))
    return Vocabulary(graph.name, (*graph.nodes, "END"), tuple(cells), known)
