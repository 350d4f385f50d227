"""GL4 and GL13: unbounded cycles, long stretches without a wait, and cycles of stopped runs.

Each graph is checked for unbounded cycles before its first run. The kernel ends a run that visits
`TRANSITIONS_MAX` nodes without waiting for an effect. If a bounded graph allows a longer stretch,
GL4 is unknown. The kernel enforces GL13; `check` warns only of a cycle of stopped runs.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from functools import partial
from math import isfinite
from typing import Any, Final, NamedTuple, TypeVar, cast

from ..contract import Moves
from ..graph import NodeGraph
from ..node_protocol import Kind, Node, is_node, unwrapped
from ..nodes import (
    Append,
    Approve,
    Child,
    Critique,
    Fallback,
    Function,
    MapOver,
    ModelCall,
    Parallel,
    PrepareStep,
    Retrying,
    Router,
)
from ..outcomes import Aborted, Calls, Failed, Outcome, Overflow, Ready, Unplanned
from ..step import TRANSITIONS_MAX
from .calls import CallProduct
from .cycles import Cycle, unbounded
from .proof_graph import Arc, ProofGraph, TablePath, quote_names
from .ranking import Ranking
from .report import Finding, Unknown, cycles_set_aside, suppression_of
from .run_search import NO_RUN, TRIES, Exclusions
from .visits import VisitCount

__all__ = [
    "Endless",
    "endless",
    "find_abort_cycles",
    "find_long_stretches",
    "find_unbounded_cycles",
]

S = TypeVar("S")

ROUNDS_MAX: Final = 30
"""The most rounds of an unbounded cycle in a witness path."""

TURN_KINDS: Final[frozenset[Kind]] = frozenset({"prepare", "model", "stop"})
"""The kinds of nodes whose cycles repeat turns; a StopCheck bounds such cycles."""

STOP_CHECK: Final = (
    "lead the cycle through a StopCheck, and through a PrepareStep, which opens the turns that it "
    "counts"
)


class Endless(NamedTuple):
    """A cycle without a known bound, as text.

    Attributes:
        node: the node to name in `ignore`, with the code GL4, to suppress the cycle.
        words: a message with the cycle, the reason, and the fix.
    """

    node: str
    words: str


def endless(graph: NodeGraph[S], *, every: bool = False) -> tuple[Endless, ...]:
    """Return the cycles of `graph` that have no known bound and are not suppressed.

    The graphs of children are not searched.

    Args:
        graph: the graph.
        every: whether to return all cycles, without a limit on their number.
    """
    proof_graph = ProofGraph(graph)
    if not proof_graph.reached:
        return ()
    results = find_unbounded_cycles(
        Ranking(proof_graph),
        CallProduct(proof_graph),
        cycles_set_aside(graph.ignore),
        every=every,
        simulated=False,
    )
    return tuple(
        Endless(
            result.node,
            f"{result.message} Fix: {result.fix}" if isinstance(result, Finding) else result.reason,
        )
        for result in results
        if not suppression_of(result, graph.ignore)
    )


def find_unbounded_cycles(
    ranking: Ranking[S],
    calls: CallProduct[S],
    aside: Container[str] = frozenset(),
    *,
    every: bool = False,
    simulated: bool = True,
) -> Iterator[Finding | Unknown]:
    """Yield a finding for each unbounded cycle, or an unknown if it may be bounded (GL4).

    Args:
        ranking: the bounded transitions of the graph.
        calls: the product of the graph with the status of tool calls.
        aside: the nodes whose cycles are suppressed.
        every: whether to yield all cycles, without a limit on their number.
        simulated: whether to report a cycle only if a simulated run takes it.
    """
    for cycle in unbounded(ranking, calls, aside, every=every):
        node = cycle.node
        doubt = _why_perhaps_bounded(ranking, cycle)
        if doubt:
            yield Unknown("GL4", doubt, node)
            continue
        taken = _cycle_of_a_run(ranking, calls, cycle) if simulated else cycle
        why, fix = _why_unbounded(ranking, (taken or cycle).around)
        if taken is None:
            reason = (
                f"nothing is known to bound the cycle {cycle.words}: {why}. But {NO_RUN} again "
                f"and again. Fix: {fix}"
            )
            yield Unknown("GL4", reason, node)
            continue
        yield ranking.graph.finding(
            "GL4",
            f"nothing bounds the cycle {taken.words}: {why}.",
            fix,
            node=node,
            path=(*taken.into, *taken.around),
            outcome=taken.around[-1].word,
        )


def _why_perhaps_bounded(ranking: Ranking[S], cycle: Cycle) -> str:
    """Return why a cycle may be bounded after all; empty if it is surely unbounded."""
    names = [arc.source for arc in cycle.around]
    silent = tuple(name for name in names if ranking.graph.contracts[name] is None)
    if silent:
        return (
            f"how often a run goes round {cycle.words} is not known: give {quote_names(silent)} a "
            f"`contract`, or {STOP_CHECK}."
        )
    # A StopCheck counts turns as steps, so this doubt needs a graph that opens turns.
    if ranking.opens_turns and _may_count(ranking, cycle.around):
        return (
            f"a stop check is on {cycle.words}, and it is not known whether each round adds "
            f"a step: {_missing_count(ranking, cycle.around)}."
        )
    unasked = ranking.unasked_holds(cycle.around)
    if unasked:
        holder = next(arc.source for arc in cycle.around if arc in unasked)
        return (
            f"{holder!r} holds calls once if a gate asks about them, and none does on "
            f"{cycle.words}: lead `ApprovalNeeded` to a Gate."
        )
    return ""


def _cycle_of_a_run(ranking: Ranking[S], calls: CallProduct[S], cycle: Cycle) -> Cycle | None:
    """Return a cycle that a simulated run repeats: `cycle`, or another of its component."""
    runs, arcs = calls.graph.runs, cycle.component
    for _ in range(TRIES):
        caps = [cap.times for arc in cycle.around if (cap := ranking.cap(arc)) is not None]
        # Take more rounds than the caps on the cycle allow, to show that the caps do not hold.
        around = cycle.around * min(ROUNDS_MAX, 2 + max(caps, default=2))
        path = runs.first_run(partial(_path_around, calls, cycle, around))
        if path is not None:
            return replace(cycle, into=path[: -len(around)])
        length = runs.walk((*cycle.into, *around)) - len(cycle.into)
        missed = around[max(0, length)]
        arcs = [arc for arc in arcs if ranking.table_arc(arc) != missed]
        names = dict.fromkeys(name for arc in arcs for name in (arc.source, arc.target))
        others = unbounded(ranking, calls, among=ranking.components(names, arcs))
        if not others:
            return None
        cycle = others[0]
    return None


def _path_around(
    calls: CallProduct[S], cycle: Cycle, around: TablePath, excluded: Exclusions
) -> TablePath | None:
    """Return a shortest allowed path to the cycle, followed by `around`; None if none exists."""
    if not excluded:
        return (*cycle.into, *around)
    into = calls.shortest_path(lambda state, _: state.node == cycle.node, excluded, around)
    return None if into is None else (*into, *around)


def _may_count(ranking: Ranking[S], cycle: TablePath) -> bool:
    """Return whether one round of a cycle may advance a counter of a cap on that cycle."""
    none: frozenset[Moves] = frozenset()
    counted = none.union(*(cap.counts for arc in cycle if (cap := ranking.cap(arc)) is not None))
    return any(counted & ranking.may_move(arc) for arc in cycle)


def _missing_count(ranking: Ranking[S], cycle: TablePath) -> str:
    """Return, as text, the change of the graph that makes each round of a cycle count as a step."""
    if not any("turn" in ranking.moved(arc) for arc in cycle):
        return "lead the cycle through a PrepareStep, which opens a turn"
    if not ranking.opens_again:
        return (
            "a PrepareStep that fails, or is stopped, opens no turn. Lead what has failed, was "
            "stopped or is over to END"
        )
    return (
        "a turn that is opened once more, as a Compact asks for, is no other one. Close it "
        "on the way by an Append, or lead what has failed, was stopped or is over to END"
    )


def _why_unbounded(ranking: Ranking[S], cycle: TablePath) -> tuple[str, str]:
    """Return why a cycle is unbounded, and the fix, both as text."""
    capped = next(((arc, cap) for arc in cycle if (cap := ranking.cap(arc)) is not None), None)
    if capped is None:
        return "no outcome on it is bounded", _fix_for(ranking, cycle)
    arc, cap = capped
    if cap.counts:
        return (
            f"{arc.source!r} counts turns, and a run can come round without opening one",
            "lead the cycle through a PrepareStep, which opens a turn.",
        )
    return (
        f"{arc.word!r} of {arc.source!r} is bounded, and what it counts begins anew on a way round",
        _fix_for(ranking, cycle),
    )


def _fix_for(ranking: Ranking[S], cycle: TablePath) -> str:
    """Return, as text, how to bound a cycle: by a StopCheck, a Limit or a function's `cap`."""
    graph = ranking.graph
    if any(graph.nodes[arc.source].kind in TURN_KINDS for arc in cycle):
        return f"{STOP_CHECK}."
    inside = {arc.source for arc in cycle}
    own = [
        arc
        for arc in cycle
        if any(isinstance(node, Function) for node in unwrapped([graph.nodes[arc.source]]))
    ]
    # Prefer a function that can also leave the cycle: that function chooses whether to go round
    # again.
    own.sort(
        key=lambda arc: all(
            target in inside
            for outcome, target in graph.table[arc.source].items()
            if outcome not in {Failed, Aborted}
        )
    )
    cap = f", or give {own[0].word!r} of {own[0].source!r} a `cap=`" if own else ""
    return f"lead the cycle through a Limit, which counts its rounds{cap}."


