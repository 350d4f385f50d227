"""stretches: how far a run goes without waiting for anything.

The engine takes a run that passes a thousand nodes so for one that is lost, and breaks it off. What
is bounded may be bounded by more than that; then GL4 is not proven.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any, Final, TypeVar, cast

from ..node_protocol import Node, unwrapped
from ..nodes.critique import Critique
from ..nodes.fallback import Fallback
from ..nodes.function import Function
from ..nodes.map_over import MapOver
from ..nodes.prepare_step import PrepareStep
from ..nodes.retrying import Retrying
from ..nodes.router import Router
from ..nodes.stop_check import StopCheck
from ..outcomes import Calls, Outcome
from ..step import SETTLE_MAX
from .ground import named
from .ranking import Ranking
from .report import Unknown
from .visits import Visits

__all__ = ["long_stretches"]

S = TypeVar("S")

WAITS: Final = (Critique, Function, Router)
"""Nodes that wait for something on each visit, beside those of the kinds that do."""

WAITING_KINDS: Final = frozenset({"graph", "human", "model"})


def long_stretches(ranking: Ranking[S]) -> Iterator[Unknown]:
    """Yield that runs may be broken off where they pass too many nodes without waiting."""
    nodes = ranking.ground.graph.nodes
    places, ways = ranking.whole()
    quiet = dict.fromkeys((one for one in places if _is_quiet(nodes[ranking.node(one)])), 1.0)
    # Where there are calls, somebody waits for them: a gate, or who runs them.
    within = [
        way
        for way in ways
        if way.source in quiet and way.target in quiet and not issubclass(way.outcome, Calls)
    ]
    stay = Visits(ranking, quiet).among(quiet, within)
    # What nothing bounds is found without that.
    if isfinite(stay.weight) and stay.weight >= SETTLE_MAX:
        visited = sorted(quiet, key=lambda one: -stay.visits[one])
        names = tuple(dict.fromkeys(map(ranking.node, visited)))
        yield Unknown(
            "GL4",
            f"a run may pass {stay.weight:,.0f} nodes without waiting for anything ({named(names)}"
            f"), and is broken off after {SETTLE_MAX:,}: let it go round less often, or put a node "
            "that waits into its way.",
            names[0],
        )


def _is_quiet(node: Node[Any, Outcome]) -> bool:
    """Whether a visit may be over without having waited."""
    return any(
        not isinstance(one, WAITS)
        and not (isinstance(one, PrepareStep | StopCheck) and one.callback)
        and (one.kind not in WAITING_KINDS or isinstance(one, MapOver))
        for one in map(_kernel, unwrapped([node]))
        if not isinstance(one, Fallback | Retrying)
    )


def _kernel(node: Node[Any, Outcome]) -> Node[Any, Outcome]:
    """Return the node itself, without what only carries things for it."""
    return cast("Node[Any, Outcome]", getattr(node, "kernel", node))
