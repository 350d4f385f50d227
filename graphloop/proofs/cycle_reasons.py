"""cycle_reasons: why nothing bounds a cycle, and what would, in words that fit its nodes."""

from __future__ import annotations

from typing import Final, TypeVar

from ..contract import Moves
from ..node_protocol import Kind, unwrapped
from ..nodes import Function
from .ground import Trail
from .ranking import Ranking

__all__ = ["STOP", "may_count", "reason", "what_counts"]

S = TypeVar("S")

TURNS: Final[frozenset[Kind]] = frozenset({"prepare", "model", "stop"})
"""The kinds of nodes whose cycles a StopCheck bounds: they go from turn to turn."""

STOP: Final = (
    "lead the cycle through a StopCheck, and through a PrepareStep, which opens the turns that it "
    "counts"
)


def may_count(ranking: Ranking[S], cycle: Trail) -> bool:
    """Whether a counter on a cycle may be moved by it, though not for sure.

    Steps are recorded of turns: without any turn, none ever is.
    """
    none: frozenset[Moves] = frozenset()
    caps = [cap for way in cycle if (cap := ranking.cap(way)) is not None]
    counted = none.union(*(cap.counts for cap in caps))
    return any(counted & ranking.may_move(way) for way in cycle)


def what_counts(ranking: Ranking[S], cycle: Trail) -> str:
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


def reason(ranking: Ranking[S], cycle: Trail) -> tuple[str, str]:
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
