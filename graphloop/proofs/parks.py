"""GL10: nothing effectful precedes a park in the same node.

A node that runs tools and asks people in one visit could be resumed into running them again. One
that parts the two by `Held` runs what needs nobody, and leaves the rest to a gate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from ..outcomes import Held
from .ground import Ground
from .report import Finding, Unknown

__all__ = ["parked_after_effects"]

S = TypeVar("S")


def parked_after_effects(ground: Ground[S]) -> Iterator[Finding | Unknown]:
    """Yield every node that runs tools and waits for people in one visit."""
    yield from ground.unpromised("GL10")
    for name in ground.reached:
        contract = ground.contracts[name]
        if contract is None or not (contract.tools and contract.asks):
            continue
        if not any(issubclass(one, Held) for one in ground.graph.nodes[name].outcomes):
            yield ground.finding(
                "GL10",
                "runs tools and waits for a person in one visit.",
                "ask in a node of its own before, or leave by `Held` to a gate that asks.",
                node=name,
                walked=ground.run_to(name),
            )
