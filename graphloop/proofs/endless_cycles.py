"""GL4 and GL13: cycles that nothing bounds, and stretches without a wait.

Each graph asks for its cycles before its first run. The engine breaks a run off that passes a
thousand nodes without waiting. A bounded graph may have a longer stretch than that; then GL4 is
unknown. A stopped run waits for nothing more: the engine keeps that (GL13), and a table can do no
worse than lead such a run in a circle.
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
    Limit,
    MapOver,
    ModelCall,
    Parallel,
    PrepareStep,
    Retrying,
    Router,
    StopCheck,
)
from ..outcomes import Aborted, Calls, Failed, Outcome, Overflow, Ready, Stop, Unplanned
from ..step import SETTLE_MAX
from .calls import CallProduct
from .cycles import Cycle, unbounded
from .proof_graph import Arc, ProofGraph, TablePath, quote_names
from .ranking import Ranking
from .report import Finding, Unknown, aside_in, excused
from .run_search import NO_RUN, TRIES, Exclusions
from .visits import Visits

__all__ = [
    "Endless",
    "endless",
    "find_abort_cycles",
    "find_long_stretches",
    "find_unbounded_cycles",
]

S = TypeVar("S")

ROUNDS_MAX: Final = 30
"""How often a run goes round a cycle to show that nothing bounds it, whatever is on it."""

TURNS: Final[frozenset[Kind]] = frozenset({"prepare", "model", "stop"})
"""The kinds of nodes whose cycles a StopCheck bounds: they go from turn to turn."""

STOP: Final = (
    "lead the cycle through a StopCheck, and through a PrepareStep, which opens the turns that it "
    "counts"
)


class Endless(NamedTuple):
    """A cycle that nothing bounds.

    Attributes:
        node: the node that it is set aside by, with GL4.
        words: which it is, what is missing, and how to give it.
    """

    node: str
    words: str


def endless(graph: NodeGraph[S], *, every: bool = False) -> tuple[Endless, ...]:
    """Return the cycles of `graph` without a known bound that are not set aside.

    The cycles of its children belong to their own graphs.

    Args:
        graph: the graph.
        every: to return all of them; else, of very many, the first that are found.
    """
    ground = ProofGraph(graph)
    if not ground.reached:
        return ()
    aside = aside_in(graph.ignore)
    found = find_unbounded_cycles(
        Ranking(ground), CallProduct(ground), aside, every=every, shown=False
    )
    return tuple(
        [
            Endless(
                one.node,
                f"{one.message} Fix: {one.fix}" if isinstance(one, Finding) else one.reason,
            )
            for one in found
            if not excused(one, graph.ignore)
        ]
    )


def find_unbounded_cycles(
    ranking: Ranking[S],
    walk: CallProduct[S],
    aside: Container[str] = frozenset(),
    *,
    every: bool = False,
    shown: bool = True,
) -> Iterator[Finding | Unknown]:
    """Yield a finding for each cycle without a bound, or why that is unknown.

    The other arguments are those of `unbounded`.

    Args:
        ranking: what bounds the graph's cycles.
        walk: its calls.
        aside: the nodes whose cycles are excused.
        every: to return all of them.
        shown: whether a finding has to be shown by a run.
    """
    ground = ranking.ground
    opened = any("turn" in ranking.may_move(arc) for row in ranking.arcs.values() for arc in row)
    for cycle in unbounded(ranking, walk, aside, every=every):
        names = [arc.source for arc in cycle.around]
        silent = tuple(name for name in names if ground.contracts[name] is None)
        if silent:
            yield Unknown(
                "GL4",
                f"how often a run goes round {cycle.words} is not known: give "
                f"{quote_names(silent)} a `contract`, or {STOP}.",
                names[0],
            )
            continue
        if opened and _may_count(ranking, cycle.around):
            yield Unknown(
                "GL4",
                f"a stop check is on {cycle.words}, and it is not known whether each round adds "
                f"a step: {_what_counts(ranking, cycle.around)}.",
                names[0],
            )
            continue
        if held := _held_again(ranking, cycle.around):
            yield Unknown(
                "GL4",
                f"{held!r} holds calls once if a gate asks about them, and none does on "
                f"{cycle.words}: lead `Held` to a Gate.",
                names[0],
            )
            continue
        run = _gone_round(ranking, walk, cycle) if shown else cycle
        why, fix = _reason(ranking, (run or cycle).around)
        if run is None:
            yield Unknown(
                "GL4",
                f"nothing is known to bound the cycle {cycle.words}: {why}. But {NO_RUN} again "
                f"and again. Fix: {fix}",
                names[0],
            )
            continue
        yield ground.finding(
            "GL4",
            f"nothing bounds the cycle {run.words}: {why}.",
            fix,
            node=names[0],
            path=(*run.into, *run.around),
            outcome=run.around[-1].word,
        )


def _gone_round(ranking: Ranking[S], walk: CallProduct[S], cycle: Cycle) -> Cycle | None:
    """Return a cycle that a run goes round again and again: this one, or another of its part."""
    walker, found, arcs = walk.ground.runs, cycle, cycle.arcs
    for _ in range(TRIES):
        caps = [cap.times for arc in found.around if (cap := ranking.cap(arc)) is not None]
        # By the bounds on it no run would go round it so often.
        around = found.around * min(ROUNDS_MAX, 2 + max(caps, default=2))
        run = walker.first_run(partial(_led_round, walk, found, around))
        if run is not None:
            return replace(found, into=run[: -len(around)])
        length = walker.walk((*found.into, *around)) - len(found.into)
        missed = around[max(0, length)]
        arcs = [arc for arc in arcs if ranking.drawn(arc) != missed]
        names = dict.fromkeys(name for arc in arcs for name in (arc.source, arc.target))
        others = unbounded(ranking, walk, among=ranking.parts(names, arcs))
        if not others:
            return None
        found = others[0]
    return None


def _led_round(
    walk: CallProduct[S], cycle: Cycle, around: TablePath, barred: Exclusions
) -> TablePath | None:
    """Return a shortest way to a cycle, and around, without what is barred."""
    if not barred:
        return (*cycle.into, *around)
    into = walk.shortest_path(lambda at, _: at.node == cycle.node, barred, around)
    return None if into is None else (*into, *around)


def _held_again(ranking: Ranking[S], cycle: TablePath) -> str:
    """Return the node that holds calls on a cycle where no gate asks about them, if any."""
    return next((arc.source for arc in cycle if arc in ranking.held_again(cycle)), "")


def _may_count(ranking: Ranking[S], cycle: TablePath) -> bool:
    """Whether a counter on a cycle may be moved by it, though not for sure.

    Steps are recorded of turns: without any turn, none ever is.
    """
    none: frozenset[Moves] = frozenset()
    caps = [cap for arc in cycle if (cap := ranking.cap(arc)) is not None]
    counted = none.union(*(cap.counts for cap in caps))
    return any(counted & ranking.may_move(arc) for arc in cycle)


def _what_counts(ranking: Ranking[S], cycle: TablePath) -> str:
    """Return what would make each round of a cycle count."""
    if not ranking.opens_again and any("turn" in ranking.moved(arc) for arc in cycle):
        return (
            "a PrepareStep that fails, or is stopped, opens no turn. Lead what has failed, was "
            "stopped or is over to END"
        )
    if any("turn" in ranking.moved(arc) for arc in cycle):
        return (
            "a turn that is opened once more, as a Compact asks for, is no other one. Close it "
            "on the way by an Append, or lead what has failed, was stopped or is over to END"
        )
    return "lead the cycle through a PrepareStep, which opens a turn"


def _reason(ranking: Ranking[S], cycle: TablePath) -> tuple[str, str]:
    """Return why nothing bounds a cycle, and what would."""
    fix = f"{_fix(ranking, cycle)}."
    for arc in cycle:
        cap = ranking.cap(arc)
        if cap is not None and cap.counts:
            return (
                f"{arc.source!r} counts turns, and a run can come round without opening one",
                "lead the cycle through a PrepareStep, which opens a turn.",
            )
        if cap is not None:
            return (
                f"{arc.word!r} of {arc.source!r} is bounded, and what it counts begins anew "
                "on a way round",
                fix,
            )
    return "no outcome on it is bounded", fix


def _fix(ranking: Ranking[S], cycle: TablePath) -> str:
    """Return what bounds a cycle of such nodes."""
    nodes = [ranking.ground.nodes[arc.source] for arc in cycle]
    if any(node.kind in TURNS for node in nodes):
        return STOP
    graph, inside = ranking.ground.node_graph, {arc.source for arc in cycle}
    own = [
        arc
        for arc in cycle
        if any(isinstance(node, Function) for node in unwrapped([graph.nodes[arc.source]]))
    ]
    # A function that can also lead out is the one that decides on another round.
    own.sort(key=lambda arc: inside.issuperset(_decided(graph, arc.source)))
    cap = f", or give {own[0].word!r} of {own[0].source!r} a `cap=`" if own else ""
    return f"lead the cycle through a Limit, which counts its rounds{cap}"


def _decided(graph: NodeGraph[S], node: str) -> Iterator[str]:
    """Yield where a node leads by outcomes other than `failed` and `aborted`."""
    row = graph.table[node]
    return (target for outcome, target in row.items() if outcome not in {Failed, Aborted})


AT_ONCE: Final[Mapping[type[object], frozenset[type[Outcome]]]] = {
    **dict.fromkeys((Approve, Critique, Function, ModelCall, Router), frozenset[type[Outcome]]()),
    # A run that is too deep, or has spent its budget, begins no other.
    **dict.fromkeys((Child, Parallel), frozenset({Failed})),
    MapOver: frozenset({Failed, Unplanned}),
    # These with a function of the caller's; without one, they never wait.
    PrepareStep: frozenset({Calls, Overflow}),
    StopCheck: frozenset({Stop}),
}
"""The outcomes by which a visit to a node that waits may be over before it has."""


def find_long_stretches(ranking: Ranking[S]) -> Iterator[Unknown]:
    """Yield that runs may be broken off where they pass too many nodes without waiting."""
    nodes = ranking.ground.nodes
    places, arcs = ranking.whole()
    at_once = {one: _at_once(nodes[ranking.node(one)]) for one in places}
    quiet = {one: 1.0 for one in places if at_once[one]}
    # Calls make a node wait: the gate, or the node that runs them.
    passed = {
        arc
        for arc in arcs
        if arc.outcome in at_once[arc.source] and not issubclass(arc.outcome, Calls)
    }
    within = [arc for arc in arcs if arc in passed and arc.target in quiet]
    stay = Visits(ranking, quiet).among(quiet, within)
    # A stretch also passes the node that waits before it, and the one after it.
    begun = any(arc.target in quiet for arc in arcs if arc not in passed)
    ended = any(arc.target not in quiet for arc in passed)
    most = stay.weight + begun + ended
    # What nothing bounds is found without that.
    if isfinite(most) and most > SETTLE_MAX:
        visited = sorted(quiet, key=lambda one: -stay.visits[one])
        names = tuple(dict.fromkeys(map(ranking.node, visited)))
        yield Unknown(
            "GL4",
            f"a run may pass {most:,.0f} nodes without waiting for anything ({quote_names(names)}"
            f"), and is broken off after {SETTLE_MAX:,}: let it go round less often, or put a node "
            "that waits into its way.",
            names[0],
        )


def find_abort_cycles(ground: ProofGraph[S]) -> Iterator[Finding]:
    """Yield each circle that the rows of a table lead a stopped run into."""
    arcs = {name: _way_once_stopped(ground, name) for name in ground.reached}
    for name in ground.reached:
        at, path = name, list[Arc]()
        while (arc := arcs.pop(at, None)) is not None:
            at, path = arc.target, [*path, arc]
        circle = path[[*[one.source for one in path], at].index(at) :]
        if circle:
            names = " -> ".join([*[arc.source for arc in circle], at])
            # The circle is the table's; how a run comes to be stopped on it is no part of it.
            yield ground.finding(
                "GL13",
                f"a run that was stopped goes in a circle until the engine ends it: {names}.",
                "lead `Aborted` of a node of the circle to an append node, or to END.",
                node=at,
                outcome=circle[0].word,
                severity="warning",
            )


def _way_once_stopped(ground: ProofGraph[S], name: str) -> Arc | None:
    """Return the line by which a stopped run leaves a node; None where that is not known."""
    node = _kernel(ground.nodes[name])
    outcome: type[Outcome] = Aborted
    match node:
        case StopCheck() | Limit():
            outcome = Stop
        case PrepareStep(callback=""):
            outcome = Ready
        case _ if type(node) is not Append and type(node) not in AT_ONCE:
            return None
        case _:
            pass
    return next((arc for arc in ground.arcs[name] if arc.outcome is outcome), None)


def _at_once(node: Node[Any, Outcome]) -> frozenset[type[Outcome]]:
    """Return the outcomes by which a visit may be over without having waited.

    What a class of the library waits for, one that derives from it may leave out: it is asked for
    exactly.
    """
    kernel = _kernel(node)
    kind: type[object] = type(kernel)
    match kernel:
        case Retrying() if kind is Retrying:
            return _at_once(kernel.node)
        case Fallback() if kind is Fallback:
            first = _at_once(kernel.first)
            return first | _at_once(kernel.second) if first else first
        case PrepareStep() | StopCheck() if not kernel.callback:
            return kernel.outcomes
        case _:
            return AT_ONCE.get(kind, kernel.outcomes)


def _kernel(node: Node[Any, Outcome]) -> Node[Any, Outcome]:
    """Return the node itself, without what only carries things for it."""
    while is_node(within := cast("object", getattr(node, "kernel", None))):
        node = within
    return node
