"""GL2: no tool runs that a gate has not spoken about since the last reply.

A shortest way from the start to a node that runs tools, with no gate left by `Settled` since a
model answered, is the witness.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TypeVar

from .calls import CallWalk
from .ground import Trail
from .report import Finding, Unknown
from .walker import Barred

__all__ = ["open_nodes", "ungated"]

S = TypeVar("S")


def ungated(walk: CallWalk[S]) -> Iterator[Finding | Unknown]:
    """Yield every node that may run tools before a gate has spoken."""
    for node in open_nodes(walk):
        yield walk.ground.told(partial(_ungated, walk, node), partial(_told, walk, node))


def open_nodes(walk: CallWalk[S]) -> Iterable[str]:
    """Return the nodes that may run tools before a gate has spoken, the nearest first."""
    found = [one.node for one in walk.found if not one.gated and walk.runs_tools(one.node)]
    return dict.fromkeys(found)


def _ungated(walk: CallWalk[S], node: str, barred: Barred) -> Trail | None:
    return walk.led_to(lambda at, _: at.node == node and not at.gated, barred)


def _told(walk: CallWalk[S], node: str, walked: Trail) -> Finding:
    before = f"the way from {walked[-1].source!r}" if walked else "the start"
    return walk.ground.finding(
        "GL2",
        "tools may run here that no gate has spoken about since the model was last asked.",
        f"put a Gate into {before}, and lead its `Settled` to {node!r}.",
        node=node,
        walked=walked,
    )
