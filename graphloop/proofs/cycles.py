"""GL4: every cycle is bounded by what its nodes promise.

Parts of the graph come apart as lines that are taken only so often leave them; what stays cyclic
has no bound. The witness leads from the start into a shortest such cycle and once around.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar, final

from ..contract import Moves
from .calls import CallWalk, Place
from .ground import Trail, Way, named, search, trail
from .ranking import Ranking
from .report import Finding, Unknown

__all__ = ["Cycle", "circling", "unbounded"]

S = TypeVar("S")

LINES_MAX: Final = 200_000
"""How many lines may be looked at to find a shortest cycle; of a large part it is a short one."""

CYCLES_MAX: Final = 50
"""How many cycles are told: who has as many wants to mend some before reading on."""

STOP: Final = (
    "lead the cycle through a StopCheck, and through a PrepareStep, which opens the turns that it "
    "counts"
)


@final
@dataclass(frozen=True, slots=True)
class Cycle:
    """A way round that nothing bounds, and a shortest way into it."""

    into: Trail
    around: Trail

    @property
    def words(self) -> str:
        """Its nodes, back to the first."""
        names = (*(way.source for way in self.around), self.around[0].source)
        return " -> ".join(names)


def unbounded(ranking: Ranking[S], walk: CallWalk[S]) -> tuple[Cycle, ...]:
    """Return a shortest cycle of each part of the graph that nothing bounds, nearest first."""
    todo = list(ranking.parts(*ranking.whole()))
    found: list[Cycle] = []
    while todo and len(found) < CYCLES_MAX:
        names, ways = todo.pop()
        out = set(ranking.bounded(ways))
        left: Sequence[str] = names
        if not out:
            cycle, passed = _cycle(ranking, walk, names, ways)
            found.append(cycle)
            # What else goes in circles here has a finding of its own.
            out = {way for way in ways if way.source in passed or way.target in passed}
            left = [name for name in names if name not in passed]
        todo += ranking.parts(left, [way for way in ways if way not in out])
    return tuple(sorted(found, key=lambda one: (len(one.into), one.words)))


def circling(ranking: Ranking[S], walk: CallWalk[S]) -> Iterator[Finding | Unknown]:
    """Yield a finding for every cycle without a bound, or that nobody can tell."""
    ground = ranking.ground
    opened = any("turn" in ranking.may_move(way) for row in ranking.ways.values() for way in row)
    for cycle in unbounded(ranking, walk):
        names = [way.source for way in cycle.around]
        silent = tuple(name for name in names if ground.contracts[name] is None)
        if silent:
            yield Unknown(
                "GL4",
                f"nobody says how often a run goes round {cycle.words}: give {named(silent)} a "
                f"`contract`, or {STOP}.",
            )
            continue
        if opened and _may_count(ranking, cycle.around):
            yield Unknown(
                "GL4",
                f"a stop check is on {cycle.words}, and nobody can tell whether each round adds a "
                "step: lead the cycle through a PrepareStep, which opens a turn.",
            )
            continue
        why, fix = _reason(ranking, cycle.around)
        yield ground.finding(
            "GL4",
            f"nothing bounds the cycle {cycle.words}: {why}.",
            fix,
            node=names[0],
            walked=(*cycle.into, *cycle.around),
            outcome=cycle.around[-1].word,
        )


def _cycle(
    ranking: Ranking[S], walk: CallWalk[S], names: Sequence[str], ways: Sequence[Way]
) -> tuple[Cycle, frozenset[str]]:
    """Return a shortest cycle of a part, and the places it passes."""
    # A line whose own bound begins anew elsewhere goes round only with what sets it back.
    free = [way for way in ways if (cap := ranking.cap(way)) is None or cap.counts]
    repeated = _repeated(walk, ranking, free, alone=True) or _repeated(walk, ranking, ways)
    if repeated is not None:
        into, around = repeated
    else:
        around = _shortest(names, ways)
        order = {name: number for number, name in enumerate(walk.ground.parents)}
        at = min(range(len(around)), key=lambda one: order.get(ranking.node(around[one].source), 0))
        around = (*around[at:], *around[:at])
        into = walk.ground.trail(ranking.node(around[0].source))
    drawn = tuple(
        Way(ranking.node(way.source), way.outcome, ranking.node(way.target)) for way in around
    )
    return Cycle(into, drawn), frozenset(way.source for way in around)


def _shortest(names: Sequence[str], ways: Sequence[Way]) -> Trail:
    """Return a shortest cycle of a part, as far as the lines go."""
    rows = _rows(ways)
    best: Trail = ()
    for name in names[: max(1, LINES_MAX // len(ways))]:
        first: dict[str, Way] = {}
        for way in rows[name]:
            first.setdefault(way.target, way)
        found = search(first, lambda one: ((way, way.target) for way in rows.get(one, ())))
        back = trail(found, name)
        begun = back[0].source if back else name
        if not best or len(back) + 1 < len(best):
            best = (first[begun], *back)
    return best


def _repeated(  # noqa: C901 - one search from each place
    walk: CallWalk[S], ranking: Ranking[S], ways: Sequence[Way], *, alone: bool = False
) -> tuple[Trail, Trail] | None:
    """Return a shortest cycle that leaves the calls as they were, and the way into it.

    A run that goes round it once can go round again. With `alone`, nothing on the cycle itself
    bounds it.
    """
    rows = _rows(ways)

    def steps(at: tuple[str, Place]) -> Iterator[tuple[Way, tuple[str, Place]]]:
        name, place = at
        for way in rows.get(name, ()):
            after = walk.after(place, way.outcome)
            if after is not None:
                yield way, (way.target, Place(ranking.node(way.target), *after))

    by_node: dict[str, list[Place]] = {}
    for place in walk.found:
        by_node.setdefault(place.node, []).append(place)
    starts = [(name, place) for name in rows for place in by_node.get(ranking.node(name), ())]
    best: tuple[Trail, Trail] | None = None
    for start in starts[: max(1, LINES_MAX // max(1, len(ways)))]:
        first: dict[tuple[str, Place], Way] = {}
        for way, there in steps(start):
            first.setdefault(there, way)
        found = search(first, steps)
        if start not in found:
            continue
        back, begun = trail(found, start), start
        while (before := found[begun]) is not None:
            begun = before[1]
        around = (first[begun], *back)
        into = walk.trail(start[1])
        if alone and ranking.bounded(around):
            continue
        if best is None or (len(around), len(into)) < (len(best[1]), len(best[0])):
            best = into, around
    return best


def _rows(ways: Sequence[Way]) -> dict[str, list[Way]]:
    rows: dict[str, list[Way]] = {}
    for way in ways:
        rows.setdefault(way.source, []).append(way)
    return rows


def _may_count(ranking: Ranking[S], cycle: Trail) -> bool:
    """Whether a counter on a cycle may be moved by it, though not for sure.

    Steps are recorded of turns: without any turn, none ever is.
    """
    none: frozenset[Moves] = frozenset()
    caps = [cap for way in cycle if (cap := ranking.cap(way)) is not None]
    counted = none.union(*(cap.counts for cap in caps))
    return any(counted & ranking.may_move(way) for way in cycle)


def _reason(ranking: Ranking[S], cycle: Trail) -> tuple[str, str]:
    """Return why nothing bounds a cycle, and what would."""
    for way in cycle:
        cap = ranking.cap(way)
        if cap is not None and cap.counts:
            return (
                f"{way.source!r} counts turns, and a run can come round without opening one",
                "lead the cycle through a PrepareStep, which opens a turn.",
            )
        if cap is not None:
            return (
                f"{way.word!r} of {way.source!r} is bounded, and what it counts begins anew "
                "on a way round",
                f"{STOP}.",
            )
    return "no outcome on it is bounded", f"{STOP}."
