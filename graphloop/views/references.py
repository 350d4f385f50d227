"""references: a line that leads far away in a large graph ends at its target's name instead.

A hundred lines across a whole page hide everything else, and laying them out takes minutes. The
main path is drawn as it is; what would cross most of the page beside it says where it goes on.
Small graphs are left alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Final, final

from .picture import Picture, Shape, Stroke

__all__ = ["BESIDE_MAX", "FAR", "LONG", "REACH_MAX", "has_references", "with_references"]

FAR: Final = 8
"""How many nodes further a line is drawn in a large graph."""

LONG: Final = 100
"""How many nodes further a line is drawn in any graph."""

REACH_MAX: Final = 1_000
"""How far all lines beside the main path may lead together, in nodes, until a graph is large."""

BESIDE_MAX: Final = 500
"""The same for a graph most of which is beside its main path."""


@final
@dataclass(frozen=True, slots=True)
class _Layers:
    """How far down each shape stands, by which line that is so, and how many the main path has."""

    ranks: Mapping[str, int]
    first: Set[tuple[str, str]]
    spine: int


def with_references(drawn: Picture) -> Picture:
    """Return a picture in which no line leads far, if there are too many that do."""
    far = _far(drawn)
    if not far:
        return drawn
    names = {one.id: one for one in drawn.shapes}
    strokes: list[Stroke] = []
    shapes: list[Shape] = []
    for number, stroke in enumerate(drawn.strokes):
        if stroke not in far:
            strokes.append(stroke)
            continue
        target, place = names[stroke.target], f"{drawn.prefix}to{number}"
        words = target.words[:1]
        if target.kind is not None:
            words = (f"to {words[0]}",)
        shapes.append(Shape(place, words, target.kind, is_reference=target.kind is not None))
        strokes.append(replace(stroke, target=place))
    every = (*drawn.shapes[:-1], *shapes, drawn.shapes[-1])
    return replace(drawn, shapes=every, strokes=tuple(strokes))


def has_references(drawn: Picture) -> bool:
    """Whether a line ends at a name, also in what is drawn in boxes beside a picture."""
    return any(one.is_reference for one in with_references(drawn).shapes) or any(
        has_references(one.picture) for one in drawn.inner
    )


def _far(drawn: Picture) -> frozenset[Stroke]:
    """Return the lines that are not drawn whole."""
    layers = _layers(drawn)
    spans = {
        one: abs(layers.ranks[one.target] - layers.ranks[one.source])
        for one in drawn.strokes
        if one.role != "main"
    }
    reach = sum(spans.values())
    if reach > BESIDE_MAX and layers.spine < len(drawn.shapes) // 2:
        # How far down a node will stand, nobody can tell here: each is drawn below the first that
        # leads to it.
        return frozenset(one for one in spans if (one.source, one.target) not in layers.first)
    far = FAR if reach > REACH_MAX else LONG
    return frozenset(one for one, span in spans.items() if span > far)


def _layers(drawn: Picture) -> _Layers:
    after: dict[str, list[str]] = {}
    spine: dict[str, str] = {}
    for one in drawn.strokes:
        after.setdefault(one.source, []).append(one.target)
        if one.role == "main":
            spine[one.source] = one.target
    ranks = {place: rank for rank, place in enumerate(_along(drawn.start, spine))}
    length, first, queue = len(ranks), set[tuple[str, str]](), deque(ranks)
    while queue:
        source = queue.popleft()
        for target in after.get(source, ()):
            if target not in ranks:
                ranks[target] = ranks[source] + 1
                first.add((source, target))
                queue.append(target)
    # What no way leads to stands at the top.
    return _Layers({one.id: ranks.get(one.id, 0) for one in drawn.shapes}, first, length)


def _along(start: str, spine: Mapping[str, str]) -> Iterator[str]:
    """Yield the main path, until it comes to where it was; in boxes, it may."""
    passed: set[str] = set()
    place: str | None = start
    while place is not None and place not in passed:
        passed.add(place)
        yield place
        place = spine.get(place)
