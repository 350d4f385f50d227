"""Gates: tools, nodes of kind `act` and screened models need a gate before them (GL2, GL10).

A node that runs tools needs a gate that has left by `Settled` since the model's last reply. A node
of kind `act` needs such a gate, or a person's `Accepted`. The witness of a fault is a shortest path
from the start to the node without that gate or person. Where a graph has a screen, a model that is
asked on a way past the screen is a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, TypeAlias, TypeVar

from ..errors import nearest
from ..node_protocol import unwrapped
from ..nodes import Gate, Screen, Screened
from ..outcomes import Aborted, Accepted, ApprovalNeeded, Blocked, Failed, Settled, outcome_name
from ..policy import NARROWER, shadowed, unmatched
from .calls import CallProduct, CallState
from .proof_graph import (
    END,
    Arc,
    ProofGraph,
    TablePath,
    breadth_first,
    quote_names,
    shortest_path,
)
from .report import Finding, Unknown
from .run_search import Exclusions

__all__ = [
    "find_idle_rules",
    "find_parks_after_effects",
    "find_unapproved_acts",
    "find_unasked_holds",
    "find_ungated_tools",
    "find_unscreened_models",
    "ungated_nodes",
]

S = TypeVar("S")

UNSCREENED: Final = (Blocked, Failed, Aborted)
"""The outcomes of a screen after which what the user says has not passed."""

_Flagged: TypeAlias = tuple[CallState, bool]
"""A state of the call product, with a Boolean flag that a proof tracks along the path."""

_Judged: TypeAlias = tuple[str, bool]
"""A node, and whether a screen has judged what the user says."""


def find_ungated_tools(calls: CallProduct[S]) -> Iterator[Finding | Unknown]:
    """Yield a finding or unknown for each node that may run tools before a gate (GL2)."""
    for node in ungated_nodes(calls):

        def path_without(excluded: Exclusions, node: str = node) -> TablePath | None:
            return calls.shortest_path(lambda at, _: at.node == node and not at.gated, excluded)

        def finding_of(path: TablePath, node: str = node) -> Finding:
            before = f"the way from {path[-1].source!r}" if path else "the start"
            return calls.graph.finding(
                "GL2",
                "tools may run here that no gate has spoken about since the model was last asked.",
                f"put a Gate into {before}, and lead its `Settled` to {node!r}.",
                node=node,
                path=path,
            )

        yield calls.graph.confirmed(path_without, finding_of)


def ungated_nodes(calls: CallProduct[S]) -> Iterable[str]:
    """Return nodes that may run calls that no gate has decided on, nearest to the start first."""
    states = calls.parents
    return dict.fromkeys(at.node for at in states if not at.gated and calls.runs_tools(at.node))


def find_unapproved_acts(calls: CallProduct[S]) -> Iterator[Finding | Unknown]:
    """Yield a finding or unknown for each `act` node that may run without approval (GL2)."""
    graph = calls.graph
    acting = {name for name, node in graph.nodes.items() if node.kind == "act"}
    arcs_from = partial(_flagged_arcs, calls, partial(_is_approved, calls))
    reached = breadth_first([(calls.start, False)], arcs_from) if acting else {}
    for node in dict.fromkeys(at.node for at, approved in reached if not approved):
        if node not in acting:
            continue

        def path_without(excluded: Exclusions, node: str = node) -> TablePath | None:
            return shortest_path(
                [(calls.start, False)],
                arcs_from,
                lambda state, _: state[0].node == node and not state[1],
                excluded,
            )

        def finding_of(path: TablePath, node: str = node) -> Finding:
            return graph.finding(
                "GL2",
                "acts, and no person and no gate has let it since the model was last asked.",
                "put an Approve before it, or a function that asks a person and returns "
                f"`Accepted`, and lead only `Accepted` to {node!r}; or set it aside with a reason "
                "(`ignore`).",
                node=node,
                path=path,
            )

        yield graph.confirmed(path_without, finding_of)


def _flagged_arcs(
    calls: CallProduct[S], flag_after: Callable[[Arc, CallState, bool], bool], state: _Flagged
) -> Iterator[tuple[Arc, _Flagged]]:
    """Yield the transitions out of a flagged state, each with the next flagged state.

    `flag_after` returns the next flag from the transition, the next call state and the flag.
    """
    for arc, target in calls.arcs_from(state[0]):
        yield arc, (target, flag_after(arc, target, state[1]))


def _is_approved(calls: CallProduct[S], arc: Arc, _: CallState, approved: bool) -> bool:  # noqa: FBT001 - a flag of the product
    """Return whether an approval is valid after a transition; a model call invalidates it."""
    contract, kind = calls.graph.contracts[arc.source], calls.kind(arc.source)
    if kind == "gate" and issubclass(arc.outcome, Settled):
        return True
    if contract is None or contract.model_calls != 0 or contract.children:
        return False
    if contract.asks and kind not in {"gate", "execute"}:
        return issubclass(arc.outcome, Accepted)  # A later refusal revokes an earlier approval.
    return approved


def find_unasked_holds(calls: CallProduct[S]) -> Iterator[Finding | Unknown]:
    """Yield a finding or unknown for each node whose held calls may bypass a person (GL2)."""
    graph = calls.graph
    gates = [node for node in unwrapped(graph.nodes.values()) if isinstance(node, Gate)]
    if all(gate.hold for gate in gates):
        return
    for node in filter(calls.runs_tools, graph.nodes):

        def is_held(arc: Arc, target: CallState, held: bool, node: str = node) -> bool:  # noqa: FBT001 - a flag of the product
            now = held or (arc.source == node and issubclass(arc.outcome, ApprovalNeeded))
            return now and calls.kind(target.node) != "gate"

        def is_goal(state: _Flagged, _: Arc | None) -> bool:
            return state[1] and (state[0].node == END or calls.kind(state[0].node) == "append")

        path_without = partial(
            shortest_path, [(calls.start, False)], partial(_flagged_arcs, calls, is_held), is_goal
        )

        def finding_of(path: TablePath, node: str = node) -> Finding:
            return graph.finding(
                "GL2",
                "calls that a gate holds for a person are appended, and no person is asked about "
                "them.",
                "lead `ApprovalNeeded` to the Gate, which asks; or leave out its `hold=False`.",
                node=node,
                path=path,
                outcome=outcome_name(ApprovalNeeded),
            )

        if path_without(Exclusions()) is not None:
            yield graph.confirmed(path_without, finding_of)


def find_unscreened_models(graph: ProofGraph[S]) -> Iterator[Finding]:
    """Yield a warning for each node that asks a model on a way past the graph's screens (GL2)."""
    screens = tuple(
        name
        for name, node in graph.nodes.items()
        if any(isinstance(part, Screen | Screened) for part in unwrapped([node]))
    )

    def arcs_from(state: _Judged) -> Iterator[tuple[Arc, _Judged]]:
        for arc, target in graph.arcs_from(state[0]):
            passed = arc.source in screens and not issubclass(arc.outcome, UNSCREENED)
            yield arc, (target, state[1] or passed)

    start = [(graph.start, False)]
    for node, is_judged in breadth_first(start, arcs_from) if screens else ():
        contract = graph.contracts[node] if node in graph.nodes else None
        if is_judged or node in screens or contract is None or contract.model_calls == 0:
            continue

        def is_goal(state: _Judged, _: Arc | None, node: str = node) -> bool:
            return state == (node, False)

        path = graph.runs.first_run(partial(shortest_path, start, arcs_from, is_goal))
        if path is not None:
            yield graph.finding(
                "GL2",
                f"asks a model about what the user says, and {quote_names(screens)} has not "
                "judged it.",
                f"lead every way to {node!r} through the screen, by its `Passed`.",
                node=node,
                path=path,
                severity="warning",
            )


