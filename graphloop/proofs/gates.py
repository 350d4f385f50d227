"""Gates: no tool runs before a gate has spoken (GL2, GL10).

A shortest way from the start to a node that runs tools, with no gate left by `Settled` since a
model answered, is the witness. A node that acts by itself (`act`) needs as much, or a person's
`Accepted`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TypeVar

from ..errors import nearest
from ..node_protocol import unwrapped
from ..nodes import Gate
from ..outcomes import Accepted, Held, Settled, outcome_name
from ..policy import NARROWER, shadowed, unmatched
from .calls import CallProduct, CallState
from .proof_graph import END, Arc, ProofGraph, TablePath, breadth_first, shortest_path
from .report import Finding, Unknown
from .run_search import Exclusions

__all__ = [
    "find_idle_rules",
    "find_parks_after_effects",
    "find_unapproved_acts",
    "find_unasked_holds",
    "find_ungated_tools",
    "open_nodes",
]

S = TypeVar("S")


def find_ungated_tools(walk: CallProduct[S]) -> Iterator[Finding | Unknown]:
    """Yield every node that may run tools before a gate has spoken."""
    for node in open_nodes(walk):
        yield walk.ground.confirmed(partial(_ungated, walk, node), partial(_told, walk, node))


def open_nodes(walk: CallProduct[S]) -> Iterable[str]:
    """Return the nodes that may run tools before a gate has spoken, the nearest first."""
    found = [one.node for one in walk.found if not one.gated and walk.runs_tools(one.node)]
    return dict.fromkeys(found)


def _ungated(walk: CallProduct[S], node: str, barred: Exclusions) -> TablePath | None:
    return walk.shortest_path(lambda at, _: at.node == node and not at.gated, barred)


def _told(walk: CallProduct[S], node: str, path: TablePath) -> Finding:
    before = f"the way from {path[-1].source!r}" if path else "the start"
    return walk.ground.finding(
        "GL2",
        "tools may run here that no gate has spoken about since the model was last asked.",
        f"put a Gate into {before}, and lead its `Settled` to {node!r}.",
        node=node,
        path=path,
    )


def find_unapproved_acts(walk: CallProduct[S]) -> Iterator[Finding | Unknown]:
    """Yield every node that acts before a person or a gate has let it since the last reply."""
    acting = {name for name, node in walk.ground.nodes.items() if node.kind == "act"}
    if not acting:
        return
    found = breadth_first(_start(walk), partial(_approving, walk))
    for node in dict.fromkeys(at.node for at, approved in found if not approved):
        if node in acting:
            yield walk.ground.confirmed(partial(_acting, walk, node), partial(_acts, walk, node))


def _start(walk: CallProduct[S]) -> list[tuple[CallState, bool]]:
    return [(next(iter(walk.found)), False)]


def _approving(
    walk: CallProduct[S], at: tuple[CallState, bool]
) -> Iterator[tuple[Arc, tuple[CallState, bool]]]:
    for arc, place in walk.steps(at[0]):
        yield arc, (place, _approved(walk, arc, before=at[1]))


def _acting(walk: CallProduct[S], node: str, barred: Exclusions) -> TablePath | None:
    return shortest_path(
        _start(walk),
        partial(_approving, walk),
        lambda at, _: at[0].node == node and not at[1],
        barred,
    )


def _acts(walk: CallProduct[S], node: str, path: TablePath) -> Finding:
    return walk.ground.finding(
        "GL2",
        "acts, and no person and no gate has let it since the model was last asked.",
        f"put an Approve before it, and lead only its `Accepted` to {node!r}; or set it aside with "
        "a reason (`ignore`).",
        node=node,
        path=path,
    )


def _approved(walk: CallProduct[S], arc: Arc, *, before: bool) -> bool:
    """Whether an approval stands once a node was left; a model that is asked again undoes it."""
    contract, kind = walk.ground.contracts[arc.source], walk.kind(arc.source)
    if kind == "gate" and issubclass(arc.outcome, Settled):
        return True
    if contract is None or contract.model_calls != 0 or contract.children:
        return False
    if contract.asks and kind not in {"gate", "execute"}:
        return issubclass(arc.outcome, Accepted)  # The last word counts: a no undoes a yes.
    return before


def find_unasked_holds(walk: CallProduct[S]) -> Iterator[Finding | Unknown]:
    """Yield every node whose held calls may be appended before a person is asked about them."""
    nodes = walk.ground.nodes
    if all(one.hold for one in unwrapped(nodes.values()) if isinstance(one, Gate)):
        return
    for node in nodes:
        if walk.runs_tools(node) and _unasked(walk, node, Exclusions()) is not None:
            yield walk.ground.confirmed(partial(_unasked, walk, node), partial(_passes, walk, node))


def _unasked(walk: CallProduct[S], node: str, barred: Exclusions) -> TablePath | None:
    """Return a shortest way on which what `node` sends back for a person meets no gate."""

    def steps(at: tuple[CallState, bool]) -> Iterator[tuple[Arc, tuple[CallState, bool]]]:
        for arc, place in walk.steps(at[0]):
            held = at[1] or (arc.source == node and issubclass(arc.outcome, Held))
            yield arc, (place, held and walk.kind(place.node) != "gate")

    def is_goal(at: tuple[CallState, bool], _: Arc | None) -> bool:
        return at[1] and (at[0].node == END or walk.kind(at[0].node) == "append")

    return shortest_path(_start(walk), steps, is_goal, barred)


def _passes(walk: CallProduct[S], node: str, path: TablePath) -> Finding:
    return walk.ground.finding(
        "GL2",
        "calls that a gate holds for a person are appended, and no person is asked about them.",
        "lead `Held` back to the Gate, which asks; or leave out its `hold=False`.",
        node=node,
        path=path,
        outcome=outcome_name(Held),
    )


def find_idle_rules(walk: CallProduct[S], tools: tuple[str, ...]) -> Iterator[Finding]:
    """Yield every gate with a rule that protects none of these tools; none are known if empty."""
    for name, node in walk.ground.nodes.items():
        for one in unwrapped([node]):
            rules = one.rules if tools and isinstance(one, Gate) else ()
            for _, problem in shadowed(rules, tools):
                yield walk.ground.finding("GL2", problem, NARROWER, node=name)
            for tool in unmatched(rules, tools):
                yield walk.ground.finding(
                    "GL2",
                    f"a rule names {tool!r}, which is none of the tools.{nearest(tool, tools)}",
                    f"name one of {', '.join(tools)}; for tools that come later, a pattern.",
                    node=name,
                )


def find_parks_after_effects(ground: ProofGraph[S]) -> Iterator[Finding | Unknown]:
    """Yield every node that acts, or runs tools, and waits for people in one visit."""
    yield from ground.unknown_without_contracts("GL10")
    for name in ground.reached:
        contract = ground.contracts[name]
        node = ground.nodes[name]
        acts = node.kind == "act"
        if contract is None or not (contract.asks and (contract.tools or acts)):
            continue
        if not any(issubclass(outcome, Held) for outcome in node.outcomes):
            yield ground.finding(
                "GL10",
                f"{'acts' if acts else 'runs tools'} and waits for a person in one visit.",
                "ask in a node of its own before, or leave by `Held` to a gate that asks.",
                node=name,
                path=ground.run_to(name),
            )