AT_ONCE: Final[Mapping[type[object], frozenset[type[Outcome]]]] = {
    **dict.fromkeys((Approve, Critique, Function, ModelCall, Router), frozenset[type[Outcome]]()),
    # These nodes start no child if the run is nested too deep or its budget is spent.
    **dict.fromkeys((Child, Parallel), frozenset({Failed})),
    MapOver: frozenset({Failed, Unplanned}),
    PrepareStep: frozenset({Calls, Overflow}),
}
"""The outcomes by which a node that usually waits for an effect may leave without waiting."""


def find_long_stretches(ranking: Ranking[S]) -> Iterator[Unknown]:
    """Yield an `Unknown` (GL4) if a run may pass over `TRANSITIONS_MAX` nodes without a wait."""
    nodes = ranking.graph.nodes
    names, arcs = ranking.split_graph()
    at_once = {name: _at_once(nodes[ranking.node(name)]) for name in names}
    quiet = {name: 1.0 for name in names if at_once[name]}
    # `Calls` leads to a gate or to a node that runs tools, and that node waits.
    passed = {
        arc
        for arc in arcs
        if arc.outcome in at_once[arc.source] and not issubclass(arc.outcome, Calls)
    }
    stay = VisitCount(ranking, quiet).among(
        quiet, [arc for arc in arcs if arc in passed and arc.target in quiet]
    )
    # The count includes the waiting node before the stretch and the waiting node after it.
    before = any(arc.target in quiet for arc in arcs if arc not in passed)
    after = any(arc.target not in quiet for arc in passed)
    most = stay.weight + before + after
    if isfinite(most) and most > TRANSITIONS_MAX:
        visited = sorted(quiet, key=lambda name: -stay.visits[name])
        shown = tuple(dict.fromkeys(map(ranking.node, visited)))
        yield Unknown(
            "GL4",
            f"a run may pass {most:,.0f} nodes without waiting for anything ({quote_names(shown)}"
            f"), and the kernel ends it after {TRANSITIONS_MAX:,}. Fix: let it go round less often,"
            " or put a node that waits into its way.",
            shown[0],
        )


