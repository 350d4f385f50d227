"""GL2: no tool runs that a gate has not spoken about, and what a gate holds comes back to a gate.

A shortest way from the start to a node that runs tools, with no gate left by `Settled` since a
model answered, is the witness. A node that acts by itself (`act`) needs as much, or a person's
`Accepted`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from ..errors import nearest
from ..node_protocol import unwrapped
from ..nodes.gate import Gate
from ..outcomes import Accepted, Held, Settled
from ..policy import unmatched
from .calls import CallWalk, Place
from .ground import END, Way, search, trail
from .report import Finding

__all__ = ["unapproved", "unasked", "ungated", "unruled"]

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


def unapproved(walk: CallWalk[S]) -> Iterator[Finding]:
    """Yield every node that acts before a person or a gate has let it since the last reply."""
    ground = walk.ground
    acting = {name for name, node in ground.graph.nodes.items() if node.kind == "act"}
    if not acting:
        return

    def steps(at: tuple[Place, bool]) -> Iterator[tuple[Way, tuple[Place, bool]]]:
        for way, place in walk.steps(at[0]):
            yield way, (place, _approved(walk, way, before=at[1]))

    found = search(
        [(place, False) for place, parent in walk.found.items() if parent is None], steps
    )
    for at in found:
        (node, *_), approved = at
        if node in acting and not approved:
            acting.remove(node)
            yield ground.finding(
                "GL2",
                "acts, and no person and no gate has let it since the model was last asked.",
                f"put an Approve before it, and lead only its `Accepted` to {node!r}; or set it "
                "aside with a reason (`ignore`).",
                node=node,
                walked=trail(found, at),
            )


def _approved(walk: CallWalk[S], way: Way, *, before: bool) -> bool:
    """Whether an approval stands once a node was left; a model that is asked again undoes it."""
    contract, kind = walk.ground.contracts[way.source], walk.kind(way.source)
    if kind == "gate" and issubclass(way.outcome, Settled):
        return True
    if contract is None or contract.model_calls != 0 or contract.agents or contract.children:
        return False
    asked = contract.asks and kind != "gate" and issubclass(way.outcome, Accepted)
    return before or asked


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
