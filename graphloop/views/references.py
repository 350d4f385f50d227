"""references: a line that leads far away in a large graph ends at its target's name instead.

A hundred lines across a whole page hide everything else, and laying them out takes minutes. The
main path is drawn as it is; what would cross most of the page beside it says where it goes on.
Where nearly every shape leads to nearly every other one, as the boxes of a large graph do, one way
through all of them is drawn, and beside each stands a list of where else it leads. Small graphs are
left alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Final, final

from .marks import Tone
from .picture import Picture, Shape, Stroke

__all__ = [
    "BESIDE_MAX",
    "CROWDED",
    "CROWDED_MIN",
    "FAR",
    "LONG",
    "REACH_MAX",
    "has_references",
    "with_references",
]

FAR: Final = 8
"""How many nodes further a line is drawn in a large graph."""

LONG: Final = 100
"""How many nodes further a line is drawn in any graph."""

REACH_MAX: Final = 1_000
"""How far all lines beside the main path may lead together, in nodes, until a graph is large."""

BESIDE_MAX: Final = 500
"""The same for a graph most of which is beside its main path."""


CROWDED: Final = 4
"""How many lines a shape may have on average."""

CROWDED_MIN: Final = 60
"""Up to how many lines nothing is crowded."""


@final
@dataclass(frozen=True, slots=True)
class _Layers:
    """How far down each shape stands, by which line that is so, and how many the main path has."""

    ranks: Mapping[str, int]
    first: Set[tuple[str, str]]
    spine: int


def with_references(drawn: Picture) -> Picture:
    """Return a picture in which no line leads far, if there are too many that do."""
    layers = _layers(drawn)
    far = _far(drawn, layers)
    if _is_crowded(drawn) and (not far or _is_beside(drawn, layers)):
        return _in_column(drawn)
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


def _is_crowded(drawn: Picture) -> bool:
    return len(drawn.strokes) > max(CROWDED_MIN, CROWDED * len(drawn.shapes))


def _is_beside(drawn: Picture, layers: _Layers) -> bool:
    """Whether most of a graph is beside its main path."""
    return layers.spine < len(drawn.shapes) // 2


def _in_column(drawn: Picture) -> Picture:
    """Return a picture with one way through all shapes, and lists of where else each leads.

    What is dashed, or laid over a line, is in a list of its own.
    """
    names = {one.id: one.words[0] for one in drawn.shapes}
    whole = _way_through(drawn)
    strokes: list[Stroke] = []
    lists: dict[tuple[str, bool, Tone | None], list[Stroke]] = {}
    for stroke in drawn.strokes:
        if (stroke.source, stroke.target) in whole or stroke.source == stroke.target:
            strokes.append(stroke)
        else:
            alike = (stroke.source, stroke.role == "quiet", stroke.tone)
            lists.setdefault(alike, []).append(stroke)
    shapes: list[Shape] = []
    for number, ((source, is_quiet, tone), listed) in enumerate(lists.items()):
        rows = [f"to {names[one.target]}: {', '.join(map(str, one.words))}" for one in listed]
        place = f"{drawn.prefix}to{number}"
        shapes.append(Shape(place, tuple(rows), "pure", is_reference=True))
        strokes.append(Stroke(source, place, (), "quiet" if is_quiet else "side", tone))
    every = (*drawn.shapes[:-1], *shapes, drawn.shapes[-1])
    return replace(drawn, shapes=every, strokes=tuple(strokes))


def _way_through(drawn: Picture) -> Set[tuple[str, str]]:
    """Return the lines by which all is come to that can be, each as far down as it goes.

    What leads to END comes last, as END does.
    """
    last = drawn.shapes[-1].id
    before_last = {one.source for one in drawn.strokes if one.target == last}

    def place(one: Stroke) -> tuple[bool, bool, bool]:
        return one.target == last, one.target in before_last, one.role != "main"

    after: dict[str, list[str]] = {}
    for one in sorted(drawn.strokes, key=place):
        after.setdefault(one.source, []).append(one.target)
    passed, found, way = {drawn.start}, set[tuple[str, str]](), [drawn.start]
    left = {source: iter(targets) for source, targets in after.items()}
    while way:
        target = next((one for one in left.get(way[-1], ()) if one not in passed), None)
        if target is None:
            way.pop()
            continue
        found.add((way[-1], target))
        passed.add(target)
        way.append(target)
    return found


def _far(drawn: Picture, layers: _Layers) -> frozenset[Stroke]:
    """Return the lines that are not drawn whole."""
    spans = {
        one: abs(layers.ranks[one.target] - layers.ranks[one.source])
        for one in drawn.strokes
        if one.role != "main"
    }
    reach = sum(spans.values())
    if reach > BESIDE_MAX and _is_beside(drawn, layers):
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