def find_abort_cycles(graph: ProofGraph[S]) -> Iterator[Finding]:
    """Yield a warning for each cycle that a stopped run follows in the table (GL13)."""
    arcs = {name: _arc_once_stopped(graph, name) for name in graph.reached}
    for name in graph.reached:
        at, path = name, list[Arc]()
        while (arc := arcs.pop(at, None)) is not None:
            at, path = arc.target, [*path, arc]
        cycle = path[[*[arc.source for arc in path], at].index(at) :]
        if cycle:
            words = " -> ".join([*[arc.source for arc in cycle], at])
            yield graph.finding(
                "GL13",
                f"a run that was stopped goes in a circle until the engine ends it: {words}.",
                "lead `Aborted` of a node of the circle to an append node, or to END.",
                node=at,
                outcome=cycle[0].word,
                severity="warning",
            )


def _arc_once_stopped(graph: ProofGraph[S], name: str) -> Arc | None:
    """Return the transition by which a stopped run leaves a node; None if unknown."""
    node, contract = _innermost(graph.nodes[name]), graph.contracts[name]
    outcome = None if contract is None else contract.once_stopped
    if outcome is None and isinstance(node, PrepareStep) and not node.callback:
        outcome = Ready
    elif outcome is None and type(node) in {Append, *AT_ONCE}:
        outcome = Aborted
    return next((arc for arc in graph.arcs[name] if arc.outcome is outcome), None)


def _at_once(node: Node[Any, Outcome]) -> frozenset[type[Outcome]]:
    """Return the outcomes by which a node may leave without waiting for an effect.

    A subclass of a node of this package may behave differently, so types are compared exactly. For
    an unknown type, all its outcomes are returned.
    """
    kernel = _innermost(node)
    kind: type[object] = type(kernel)
    match kernel:
        case Retrying() if kind is Retrying:
            return _at_once(kernel.node)
        case Fallback() if kind is Fallback:
            first = _at_once(kernel.first)
            return first | _at_once(kernel.second) if first else first
        case PrepareStep() if not kernel.callback:
            return kernel.outcomes
        case _:
            return AT_ONCE.get(kind, kernel.outcomes)


def _innermost(node: Node[Any, Outcome]) -> Node[Any, Outcome]:
    """Return the innermost node: follow the attribute `kernel` of nodes that wrap another node."""
    while is_node(within := cast("object", getattr(node, "kernel", None))):
        node = within
    return node
