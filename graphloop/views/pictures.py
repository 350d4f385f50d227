"""Picture: the shapes and lines of a diagram, before they are written in a notation.

Every notation writes the same picture, so two notations cannot disagree. The levels of
`levels.py` decide what becomes a shape.
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
    """A node, a box of nodes, or END.

    Attributes:
        id: the shape's id within the picture.
        words: the name, and the marks below it.
        kind: the look; None for END.
        notes: text in a note beside the shape.
        tone: the emphasis, if there is one.
        is_shaded: whether the shape lies in the shaded region.
        details: smaller text below the words; a shape with details is drawn as a box.
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
    """The title, shapes and lines of a graph, and the pictures of its child graphs.

    Attributes:
        title: the graph's name and marks.
        start: the id of the first shape.
        shapes: the shapes; END is last.
        strokes: the lines.
        ids: the id of the shape of each node and of END.
        inner: the child graphs.
        prefix: the first letters of all ids.
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
        """The looks of all shapes, also in child graphs."""
        own: set[Look] = {shape.kind for shape in self.shapes if shape.kind is not None}
        return frozenset(own).union(*(child.picture.kinds for child in self.inner))


def node_picture(graph: NodeGraph[Any], marks: Marks, prefix: str) -> Picture:
    """Return one graph with a shape for each node."""
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
    """Return the shape of END."""
    return Shape(shape_id, marks.node_words("END"), None, (), marks.node_tones.get("END"))