def find_idle_rules(calls: CallProduct[S], tools: tuple[str, ...]) -> Iterator[Finding]:
    """Yield a finding for each gate rule that can never decide any of these tools (GL2)."""
    for name, node in calls.graph.nodes.items():
        for gate in unwrapped([node]):
            rules = gate.rules if isinstance(gate, Gate) else ()
            for _, problem in shadowed(rules, tools):
                yield calls.graph.finding("GL2", problem, NARROWER, node=name)
            for tool in unmatched(rules, tools):
                yield calls.graph.finding(
                    "GL2",
                    f"a rule names {tool!r}, which is none of the tools.{nearest(tool, tools)}",
                    f"name one of {', '.join(tools)}; for tools that come later, a pattern.",
                    node=name,
                )


def find_parks_after_effects(graph: ProofGraph[S]) -> Iterator[Finding | Unknown]:
    """Yield a finding for each node that acts and asks a person in the same visit (GL10)."""
    yield from graph.unknown_without_contracts("GL10")
    for name in graph.reached:
        contract, node = graph.contracts[name], graph.nodes[name]
        acts = node.kind == "act"
        if contract is None or not (contract.asks and (contract.tools or acts)):
            continue
        if not any(issubclass(outcome, ApprovalNeeded) for outcome in node.outcomes):
            yield graph.finding(
                "GL10",
                f"{'acts' if acts else 'runs tools'} and waits for a person in one visit.",
                "ask in a node of its own, or leave by `ApprovalNeeded` to a gate that asks.",
                node=name,
                path=graph.run_to(name),
            )
