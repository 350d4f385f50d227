"""Picture: what a diagram shows, ready to be written in any notation.

Every notation writes the same picture, so no two of them can disagree. What one graph runs as its
child may stand beside it as a picture of its own. How one graph is drawn is the business of
whoever draws it: node by node (here), folded (`folded`), or with all that is known (`details`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, TypeVar, final

from ..contract import contract_of
from ..graph import Graph
from ..outcomes import outcome_name
from .drawing import PALETTE, Look, Role, lines, notes
from .family import Family, kin
from .marks import Marks, Tone, Way

__all__ = [
    "Draw",
    "Inner",
    "Picture",
    "Shape",
    "Stroke",
    "Word",
    "family_picture",
    "node_picture",
    "picture",
]

S = TypeVar("S")

_PLAIN: Final = Marks()


@final
@dataclass(frozen=True, slots=True)
class Shape:
    """A node, or END, whose kind is None: the words in it, and on the slip of paper beside it.

    A box holds several nodes, or what is known of one: `details`, below its words. A reference is
    the name of a node that stands elsewhere.
    """

    id: str
    words: tuple[str, ...]
    kind: Look | None
    notes: tuple[str, ...] = ()
    tone: Tone | None = None
    is_shaded: bool = False
    details: tuple[str, ...] = ()
    is_reference: bool = False


@final
@dataclass(frozen=True, slots=True)
class Word:
    """An outcome at a line, and what is known of it beside its name."""

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
    """What the node of the id `owner` runs as a child."""

    owner: str
    picture: Picture


@final
@dataclass(frozen=True, slots=True)
class Picture:
    """One graph: its title, the id of the shape it begins at, its shapes, END last, and lines."""

    title: str
    start: str
    shapes: tuple[Shape, ...]
    strokes: tuple[Stroke, ...]
    inner: tuple[Inner, ...] = ()
    prefix: str = ""

    @property
    def kinds(self) -> tuple[Look, ...]:
        """The kinds that occur, in the legend's order."""
        used = {one.kind for one in self.shapes}
        used.update(kind for one in self.inner for kind in one.picture.kinds)
        return tuple(kind for kind in PALETTE if kind in used)


Draw: TypeAlias = Callable[[Graph[Any], Marks, str], tuple[Picture, Mapping[str, str]]]
"""Draws one graph with marks, ids beginning with a prefix; returns the shape of each node, too."""


def picture(graph: Graph[S], marks: Marks = _PLAIN, *, expand: int = 0) -> Picture:
    """Return what a diagram of `graph` shows, node by node.

    Args:
        graph: what is drawn.
        marks: what is laid over it.
        expand: how many graphs deep children are drawn too, as far as they are known.
    """
    return family_picture(Family(graph), marks, expand=expand)


def node_picture(graph: Graph[Any], marks: Marks, prefix: str) -> tuple[Picture, Mapping[str, str]]:
    """Draw one graph, each of its nodes as a shape."""
    ids = {name: f"{prefix}n{number}" for number, name in enumerate(graph.nodes)}
    ids |= {"END": f"{prefix}last"}
    shapes = [
        Shape(
            ids[name],
            marks.named(name),
            node.kind,
            notes(node),
            marks.node_tones.get(name),
            name in marks.shaded,
        )
        for name, node in graph.nodes.items()
    ]
    shapes.append(Shape(ids["END"], marks.named("END"), None, (), marks.node_tones.get("END")))
    strokes = [
        Stroke(
            ids[line.source],
            ids[line.target],
            tuple(Word(outcome, marks.said((line.source, outcome))) for outcome in line.outcomes),
            line.role,
            marks.tone(line.source, line.outcomes),
        )
        for line in lines(graph)
    ]
    title = marks.titled(graph.name)
    drawn = Picture(title, ids[graph.start], tuple(shapes), tuple(strokes), (), prefix)
    return drawn, ids


def family_picture(
    family: Family,
    marks: Marks = _PLAIN,
    *,
    expand: int = 0,
    draw: Draw = node_picture,
    prefix: str = "",
) -> Picture:
    """Return what a diagram of a graph and of its agents shows.

    Args:
        family: the graph, with its agents.
        marks: what is laid over it, its children included.
        expand: how many graphs deep children are drawn too.
        draw: draws one graph.
        prefix: what ids begin with.
    """
    drawn, ids = draw(family.graph, _paled(family.graph, marks), prefix)
    inner = _inner(family, marks, expand, ids, draw, prefix) if expand > 0 else ()
    return replace(drawn, inner=tuple(inner))


def _paled(graph: Graph[Any], marks: Marks) -> Marks:
    """Return marks by which the lines are pale, too, that the nodes never take."""
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
    for number, one in enumerate(kin(family)):
        title = "" if one.name == one.family.graph.name else one.family.graph.name
        own = marks.children.get((one.node, one.name), _PLAIN)
        told = ", ".join(word for word in (title, own.title) if word)
        below = family_picture(
            one.family, own, expand=expand - 1, draw=draw, prefix=f"{prefix}c{number}_"
        )
        named = f"{one.name} ({told})" if told else one.name
        yield Inner(ids[one.node], replace(below, title=named))
