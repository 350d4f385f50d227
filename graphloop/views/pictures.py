"""Picture: the shapes and edges of a diagram, independent of the notation that writes them.

DOT, Mermaid and plain text are written from the same picture, so they cannot disagree. The level
of detail (`levels.py`) decides whether a shape is a node or a box of nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from ..graph import NodeGraph
from .drawing import Look, Role, lines, notes
from .marks import Marks, Tone

__all__ = ["Inner", "Picture", "Shape", "Stroke", "Word", "end_shape", "node_picture"]


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
            notes(node),
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


def end_shape(marks: Marks, shape_id: str) -> Shape:
    """Return the shape of END, with its marks."""
    return Shape(shape_id, marks.node_words("END"), None, (), marks.node_tones.get("END"))
