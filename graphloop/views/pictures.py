"""Picture: shapes and lines of a diagram, ready to be written in any notation.

Every notation writes the same picture, so no two of them can disagree. A child graph may stand
beside its parent as a picture of its own. A `Draw` decides how one graph becomes a picture: node
by node (here), in boxes (`phases.py`), or with all details (`levels.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, TypeVar, final

from ..contract import contract_of
from ..graph import Graph
from ..outcomes import outcome_name
from .drawing import Look, Role, lines, notes
from .family import Family, members
from .marks import Marks, Tone, Way

__all__ = [
    "Draw",
    "Inner",
    "Picture",
    "Shape",
    "Stroke",
    "Word",
    "end_shape",
    "family_picture",
    "node_picture",
    "picture",
]

S = TypeVar("S")

_PLAIN: Final = Marks()


@final
@dataclass(frozen=True, slots=True)
class Shape:
    """A node, a box of nodes, or END.

    Attributes:
        id: the shape's name within the picture.
        words: its name, and the marks below it.
        kind: its look; None for END.
        notes: the slip beside it.
        tone: how it is drawn, if not as usual.
        is_shaded: whether it lies in the shaded region.
        details: smaller text below its words; a shape with details is drawn as a box.
    """

    id: str
    words: tuple[str, ...]
    kind: Look | None
    notes: tuple[str, ...] = ()
    tone: Tone | None = None
    is_shaded: bool = False
    details: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Word:
    """An outcome at a line, and the marks behind its name."""

    outcome: str
    more: str = ""

    def __str__(self) -> str:
        return f"{self.outcome} {self.more}" if self.more else self.outcome


@final
@dataclass(frozen=True, slots=True)
class Stroke:
    """A line between two shapes, by their ids, and the outcomes that take it."""

    source: str
    target: str
    words: tuple[Word, ...]
    role: Role
    tone: Tone | None = None


@final
@dataclass(frozen=True, slots=True)
class Inner:
    """The picture of a child graph, and the id of the shape that runs it."""

    owner: str
    picture: Picture


@final
@dataclass(frozen=True, slots=True)
class Picture:
    """The title, first shape, shapes (END last) and lines of a graph, and its child graphs."""

    title: str
    start: str
    shapes: tuple[Shape, ...]
    strokes: tuple[Stroke, ...]
    inner: tuple[Inner, ...] = ()
    prefix: str = ""

    @property
    def kinds(self) -> frozenset[Look]:
        """The kinds that occur, also in child graphs."""
        own: set[Look] = {shape.kind for shape in self.shapes if shape.kind is not None}
        own.update(kind for child in self.inner for kind in child.picture.kinds)
        return frozenset(own)


Draw: TypeAlias = Callable[[Graph[Any], Marks, str], tuple[Picture, Mapping[str, str]]]
"""Draws a graph with marks, with a prefix for ids; also returns each node's shape id."""


def picture(graph: Graph[S], marks: Marks = _PLAIN, *, expand: int = 0) -> Picture:
    """Return the diagram of `graph`, node by node.

    Args:
        graph: the graph.
        marks: the overlay.
        expand: how many graphs deep known child graphs are drawn too.
    """
    return family_picture(Family(graph), marks, expand=expand)


def node_picture(graph: Graph[Any], marks: Marks, prefix: str) -> tuple[Picture, Mapping[str, str]]:
    """Draw one graph with a shape for each node."""
    ids = {name: f"{prefix}n{number}" for number, name in enumerate(graph.nodes)}
    ids |= {"END": f"{prefix}last"}
    shapes = [
        Shape(
            ids[name],
            marks.node_words(name),
            node.kind,
            notes(node),
            marks.node_tones.get(name),
            name in marks.shaded,
        )
        for name, node in graph.nodes.items()
    ]
    strokes = [
        Stroke(
            ids[line.source],
            ids[line.target],
            tuple(
                Word(outcome, marks.outcome_words((line.source, outcome)))
                for outcome in line.outcomes
            ),
            line.role,
            marks.tone(line.source, line.outcomes),
        )
        for line in lines(graph)
    ]
    every = (*shapes, end_shape(marks, ids["END"]))
    drawn = Picture(marks.titled(graph.name), ids[graph.start], every, tuple(strokes), (), prefix)
    return drawn, ids


def end_shape(marks: Marks, place: str) -> Shape:
    """Return the shape of END, with the id `place`."""
    return Shape(place, marks.node_words("END"), None, (), marks.node_tones.get("END"))


def family_picture(
    family: Family,
    marks: Marks = _PLAIN,
    *,
    expand: int = 0,
    draw: Draw = node_picture,
    prefix: str = "",
) -> Picture:
    """Return the diagram of a graph and of its agents.

    Args:
        family: the graph, with its agents.
        marks: the overlay, with those of its children.
        expand: how many graphs deep children are drawn too.
        draw: draws one graph.
        prefix: the first letters of all ids.
    """
    drawn, ids = draw(family.graph, _paled(family.graph, marks), prefix)
    inner = _inner(family, marks, expand, ids, draw, prefix) if expand > 0 else ()
    return replace(drawn, inner=tuple(inner))


def _paled(graph: Graph[Any], marks: Marks) -> Marks:
    """Return marks in which outcomes that a node's contract rules out are pale."""
    promised = {name: contract_of(node) for name, node in graph.nodes.items()}
    pale: dict[Way, Tone] = {
        (name, outcome_name(outcome)): "weak"
        for name, row in graph.table.items()
        if (contract := promised[name]) is not None
        for outcome in row
        if contract.never(outcome)
    }
    return replace(marks, way_tones={**pale, **marks.way_tones}) if pale else marks


def _inner(
    family: Family, marks: Marks, expand: int, ids: Mapping[str, str], draw: Draw, prefix: str
) -> Iterator[Inner]:
    for number, member in enumerate(members(family)):
        own = marks.children.get((member.node, member.name), _PLAIN)
        drawn = family_picture(
            member.family, own, expand=expand - 1, draw=draw, prefix=f"{prefix}c{number}_"
        )
        graph_name = member.family.graph.name
        known = ", ".join(
            word for word in (graph_name if graph_name != member.name else "", own.title) if word
        )
        title = f"{member.name} ({known})" if known else member.name
        yield Inner(ids[member.node], replace(drawn, title=title))
