"""Oracle: judges a run by its journal and its conversations, not by the notes of its nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeVar

from ..contract import contract_of
from ..effects import AskHuman, CallModel, CallTool, StartRun
from ..events import Cancelled, ChildEnded
from ..node_protocol import Leave
from ..outcomes import Outcome, Stop, outcome_name
from ..proofs import Bound
from ..replay import journal_happenings
from ..rules import Monitor, TemporalRule, describe_rule
from .answers import lost_calls, untrue_additions
from .conversations import rewritten, unpaired_conversations, untrue_requests
from .executions import crowded, repeated_calls, ungated_calls
from .subject import Subject
from .trace import Decision, ProcessExit, Trace
from .trial import Trial
from .violation import Violation

__all__ = ["unexplained", "unfinished", "violations"]

S = TypeVar("S")


def violations(subject: Subject[S], trial: Trial[S], bound: Bound | None) -> Iterator[Violation]:
    """Yield everything that a run has done and must not do."""
    trace = trial.trace
    yield from _raised(trial)
    yield from unpaired_conversations(trace)
    yield from lost_calls(subject, trace)
    yield from ungated_calls(subject, trace)
    yield from repeated_calls(trace)
    yield from crowded(subject, trace)
    yield from rewritten(subject, trace)
    yield from untrue_additions(subject, trace)
    yield from untrue_requests(subject, trace)
    yield from unexplained(subject, trial.decisions)
    if bound is not None:
        yield from _beyond(trace, bound)
    yield from _ended(trial)
    if subject.rules:
        yield from _unruly(subject, trial)


def _raised(trial: Trial[S]) -> Iterator[Violation]:
    number, trace = len(trial.events), trial.trace
    if trial.parted is not None:
        # Any other violation may be one of the replay only.
        yield trial.parted
    elif trial.endless:
        yield Violation("endless", f"not over after {number} events", number)
    elif trace.broken is not None:
        yield Violation("broken", _broken(trial, trace.broken), len(trace.steps) + 1)
    elif trial.error is not None:
        # The journal can be replayed now, and could not when a process had died.
        found = f"{type(trial.error).__name__}: {trial.error}"
        yield Violation("replay", f"resuming the run: {found}", number)


def _broken(trial: Trial[S], error: Exception) -> str:
    """Return the error, and the node that raised it if a node did."""
    found = str(error) if isinstance(error, ProcessExit) else f"{type(error).__name__}: {error}"
    last = next(reversed(trial.decisions), None)
    by_a_node = last is not None and isinstance(last.reaction, Exception)
    return f"node {last.node!r}: {found}" if last is not None and by_a_node else found


def _ended(trial: Trial[S]) -> Iterator[Violation]:
    simulation, trace = trial.simulation, trial.trace
    if simulation is None:
        return
    run, number = simulation.run, len(trial.events)
    if trace.broken is None and trial.parted is None and trace.run != run:
        yield Violation("replay", "the journal leads to another run", number)
    for key in sorted(simulation.repeated):
        yield Violation("once", f"call {key} is started again after it ended or started", number)
    yield from unfinished(trial)
    outside = all(
        isinstance(one, AskHuman | StartRun) or (isinstance(one, CallTool) and one.client)
        for one in run.pending.values()
    )
    if not run.ended and (not run.pending or not outside):
        found = f"node {run.node!r} waits for no person, client or child"
        yield Violation("stuck", found, number)


def unfinished(trial: Trial[S]) -> Iterator[Violation]:
    """Yield each fault of a run that is over."""
    if trial.simulation is None or not trial.simulation.run.ended:
        return
    run, number = trial.simulation.run, len(trial.events)
    if run.pending or run.ending is None:
        found = f"waits for {sorted(run.pending)}" if run.pending else "has no ending"
        yield Violation("ending", f"a run that is over {found}", number)
    events = enumerate(trial.events, 1)
    stops = [at for at, one in events if isinstance(one, Cancelled) and not one.after_step]
    if stops and not run.was_stopped:
        reason = None if run.ending is None else run.ending.reason
        found = f"a run that was stopped says that it is {reason}"
        yield Violation("ending", found, stops[0])


def unexplained(subject: Subject[S], decisions: Sequence[Decision]) -> Iterator[Violation]:
    """Yield the first node that ended a run early, or at a bound, and has not said why."""
    for decision in decisions:
        done = decision.reaction
        if not isinstance(done, Leave) or done.run.ending is not None:
            continue
        if _owes_an_ending(subject, decision.node, type(done.outcome)):
            left = f"node {decision.node!r} left by {outcome_name(type(done.outcome))!r}"
            found = f"{left}, and the run has no ending that says why"
            yield Violation("ending", found, decision.event)
            return


def _owes_an_ending(subject: Subject[S], name: str, outcome: type[Outcome]) -> bool:
    """Whether a node that leaves so has promised that the run ends for a reason."""
    node, target = subject.graph.nodes[name], subject.graph.table[name].get(outcome)
    promised = contract_of(node)
    if promised is None:
        return False
    if outcome in promised.ends_by | promised.breaks_by:
        return True
    # It bounds the run, and the run has reached the bound.
    return node.kind == "stop" and outcome is Stop and bool(promised.caps) and target == "END"


def _beyond(trace: Trace[S], bound: Bound) -> Iterator[Violation]:
    asked = ran = by_children = 0
    visits = Counter[str]()
    for number, one in enumerate(trace.steps, 1):
        asked += sum(isinstance(effect, CallModel) for effect in one.effects)
        ran += sum(isinstance(effect, CallTool) for effect in one.effects)
        if isinstance(one.event, ChildEnded):
            # The bound of a child's own graph is unknown here; the budget holds for both.
            by_children += one.event.spent.tool_calls
        visits.update(way.target for way in one.transitions)
        budget = one.run.setup.budget.tool_calls
        in_all = f"tools run, {by_children} of them in child runs; there is room for"
        for count, most, what in (
            (ran + by_children, budget, in_all),
            (asked, bound.model_calls, "models are asked; proven at most are"),
            (ran, bound.tool_calls, "tools run; the budget has room for"),
        ):
            if most is not None and count > most:
                yield Violation("bound", f"{count} {what} {most}", number)
                return
    for node, count in visits.items():
        most = bound.visits.get(node)
        if most is not None and count > most:
            found = f"{node!r} is visited {count} times; proven are {most} at most"
            yield Violation("bound", found)


def _unruly(subject: Subject[S], trial: Trial[S]) -> Iterator[Violation]:
    steps = trial.trace.steps
    monitor, broken = Monitor.of(subject.rules), set[TemporalRule]()
    happenings = journal_happenings(subject.graph, trial.events[: len(steps)])
    for number, happened in enumerate(happenings, 1):
        for one in happened:
            monitor = monitor.after(one)
        for rule in monitor.broken:
            if rule not in broken:
                broken.add(rule)
                yield Violation("rule", describe_rule(rule), number)
    if steps and steps[-1].run.ended:
        for rule in monitor.owed:
            yield Violation("rule", describe_rule(rule), len(steps))
