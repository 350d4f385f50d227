"""GL4: the cycles that nothing bounds, why, and what would bound them.

Each graph asks for them before its first run.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, TypeVar

from ..contract import Moves
from ..graph import Graph
from ..node_protocol import Kind, unwrapped
from ..nodes import Function
from .calls import CallWalk
from .cycles import Cycle, unbounded
from .ground import Ground, Trail, named
from .ranking import Ranking
from .report import Finding, Unknown, aside_in, excused
from .walker import NO_RUN, TRIES, Barred

__all__ = ["Endless", "circling", "endless"]

S = TypeVar("S")

ROUNDS_MAX: Final = 30
"""How often a run goes round a cycle to show that nothing bounds it, whatever is on it."""

TURNS: Final[frozenset[Kind]] = frozenset({"prepare", "model", "stop"})
"""The kinds of nodes whose cycles a StopCheck bounds: they go from turn to turn."""

STOP: Final = (
    "lead the cycle through a StopCheck, and through a PrepareStep, which opens the turns that it "
    "counts"
)


class Endless(NamedTuple):
    """A cycle that nothing bounds.

    Attributes:
        node: the node that it is set aside by, with GL4.
        words: which it is, what is missing, and how to give it.
    """

    node: str
    words: str


def endless(graph: Graph[S], *, every: bool = False) -> tuple[Endless, ...]:
    """Return the cycles of `graph` without a known bound that are not set aside.

    The cycles of its children belong to their own graphs.

    Args:
        graph: the graph.
        every: to return all of them; else, of very many, the first that are found.
    """
    ground = Ground(graph)
    if not ground.reached:
        return ()
    aside = aside_in(graph.ignore)
    found = circling(Ranking(ground), CallWalk(ground), aside, every=every, shown=False)
    return tuple(
        [
            Endless(
                one.node,
                f"{one.message} Fix: {one.fix}" if isinstance(one, Finding) else one.reason,
            )
            for one in found
            if not excused(one, graph.ignore)
        ]
    )


def circling(
    ranking: Ranking[S],
    walk: CallWalk[S],
    aside: Container[str] = frozenset(),
    *,
    every: bool = False,
    shown: bool = True,
) -> Iterator[Finding | Unknown]:
    """Yield a finding for each cycle without a bound, or why that is unknown.

    The other arguments are those of `unbounded`.

    Args:
        ranking: what bounds the graph's cycles.
        walk: its calls.
        aside: the nodes whose cycles are excused.
        every: to return all of them.
        shown: whether a finding has to be shown by a run.
    """
    ground = ranking.ground
    opened = any("turn" in ranking.may_move(way) for row in ranking.ways.values() for way in row)
    for cycle in unbounded(ranking, walk, aside, every=every):
        names = [way.source for way in cycle.around]
        silent = tuple(name for name in names if ground.contracts[name] is None)
        if silent:
            yield Unknown(
                "GL4",
                f"nobody says how often a run goes round {cycle.words}: give {named(silent)} a "
                f"`contract`, or {STOP}.",
                names[0],
            )
            continue
        if opened and _may_count(ranking, cycle.around):
            yield Unknown(
                "GL4",
                f"a stop check is on {cycle.words}, and nobody can tell whether each round adds a "
                f"step: {_what_counts(ranking, cycle.around)}.",
                names[0],
            )
            continue
        if held := _held_again(ranking, cycle.around):
            yield Unknown(
                "GL4",
                f"{held!r} holds calls once if a gate asks about them, and none does on "
                f"{cycle.words}: lead `Held` to a Gate.",
                names[0],
            )
            continue
        run = _gone_round(ranking, walk, cycle) if shown else cycle
        why, fix = _reason(ranking, (run or cycle).around)
        if run is None:
            yield Unknown(
                "GL4",
                f"nothing is known to bound the cycle {cycle.words}: {why}. But {NO_RUN} again "
                f"and again. Fix: {fix}",
                names[0],
            )
            continue
        yield ground.finding(
            "GL4",
            f"nothing bounds the cycle {run.words}: {why}.",
            fix,
            node=names[0],
            walked=(*run.into, *run.around),
            outcome=run.around[-1].word,
        )


def _gone_round(ranking: Ranking[S], walk: CallWalk[S], cycle: Cycle) -> Cycle | None:
    """Return a cycle that a run goes round again and again: this one, or another of its part."""
    walker, found, ways = walk.ground.walker, cycle, cycle.ways
    for _ in range(TRIES):
        caps = [cap.times for way in found.around if (cap := ranking.cap(way)) is not None]
        # By the bounds on it no run would go round it so often.
        around = found.around * min(ROUNDS_MAX, 2 + max(caps, default=2))
        run = walker.first(partial(_led_round, walk, found, around))
        if run is not None:
            return replace(found, into=run[: -len(around)])
        length = walker.walk((*found.into, *around)) - len(found.into)
        missed = around[max(0, length)]
        ways = [way for way in ways if ranking.drawn(way) != missed]
        names = dict.fromkeys(name for way in ways for name in (way.source, way.target))
        others = unbounded(ranking, walk, among=ranking.parts(names, ways))
        if not others:
            return None
        found = others[0]
    return None


def _led_round(walk: CallWalk[S], cycle: Cycle, around: Trail, barred: Barred) -> Trail | None:
    """Return a shortest way to a cycle, and around, without what is barred."""
    if not barred:
        return (*cycle.into, *around)
    into = walk.led_to(lambda at, _: at.node == cycle.node, barred, around)
    return None if into is None else (*into, *around)


def _held_again(ranking: Ranking[S], cycle: Trail) -> str:
    """Return the node that holds calls on a cycle where no gate asks about them, if any."""
    return next((way.source for way in cycle if way in ranking.held_again(cycle)), "")


def _may_count(ranking: Ranking[S], cycle: Trail) -> bool:
    """Whether a counter on a cycle may be moved by it, though not for sure.

    Steps are recorded of turns: without any turn, none ever is.
    """
    none: frozenset[Moves] = frozenset()
    caps = [cap for way in cycle if (cap := ranking.cap(way)) is not None]
    counted = none.union(*(cap.counts for cap in caps))
    return any(counted & ranking.may_move(way) for way in cycle)


def _what_counts(ranking: Ranking[S], cycle: Trail) -> str:
    """Return what would make each round of a cycle count."""
    if not ranking.opens_again and any("turn" in ranking.moved(way) for way in cycle):
        return (
            "a PrepareStep that fails, or is stopped, opens no turn. Lead what has failed, was "
            "stopped or is over to END"
        )
    if any("turn" in ranking.moved(way) for way in cycle):
        return (
            "a turn that is opened once more, as a Compact asks for, is no other one. Close it "
            "on the way by an Append, or lead what has failed, was stopped or is over to END"
        )
    return "lead the cycle through a PrepareStep, which opens a turn"


def _reason(ranking: Ranking[S], cycle: Trail) -> tuple[str, str]:
    """Return why nothing bounds a cycle, and what would."""
    fix = f"{_fix(ranking, cycle)}."
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
                fix,
            )
    return "no outcome on it is bounded", fix


def _fix(ranking: Ranking[S], cycle: Trail) -> str:
    """Return what bounds a cycle of such nodes."""
    nodes = [ranking.ground.graph.nodes[way.source] for way in cycle]
    if any(node.kind in TURNS for node in nodes):
        return STOP
    own = next((node.name for node in unwrapped(nodes) if isinstance(node, Function)), "")
    cap = f", or give an outcome of {own!r} on it a `cap=`" if own else ""
    return f"lead the cycle through a Limit, which counts its rounds{cap}"
