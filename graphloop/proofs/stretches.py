"""stretches: how far a run goes without waiting for anything.

The engine takes a run that passes a thousand nodes so for one that is lost, and breaks it off. What
is bounded may be bounded by more than that; then GL4 is not proven. A run that was stopped waits
for nothing more, which the engine keeps (GL13): a table can only lead it in a circle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, Final, TypeVar, cast

from ..node_protocol import Node, is_node
from ..nodes import (
    Append,
    Approve,
    Child,
    Critique,
    Fallback,
    Function,
    Limit,
    MapOver,
    ModelCall,
    Parallel,
    PrepareStep,
    Retrying,
    Router,
    StopCheck,
)
from ..outcomes import Aborted, Calls, Failed, Outcome, Overflow, Ready, Stop, Unplanned
from ..step import SETTLE_MAX
from .ground import Ground, Way, named
from .ranking import Ranking
from .report import Finding, Unknown
from .visits import Visits

__all__ = ["led_in_circles", "long_stretches"]

S = TypeVar("S")

AT_ONCE: Final[Mapping[type[object], frozenset[type[Outcome]]]] = {
    **dict.fromkeys((Approve, Critique, Function, ModelCall, Router), frozenset[type[Outcome]]()),
    # A run that is too deep, or has spent its budget, begins no other.
    **dict.fromkeys((Child, Parallel), frozenset({Failed})),
    MapOver: frozenset({Failed, Unplanned}),
    # These with a function of the caller's; without one, they never wait.
    PrepareStep: frozenset({Calls, Overflow}),
    StopCheck: frozenset({Stop}),
}
"""The outcomes by which a visit to a node that waits may be over before it has."""


def long_stretches(ranking: Ranking[S]) -> Iterator[Unknown]:
    """Yield that runs may be broken off where they pass too many nodes without waiting."""
    nodes = ranking.ground.graph.nodes
    places, ways = ranking.whole()
    at_once = {one: _at_once(nodes[ranking.node(one)]) for one in places}
    quiet = {one: 1.0 for one in places if at_once[one]}
    # Where there are calls, somebody waits for them: a gate, or who runs them.
    passed = {
        way
        for way in ways
        if way.outcome in at_once[way.source] and not issubclass(way.outcome, Calls)
    }
    within = [way for way in ways if way in passed and way.target in quiet]
    stay = Visits(ranking, quiet).among(quiet, within)
    # Who waits before a stretch, and after it, is passed as well.
    begun = any(way.target in quiet for way in ways if way not in passed)
    ended = any(way.target not in quiet for way in passed)
    most = stay.weight + begun + ended
    # What nothing bounds is found without that.
    if isfinite(most) and most > SETTLE_MAX:
        visited = sorted(quiet, key=lambda one: -stay.visits[one])
        names = tuple(dict.fromkeys(map(ranking.node, visited)))
        yield Unknown(
            "GL4",
            f"a run may pass {most:,.0f} nodes without waiting for anything ({named(names)}"
            f"), and is broken off after {SETTLE_MAX:,}: let it go round less often, or put a node "
            "that waits into its way.",
            names[0],
        )


def led_in_circles(ground: Ground[S]) -> Iterator[Finding]:
    """Yield each circle that the rows of a table lead a stopped run into."""
    ways = {name: _way_once_stopped(ground, name) for name in ground.reached}
    for name in ground.reached:
        at, walked = name, list[Way]()
        while (way := ways.pop(at, None)) is not None:
            at, walked = way.target, [*walked, way]
        circle = walked[[*[one.source for one in walked], at].index(at) :]
        if circle:
            names = " -> ".join([*[way.source for way in circle], at])
            # The circle is the table's; how a run comes to be stopped on it is no part of it.
            yield ground.finding(
                "GL13",
                f"a run that was stopped goes in a circle until the engine ends it: {names}.",
                "lead `Aborted` of a node of the circle to an append node, or to END.",
                node=at,
                outcome=circle[0].word,
                severity="warning",
            )


def _way_once_stopped(ground: Ground[S], name: str) -> Way | None:
    """Return the line by which a stopped run leaves a node; None where that is not known."""
    node = _kernel(ground.graph.nodes[name])
    outcome: type[Outcome] = Aborted
    match node:
        case StopCheck() | Limit():
            outcome = Stop
        case PrepareStep(callback=""):
            outcome = Ready
        case _ if type(node) is not Append and type(node) not in AT_ONCE:
            return None
        case _:
            pass
    return next((way for way in ground.ways[name] if way.outcome is outcome), None)


def _at_once(node: Node[Any, Outcome]) -> frozenset[type[Outcome]]:
    """Return the outcomes by which a visit may be over without having waited.

    What a class of the library waits for, one that derives from it may leave out: it is asked for
    exactly.
    """
    kernel = _kernel(node)
    kind: type[object] = type(kernel)
    match kernel:
        case Retrying() if kind is Retrying:
            return _at_once(kernel.node)
        case Fallback() if kind is Fallback:
            first = _at_once(kernel.first)
            return first | _at_once(kernel.second) if first else first
        case PrepareStep() | StopCheck() if not kernel.callback:
            return kernel.outcomes
        case _:
            return AT_ONCE.get(kind, kernel.outcomes)


def _kernel(node: Node[Any, Outcome]) -> Node[Any, Outcome]:
    """Return the node itself, without what only carries things for it."""
    while is_node(within := cast("object", getattr(node, "kernel", None))):
        node = within
    return node
