"""Picture: what a diagram shows, ready to be written in any notation.

Every notation writes the same picture, so no two of them can disagree. What one graph runs as its
child may stand beside it as a picture of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar, final

from ..contract import contract_of
from ..graph import Graph
from ..node_protocol import Kind
from .drawing import PALETTE, Role, lines, notes
from .marks import Marks, Tone

__all__ = ["Inner", "Picture", "Shape", "Stroke", "Word", "picture"]

S = TypeVar("S")

_PLAIN: Final = Marks()


@final
@dataclass(frozen=True, slots=True)
class Shape:
    """A node, or END, whose kind is None: the words in it, and on the slip of paper beside it."""

    id: str
    words: tuple[str, ...]
    kind: Kind | None
    notes: tuple[str, ...] = ()
    tone: Tone | None = None
    is_shaded: bool = False


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
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds that occur, in the legend's order."""
        used = {one.kind for one in self.shapes}
        used.update(kind for one in self.inner for kind in one.picture.kinds)
        return tuple(kind for kind in PALETTE if kind in used)


def picture(graph: Graph[S], marks: Marks = _PLAIN, *, expand: int = 0) -> Picture:
    """Return what a diagram of `graph` shows.

    Args:
        graph: what is drawn.
        marks: what is laid over it.
        expand: how many graphs deep children are drawn too, as far as they are known.
    """
    return _picture(graph, marks, expand, "")


def _picture(graph: Graph[S], marks: Marks, expand: int, prefix: str) -> Picture:
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
            tuple(
                Word(outcome, marks.ways.get((line.source, outcome), ""))
                for outcome in line.outcomes
            ),
            line.role,
            marks.tone(line.source, line.outcomes),
        )
        for line in lines(graph)
    ]
    inner = _inner(graph, expand, ids, prefix) if expand > 0 else ()
    title = marks.titled(graph.name)
    return Picture(title, ids[graph.start], tuple(shapes), tuple(strokes), tuple(inner), prefix)


def _inner(graph: Graph[S], expand: int, ids: dict[str, str], prefix: str) -> Iterator[Inner]:
    number = 0
    for name, node in graph.nodes.items():
        contract = contract_of(node)
        for child in () if contract is None else contract.children:
            known: Graph[Any] | None = child.graph
            if known is not None:
                words = "" if child.name == known.name else known.name
                marks = Marks(title=words)
                below = f"{prefix}c{number}_"
                number += 1
                drawn = _picture(known, marks, expand - 1, below)
                yield Inner(ids[name], _titled(drawn, marks.titled(child.name)))


def _titled(one: Picture, title: str) -> Picture:
    return Picture(title, one.start, one.shapes, one.strokes, one.inner, one.prefix)
