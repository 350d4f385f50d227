"""Watch: the temporal rules of a run, kept by the kernel as it follows the table.

The monitor's states are a part of the run, so a journal, a fork and a replay know where each rule
stands. A run without rules costs nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from .effects import AskHuman, Effect
from .events import Decided, Event
from .graph import Graph
from .outcomes import Outcome
from .run import RuleState, Run, evolve
from .temporal import Rules, TemporalRule
from .temporal.automata import Happening, entered
from .temporal.monitor import Monitor
from .temporal_happenings import (
    before_the_run,
    on_leaving,
    on_returning,
    on_wishing,
    restrained,
    run_again,
)

__all__ = [
    "lets_through",
    "watch_answer",
    "watch_begin",
    "watch_decision",
    "watch_leave",
    "watch_wait",
]

S = TypeVar("S")


def watch_begin(run: Run[S], rules: tuple[TemporalRule, ...]) -> Run[S]:
    """Return a run that has entered its first node, with its rules where they begin."""
    run = evolve(run, watch=RuleState(Monitor.of(Rules(rules))))
    counted = set(run.watch.counted)
    return _told(run, [*before_the_run(run), entered(run.node)], counted)


def watch_answer(run: Run[S], event: Event, answered: Effect | None) -> Run[S]:
    """Return the run as a node is about to hear an event: a tool may have returned."""
    return _told(run, on_returning(run, event, answered), set(run.watch.counted))


def watch_leave(
    graph: Graph[S], run: Run[S], node: str, outcome: type[Outcome], target: str
) -> Run[S]:
    """Return the run as it leaves a node: a gate's calls that a rule forbids are denied first."""
    counted = set(run.watch.counted)
    lets = lets_through(graph, node, target)
    if lets:
        run = restrained(run, run.watch.monitor, counted)
    left = on_leaving(run, node=node, outcome=outcome, target=target, lets=lets, counted=counted)
    return _told(run, left, counted)


def lets_through(graph: Graph[S], node: str, target: str) -> bool:
    """Whether calls are let through on the way from a node: of gates in a row, by the last."""
    after = graph.nodes.get(target)
    return graph.nodes[node].kind == "gate" and (after is None or after.kind != "gate")


def watch_decision(run: Run[S], event: Event, answered: Effect | None) -> Event:
    """Return a person's word about a call that may have run: a no, if a rule forbids it again."""
    if not isinstance(event, Decided) or not isinstance(answered, AskHuman) or not answered.unknown:
        return event
    rule = run.watch.monitor.forbids(answered.call.name, approved=True)
    return event if rule is None else evolve(event, approved=False)


def watch_wait(
    run: Run[S], event: Event, answered: Effect | None, effects: Iterable[Effect]
) -> Run[S]:
    """Return the run as it waits at a node, with what the event and these wishes came to."""
    counted = set(run.watch.counted)
    told = [*run_again(event, answered, run), *on_wishing(run, effects, counted=counted)]
    return _told(run, told, counted)


def _told(run: Run[S], happened: Iterable[Happening], counted: set[str]) -> Run[S]:
    # A lazy sequence: `counted` is whole only once it has been walked.
    monitor = run.watch.monitor
    for happening in happened:
        monitor = monitor.after(happening)
    return evolve(run, watch=RuleState(monitor, frozenset(counted)))
