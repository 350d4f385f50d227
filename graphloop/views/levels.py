"""levels: draws a graph at one of three levels of detail.

`phase` draws several nodes as one box, and `node` draws each node. `detail` also shows the contract
of each node, which the proofs rely on, and the child graphs. Marks can be drawn at every level.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from ..contract import ChildContract, Contract, contract_of
from ..graph import NodeGraph
from ..node_protocol import Node
from ..outcomes import Outcome, outcome_name
from .drawing import notes
from .marks import Marks, Tone, Way
from .phases import phase_picture
from .pictures import Inner, Picture, node_picture

__all__ = ["LEVELS", "ChildGraph", "Level", "child_graphs", "details", "picture"]

S = TypeVar("S")

Level: TypeAlias = Literal["phase", "node", "detail"]
"""The level of detail: groups of nodes, each node, or each node with its contract."""

LEVELS: Final[tuple[Level, ...]] = get_args(Level)

_WIDTH: Final = 44
"""The number of characters after which a line of details is broken at a comma."""

_PLAIN: Final = Marks()


class ChildGraph(NamedTuple):
    """A graph that a node runs as a child run, and the name by which the node calls it."""

    node: str
    name: str
    graph: NodeGraph[Any]


def child_graphs(graph: NodeGraph[Any]) -> Iterator[ChildGraph]:
    """Yield each child graph that a node runs, in the order of the table, if the graph is known."""
    around = graph.surroundings
    for name, node in graph.nodes.items():
        contract = contract_of(node)
        children = () if contract is None else contract.children
        known = {child.name: around.agents.get(child.name) or child.graph for child in children}
        if node.kind == "execute":
            known |= {tool: child for tool, child in around.agents.items() if tool in around.called}
        for child_name, child in known.items():
            if child is not None:
                yield ChildGraph(name, child_name, child)


def picture(
    graph: NodeGraph[Any],
    marks: Marks = _PLAIN,
    level: Level = "node",
    *,
    expand: bool = False,
    prefix: str = "",
) -> Picture:
    """Build the `Picture` of a graph, before it is written in a notation.

    Args:
        graph: the graph.
        marks: the words, counts and tones to show on the graph and its child graphs.
        level: the level of detail.
        expand: whether child graphs are drawn too; `detail` always draws them.
        prefix: a prefix for the ids of all shapes.
    """
    drawn = _DRAW[level](graph, _with_pale(graph, marks), prefix)
    if not expand and level != "detail":
        return drawn
    inner: list[Inner] = []
    for number, child in enumerate(child_graphs(graph)):
        own = marks.children.get(child[:2], _PLAIN)
        part = picture(child.graph, own, level, expand=True, prefix=f"{prefix}c{number}_")
        other_name = child.graph.name if child.graph.name != child.name else ""
        about = ", ".join(filter(None, [other_name, own.title]))
        title = f"{child.name} ({about})" if about else child.name
        inner.append(Inner(drawn.ids[child.node], replace(part, title=title)))
    return replace(drawn, inner=tuple(inner))


def _with_pale(graph: NodeGraph[Any], marks: Marks) -> Marks:
    """Return the marks, with the tone `weak` for each outcome that a node's contract excludes."""
    pale: dict[Way, Tone] = {
        (name, outcome_name(outcome)): "weak"
        for name, row in graph.table.items()
        if (contract := contract_of(graph.nodes[name])) is not None
        for outcome in row
        if contract.never(outcome)
    }
    return replace(marks, way_tones={**pale, **marks.way_tones}) if pale else marks


def _detailed_picture(graph: NodeGraph[Any], marks: Marks, prefix: str) -> Picture:
    drawn = node_picture(graph, marks, prefix)
    shapes = [
        replace(shape, notes=(), details=tuple(details(node, graph.surroundings.placed)))
        for shape, node in zip(drawn.shapes, graph.nodes.values(), strict=False)
    ]
    return replace(drawn, shapes=(*shapes, drawn.shapes[-1]))


_DRAW: Final[Mapping[Level, Callable[[NodeGraph[Any], Marks, str], Picture]]] = {
    "phase": phase_picture,
    "node": node_picture,
    "detail": _detailed_picture,
}


def details(node: Node[S, Outcome], placed: Collection[str] = ()) -> Iterator[str]:
    """Yield text lines about a node: its kind, its contract, its notes and its outcomes' fields."""
    yield f"{node.kind}: {type(node).__name__}"
    for line in _node_facts(node, placed):
        yield from _break_line(line)


def _node_facts(node: Node[S, Outcome], placed: Collection[str]) -> Iterator[str]:
    contract = contract_of(node)
    if contract is None:
        yield "promises nothing"
    else:
        yield from _effect_facts(contract)
        yield from _field_facts(contract)
        yield from _cap_facts(contract)
        yield from map(_child_fact, contract.children)
    yield from notes(node, placed)
    for outcome in sorted(node.outcomes, key=outcome_name):
        if values := _outcome_fields(outcome):
            yield f"{outcome_name(outcome)}({values})"


def _effect_facts(contract: Contract) -> Iterator[str]:
    if contract.model_calls is None:
        yield "may ask models any number of times"
    elif contract.model_calls:
        times = "once" if contract.model_calls == 1 else f"{contract.model_calls:,} times"
        yield f"asks a model {times} at most"
    if contract.tools:
        yield "runs tools"
    if contract.asks:
        yield "may wait for a person"


def _field_facts(contract: Contract) -> Iterator[str]:
    written = None if contract.writes is None else contract.fields_written
    for verb, names in (("reads", contract.reads), ("writes", written)):
        if names is None:
            yield f"{verb} anything of the state"
        elif names:
            yield f"{verb} {', '.join(sorted(names))}"


def _cap_facts(contract: Contract) -> Iterator[str]:
    for outcome, cap in sorted(contract.caps.items(), key=lambda item: outcome_name(item[0])):
        times = "never" if cap.never else f"at most {cap.times:,}x"
        since = f" in a {'/'.join(sorted(cap.resets))}" if cap.resets and not cap.never else ""
        yield f"{outcome_name(outcome)} {times}{since}"


def _child_fact(child: ChildContract) -> str:
    runs = "any number of times" if child.runs is None else f"{child.runs:,}x"
    words = [f"runs {child.name}" if child.runs == 1 else f"runs {child.name} {runs} at most"]
    if child.many:
        words.append("side by side")
    if child.budget is not None:
        words.append("on a budget of its own")
    if child.gate_rules is not None:
        words.append("by rules of its own")
    for verb, names in (("reads", child.reads), ("writes", child.writes)):
        if names:
            words.append(f"{verb} {' '.join(sorted(names))}")
    return ", ".join(words)


def _outcome_fields(outcome: type[Outcome]) -> str:
    """Return the fields of an outcome with their types, as text; empty if it has no fields."""
    if not is_dataclass(outcome):
        return ""
    return ", ".join(f"{field.name}: {_type_name(field.type)}" for field in fields(outcome))


def _type_name(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _break_line(line: str) -> Iterator[str]:
    """Split a line at its commas into rows of at most `_WIDTH` characters, where possible."""
    row = ""
    for word in line.split(", "):
        joined = f"{row}, {word}" if row else word
        if row and len(joined) > _WIDTH:
            yield f"{row},"
            joined = f"  {word}"
        row = joined
    yield row
