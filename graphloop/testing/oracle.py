"""Oracle: finds the violations of a simulated run from its journal and its trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

from ..contract import contract_of
from ..effects import AskHuman, CallModel, CallTool, StartRun
from ..events import Cancelled, ChildEnded
from ..graph import NodeGraph
from ..proofs import Bound
from ..replay import journal_happenings
from ..rules import Monitor, TemporalRule, describe_rule
from .answers import lost_calls, untrue_additions
from .conversations import rewritten, unpaired_conversations, untrue_requests
from .executions import crowded, repeated_calls, ungated_calls
from .subject import Subject
from .trace import Move, Trace, raised_text
from .trial import Trial
from .violation import Violation

__all__ = ["unexplained", "unfinished", "violations"]

S = TypeVar("S")


def violations(subject: Subject[S], trial: Trial[S], bound: Bound | None) -> Iterator[Violation]:
    """Yield every violation that the checks of this package find in a simulated run."""
    trace = trial.trace
    yield from _raised_errors(trial)
    yield from unpaired_conversations(trace)
    yield from lost_calls(subject, trace)
    yield from ungated_calls(subject, trace)
    yield from repeated_calls(trace)
    yield from crowded(subject, trace)
    yield from rewritten(subject, trace)
    yield from untrue_additions(trace)
    yield from untrue_requests(subject, trace)
    yield from unexplained(subject, trace)
    yield from _budget_faults(subject.graph, trace)
    if bound is not None:
        yield from _bound_faults(trace, bound)
    yield from _ending_faults(trial)
    if subject.rules:
        yield from _rule_faults(subject, trial)


def _raised_errors(trial: Trial[S]) -> Iterator[Violation]:
    number, broken = len(trial.events), trial.trace.broken
    if trial.difference is not None:
        # The checks read the trace; if the replay differs, their violations may not be the run's.
        yield trial.difference
    elif trial.endless:
        yield Violation("endless", f"not over after {number} events", number)
    elif broken is not None:
        yield Violation("broken", raised_text(broken), len(trial.trace.steps) + 1)
    elif trial.error is not None:
        # The replay after a simulated crash failed, although the journal can be replayed now.
        yield Violation("replay", f"resuming the run: {raised_text(trial.error)}", number)


def _ending_faults(trial: Trial[S]) -> Iterator[Violation]:
    simulation, trace, number = trial.simulation, trial.trace, len(trial.events)
    if simulation is None:
        return
    run = simulation.run
    if trace.broken is None and trial.difference is None and trace.run != run:
        yield Violation("replay", "the journal leads to another run", number)
    for key in sorted(simulation.repeated):
        yield Violation("once", f"call {key} is started again after it ended or started", number)
    yield from unfinished(trial)
    outside = all(
        isinstance(effect, AskHuman | StartRun) or (isinstance(effect, CallTool) and effect.client)
        for effect in run.pending.values()
    )
    if not run.ended and (not run.pending or not outside):
        yield Violation("stuck", f"node {run.node!r} waits for no person, client or child", number)


def unfinished(trial: Trial[S]) -> Iterator[Violation]:
    """Yield a violation if an ended run has pending effects, no ending, or the wrong ending."""
    if trial.simulation is None or not trial.simulation.run.ended:
        return
    run, number = trial.simulation.run, len(trial.events)
    if run.pending or run.ending is None:
        text = f"waits for {sorted(run.pending)}" if run.pending else "has no ending"
        yield Violation("ending", f"a run that is over {text}", number)
    for at, event in enumerate(trial.events, 1):
        if isinstance(event, Cancelled) and not event.after_step and not run.was_stopped:
            reason = None if run.ending is None else run.ending.reason
            yield Violation("ending", f"a run that was stopped says that it is {reason}", at)
            return


def unexplained(subject: Subject[S], trace: Trace[S]) -> Iterator[Violation]:
    """Yield a violation for the first node that ended a run early or at a limit, with no reason."""
    for move in trace.moves:
        if move.run.ending is None and _owes_an_ending(subject.graph, move):
            text = f"node {move.node.name!r} left by {move.way[1]!r}"
            text = f"{text}, and the run has no ending that says why"
            yield Violation("ending", text, move.number)
            return


def _owes_an_ending(graph: NodeGraph[S], move: Move[S]) -> bool:
    """Whether the contract of the move's node requires that the run now has an ending."""
    promised = contract_of(graph.nodes[move.node.name])
    if move.outcome is None or promised is None:
        return False
    if promised.moved(type(move.outcome)) & {"end", "broken"}:
        return True
    # A node that ends cycles ended the run, so the ending must give the reason.
    return type(move.outcome) is promised.once_stopped and move.target == "END"


def _budget_faults(graph: NodeGraph[S], trace: Trace[S]) -> Iterator[Violation]:
    """Yield a violation for the first node that went on against its `Cap.instead`."""
    for move in trace.moves:
        promised, run = contract_of(graph.nodes[move.node.name]), move.before
        if promised is None or move.outcome is None:
            continue
        cap = promised.caps.get(type(move.outcome))
        if cap is None or cap.instead is None:
            continue
        spent = run.setup.budget.tripped(run.spent)
        if spent or run.was_stopped:
            why = f"the budget is spent ({', '.join(spent)})" if spent else "the run was stopped"
            text = f"node {move.node.name!r} left by {move.way[1]!r}, although {why}"
            yield Violation("bound", text, move.number)
            return


def _bound_faults(trace: Trace[S], bound: Bound) -> Iterator[Violation]:
    asked = ran = by_children = 0
    visits = Counter[str]()
    for number, step in enumerate(trace.steps, 1):
        asked += sum(isinstance(effect, CallModel) for effect in step.effects)
        ran += sum(isinstance(effect, CallTool) for effect in step.effects)
        if isinstance(step.event, ChildEnded):
            # Only the budget limits a child's tool calls here: its graph's bound is unknown.
            by_children += step.event.spent.tool_calls
        visits.update(move.target for move in step.transitions)
        budget = step.run.setup.budget.tool_calls
        in_all = f"tools run, {by_children} of them in child runs; there is room for"
        for count, most, words in (
            (ran + by_children, budget, in_all),
            (asked, bound.model_calls, "models are asked; proven at most are"),
            (ran, bound.tool_calls, "tools run; the budget has room for"),
        ):
            if most is not None and count > most:
                yield Violation("bound", f"{count} {words} {most}", number)
                return
    for node, count in visits.items():
        most = bound.visits.get(node)
        if most is not None and count > most:
            text = f"{node!r} is visited {count} times; proven are {most} at most"
            yield Violation("bound", text)


def _rule_faults(subject: Subject[S], trial: Trial[S]) -> Iterator[Violation]:
    steps = trial.trace.steps
    monitor, broken = Monitor.of(subject.rules), set[TemporalRule]()
    happenings = journal_happenings(subject.graph, trial.events[: len(steps)])
    for number, happened in enumerate(happenings, 1):
        for happening in happened:
            monitor = monitor.after(happening)
        for rule in monitor.broken:
            if rule not in broken:
                broken.add(rule)
                yield Violation("rule", describe_rule(rule), number)
    if steps and steps[-1].run.ended:
        for rule in monitor.owed:
            yield Violation("rule", describe_rule(rule), len(steps))
