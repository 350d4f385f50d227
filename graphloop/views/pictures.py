"""Picture: the shapes and edges of a diagram, independent of the notation that writes them.

DOT, Mermaid and plain text are written from the same picture, so they cannot disagree. The level
of detail (`levels.py`) decides whether a shape is a node or a box of nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, final

from ..graph import NodeGraph
from .drawing import Look, Role, lines, notes
from .marks import Marks, Tone

__all__ = [
    "Inner",
    "Picture",
    "Shape",
    "Stroke",
    "Word",
    "end_shape",
    "node_picture",
    "with_badges",
]

_EDGES_TO_END_MAX: Final = 3
"""The number of edges to END up to which each is drawn; more would fill the page."""


@final
@dataclass(frozen=True, slots=True)
class Shape:
    """A shape of a diagram: a node, a box of several nodes, or END.

    Attributes:
        id: the shape's id within the picture.
        words: the lines of text: the name, then the marks.
        kind: the look of the shape; None for END.
        notes: the text lines of a note beside the shape.
        tone: the emphasis, if there is one.
        is_shaded: whether the shape has a different fill (`Marks.shaded`).
        details: smaller text lines below `words`.
        exits: the outcomes that lead to END by a badge in the shape, without an edge.
    """

    id: str
    words: tuple[str, ...]
    kind: Look | None
    notes: tuple[str, ...] = ()
    tone: Tone | None = None
    is_shaded: bool = False
    details: tuple[str, ...] = ()
    exits: tuple[Word, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of text with the badge last: `failed, aborted → END`."""
        badge = f"{', '.join(map(str, self.exits))} → END"
        return (*self.words, badge) if self.exits else self.words


@final
@dataclass(frozen=True, slots=True)
class Word:
    """An outcome in the label of an edge, and the text of the marks after its name."""

    outcome: str
    more: str = ""

    def __str__(self) -> str:
        return f"{self.outcome} {self.more}" if self.more else self.outcome


@final
@dataclass(frozen=True, slots=True)
class Stroke:
    """An edge between two shapes, which are given by their ids, and the outcomes in its label."""

    source: str
    target: str
    words: tuple[Word, ...]
    role: Role
    tone: Tone | None = None


@final
@dataclass(frozen=True, slots=True)
class Inner:
    """The picture of a child graph, and the id of the shape of the node that runs the child."""

    owner: str
    picture: Picture


@final
@dataclass(frozen=True, slots=True)
class Picture:
    """The diagram of a graph: its title, shapes and edges, and the pictures of its child graphs.

    Attributes:
        title: the graph's name, and the title of the marks.
        start: the id of the shape in which runs start.
        shapes: the shapes; END is last.
        strokes: the edges.
        ids: maps the name of each node, and END, to the id of its shape.
        inner: the pictures of the child graphs.
        prefix: the prefix of the ids of all shapes.
    """

    title: str
    start: str
    shapes: tuple[Shape, ...]
    strokes: tuple[Stroke, ...]
    ids: Mapping[str, str] = field(default_factory=dict[str, str])
    inner: tuple[Inner, ...] = ()
    prefix: str = ""

    @property
    def kinds(self) -> frozenset[Look]:
        """The set of the looks of all shapes, also in child graphs."""
        own: set[Look] = {shape.kind for shape in self.shapes if shape.kind is not None}
        return frozenset(own).union(*(child.picture.kinds for child in self.inner))


def node_picture(graph: NodeGraph[Any], marks: Marks, prefix: str) -> Picture:
    """Return the picture of a graph with a shape for each node, without child graphs."""
    ids = {name: f"{prefix}n{number}" for number, name in enumerate(graph.nodes)}
    ids["END"] = f"{prefix}last"
    shapes = [
        Shape(
            ids[name],
            marks.node_words(name),
            node.kind,
            notes(node, graph.surroundings.placed),
            marks.node_tones.get(name),
            name in marks.shaded,
        )
        for name, node in graph.nodes.items()
    ]
    strokes: list[Stroke] = []
    for line in lines(graph):
        words = [Word(way[1], marks.outcome_words(way)) for way in line.ways]
        ends = ids[line.source], ids[line.target]
        strokes.append(Stroke(*ends, tuple(words), line.role, marks.tone(line.ways)))
    every = (*shapes, end_shape(marks, ids["END"]))
    title, start = marks.titled(graph.name), ids[graph.start]
    return Picture(title, start, every, tuple(strokes), ids, prefix=prefix)


def with_badges(drawn: Picture) -> Picture:
    """Return a picture in which badges replace the edges to END, from four such edges on.

    The main path keeps its edges, and so do edges with marks. A node whose first outcome leads to
    END keeps that edge, because runs are expected to end there. Text for terminals has no badges,
    because its rows do not cross.
    """
    end = drawn.shapes[-1].id
    edges = [stroke for stroke in drawn.strokes if stroke.target == end]
    firsts = {stroke.source: stroke for stroke in reversed(drawn.strokes)}
    badges: dict[str, Stroke] = {}
    for stroke in edges if len(edges) > _EDGES_TO_END_MAX else ():
        is_aside = stroke.role == "quiet" or firsts[stroke.source] is not stroke
        is_marked = stroke.tone not in {None, "weak"} or any(word.more for word in stroke.words)
        if stroke.role in {"quiet", "side"} and is_aside and not is_marked:
            badges[stroke.source] = stroke
    shapes = [
        replace(shape, exits=badges[shape.id].words) if shape.id in badges else shape
        for shape in drawn.shapes
    ]
    strokes = [stroke for stroke in drawn.strokes if badges.get(stroke.source) is not stroke]
    return replace(drawn, shapes=tuple(shapes), strokes=tuple(strokes))


def end_shape(marks: Marks, shape_id: str) -> Shape:
    """Return the shape of END, with its marks."""
    return Shape(shape_id, marks.node_words("END"), None, (), marks.node_tones.get("END"))
