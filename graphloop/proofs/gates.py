"""GL2: no tool runs that a gate has not spoken about since the last reply.

A shortest way from the start to a node that runs tools, with no gate left by `Settled` since a
model answered, is the witness.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from .calls import CallWalk
from .report import Finding

__all__ = ["ungated"]

S = TypeVar("S")


def ungated(walk: CallWalk[S]) -> Iterator[Finding]:
    """Yield every node that may run tools before a gate has spoken."""
    told: set[str] = set()
    for place in walk.found:
        if place.gated or place.node in told or not walk.runs_tools(place.node):
            continue
        told.add(place.node)
        walked = walk.trail(place)
        last = walked[-1].source if walked else ""
        before = f"the way from {last!r}" if last else "the start"
        yield walk.ground.finding(
            "GL2",
            "tools may run here that no gate has spoken about since the model was last asked.",
            f"put a Gate into {before}, and lead its `Settled` to {place.node!r}.",
            node=place.node,
            walked=walked,
        )
