"""GL10: nothing effectful precedes a park in the same node.

A node that acts, or runs tools, and asks people in one visit could be resumed into doing it again.
A node that parts the two by `Held` runs what needs nobody, and leaves the rest to a gate.
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
    """Yield every node that acts, or runs tools, and waits for people in one visit."""
    yield from ground.unpromised("GL10")
    for name in ground.reached:
        contract = ground.contracts[name]
        node = ground.graph.nodes[name]
        acts = node.kind == "act"
        if contract is None or not (contract.asks and (contract.tools or acts)):
            continue
        if not any(issubclass(outcome, Held) for outcome in node.outcomes):
            yield ground.finding(
                "GL10",
                f"{'acts' if acts else 'runs tools'} and waits for a person in one visit.",
                "ask in a node of its own before, or leave by `Held` to a gate that asks.",
                node=name,
                walked=ground.run_to(name),
            )
