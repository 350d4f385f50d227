"""GL2: no tool runs that a gate has not spoken about, and what a gate holds comes back to a gate.

A shortest way from the start to a node that runs tools, with no gate left by `Settled` since a
model answered, is the witness.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from ..errors import nearest
from ..node_protocol import unwrapped
from ..nodes.gate import Gate
from ..outcomes import Held
from ..policy import unmatched
from .calls import CallWalk
from .ground import END, search
from .report import Finding

__all__ = ["unasked", "ungated", "unruled"]

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


def unasked(walk: CallWalk[S]) -> Iterator[Finding]:
    """Yield every node whose held calls may be appended before a person is asked about them."""
    nodes = walk.ground.graph.nodes
    if all(one.hold for one in unwrapped(nodes.values()) if isinstance(one, Gate)):
        return
    told: set[str] = set()
    for place in walk.found:
        for way, after in () if place.node in told else walk.steps(place):
            if not (walk.runs_tools(place.node) and issubclass(way.outcome, Held)):
                continue
            led = search(
                [after], lambda one: [] if walk.kind(one.node) == "gate" else walk.steps(one)
            )
            if any(one.node == END or walk.kind(one.node) == "append" for one in led):
                told.add(place.node)
                yield walk.ground.finding(
                    "GL2",
                    "calls that a gate holds for a person are appended, and nobody is ever asked.",
                    "lead `Held` back to the Gate, which asks; or leave out its `hold=False`.",
                    node=place.node,
                    walked=(*walk.trail(place), way),
                    outcome=way.word,
                )


def unruled(walk: CallWalk[S], tools: tuple[str, ...]) -> Iterator[Finding]:
    """Yield every gate with a rule about a tool that is none of these; none are known if empty."""
    for name, node in walk.ground.graph.nodes.items():
        for one in unwrapped([node]):
            missing = unmatched(one.rules, tools) if tools and isinstance(one, Gate) else ()
            for tool in missing:
                yield walk.ground.finding(
                    "GL2",
                    f"a rule names {tool!r}, which is none of the tools.{nearest(tool, tools)}",
                    f"name one of {', '.join(tools)}; for tools that come later, a pattern.",
                    node=name,
                )
