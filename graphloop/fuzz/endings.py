"""Endings: whether a run that is over waits for nothing, and says why it is over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from ..contract import contract_of
from ..drivers.sim import Simulation
from ..events import Cancelled, Event
from ..graph import Graph
from ..node_protocol import Leave
from ..outcomes import Outcome, Stop, outcome_name
from .subject import Subject
from .violation import Violation
from .watching import Deed

__all__ = ["unexplained", "unfinished"]

S = TypeVar("S")


def unfinished(simulation: Simulation[S]) -> Iterator[Violation]:
    """Yield what is wrong with how a run stands that goes no further."""
    run, number = simulation.run, len(simulation.events)
    if run.ended and (run.pending or run.ending is None):
        found = f"waits for {sorted(run.pending)}" if run.pending else "has no ending"
        yield Violation("ending", f"a run that is over {found}", number)
    stopped = _stopped_at(simulation.events)
    if run.ended and stopped and not run.was_stopped:
        reason = None if run.ending is None else run.ending.reason
        found = f"a run that was stopped says that it is {reason}"
        yield Violation("ending", found, stopped)


def unexplained(subject: Subject[S], deeds: Sequence[Deed]) -> Iterator[Violation]:
    """Yield the first node that broke a run off, or ended it at a bound, and has not said why."""
    for deed in deeds:
        reaction = deed.decision
        if not isinstance(reaction, Leave) or reaction.run.ending is not None:
            continue
        if _says_why(subject.graph, deed.node, type(reaction.outcome)):
            way = outcome_name(type(reaction.outcome))
            found = f"node {deed.node!r} left by {way!r}, and the run has no ending that says why"
            yield Violation("ending", found, deed.event)
            return


def _says_why(graph: Graph[S], name: str, outcome: type[Outcome]) -> bool:
    """Whether a node that leaves so has promised an ending of the run, which is no answer."""
    node, target = graph.nodes[name], graph.table[name].get(outcome)
    promised = contract_of(node)
    if promised is None:
        return False
    if outcome in promised.ends_by | promised.breaks_by:
        return True
    # It bounds the run, and has come to its bound.
    return node.kind == "stop" and outcome is Stop and bool(promised.caps) and target == "END"


def _stopped_at(events: Sequence[Event]) -> int:
    """Return after which event a run was stopped at once; 0 if it was not."""
    return next(
        (
            number
            for number, one in enumerate(events, 1)
            if isinstance(one, Cancelled) and not one.after_step
        ),
        0,
    )
