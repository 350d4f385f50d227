"""Oracle: what every run must keep, told from its journal and its end, not by how nodes do it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar, final

from ..drivers.sim import Simulation
from ..effects import AskHuman, CallModel, CallTool, StartRun
from ..events import ChildEnded, Event
from ..proofs.most import Bound
from ..temporal import TemporalRule, describe_rule
from ..temporal.monitor import Monitor
from ..temporal_journal import journal_happenings
from .additions import untrue_additions
from .differences import Difference
from .endings import unexplained, unfinished
from .executions import crowded, repeated, ungated
from .pairing import lost_calls, unpaired_conversations
from .past import rewritten, untrue_requests
from .story import Story
from .subject import Subject
from .violation import Violation
from .watching import Deed, WantedOut

__all__ = ["Trial", "violations"]

S = TypeVar("S")


@final
@dataclass(frozen=True)
class Trial(Generic[S]):
    """One simulated run: its choices, its journal and its story.

    `simulation` is None if the simulation raised `error`; `endless` says that it was given up.
    `deeds` is what its nodes decided, and `difference` where the replay of its journal parts from
    that.
    """

    choices: tuple[int, ...]
    events: tuple[Event, ...]
    story: Story[S]
    simulation: Simulation[S] | None = None
    error: Exception | None = None
    endless: bool = False
    deeds: tuple[Deed, ...] = ()
    difference: Difference | None = None


def violations(subject: Subject[S], trial: Trial[S], bound: Bound | None) -> Iterator[Violation]:
    """Yield everything that a run has done and must not."""
    story = trial.story
    yield from _raised(trial)
    yield from unpaired_conversations(story)
    yield from lost_calls(subject, story)
    yield from ungated(subject, story)
    yield from repeated(story)
    yield from crowded(subject, story)
    yield from rewritten(subject, story)
    yield from untrue_additions(subject, story)
    yield from untrue_requests(subject, story)
    yield from unexplained(subject, trial.deeds)
    if bound is not None:
        yield from _beyond(story, bound)
    if trial.simulation is not None:
        yield from _ended(trial, trial.simulation)
    if subject.rules:
        yield from _unruly(subject, trial)


def _raised(trial: Trial[S]) -> Iterator[Violation]:
    number, story = len(trial.events), trial.story
    if trial.difference is not None:
        # What else is wrong with such a run may be wrong with its replay only.
        found = f"a node depends on more than its run: {trial.difference}"
        yield Violation("replay", found, trial.difference.event)
    elif trial.endless:
        yield Violation("endless", f"not over after {number} events", number)
    elif story.broken is not None:
        yield Violation("broken", _told(trial, story.broken), len(story.chapters) + 1)
    elif trial.error is not None:
        # The journal can be replayed, and what was replayed while it was made could not be.
        found = f"{type(trial.error).__name__}: {trial.error}"
        yield Violation("replay", f"taking the run up again: {found}", number)


def _told(trial: Trial[S], error: Exception) -> str:
    """Return what was raised, and by which node, where it was a node."""
    found = str(error) if isinstance(error, WantedOut) else f"{type(error).__name__}: {error}"
    last = trial.deeds[-1:]
    by_a_node = bool(last) and isinstance(last[0].decision, Exception)
    return f"node {last[0].node!r}: {found}" if by_a_node else found


def _ended(trial: Trial[S], simulation: Simulation[S]) -> Iterator[Violation]:
    story, run, number = trial.story, simulation.run, len(simulation.events)
    if story.broken is None and trial.difference is None and story.run != run:
        yield Violation("replay", "the journal leads to another run", number)
    for key in sorted(simulation.repeated):
        yield Violation("once", f"call {key} is started again after it ended or had begun", number)
    yield from unfinished(simulation)
    outside = all(
        isinstance(one, AskHuman | StartRun) or (isinstance(one, CallTool) and one.client)
        for one in run.pending.values()
    )
    if not run.ended and (not run.pending or not outside):
        yield Violation("stuck", f"node {run.node!r} waits for nothing that anybody does", number)


def _beyond(story: Story[S], bound: Bound) -> Iterator[Violation]:
    asked = run = below = 0
    visits: Counter[str] = Counter()
    for number, chapter in enumerate(story.chapters, 1):
        asked += sum(isinstance(one, CallModel) for one in chapter.effects)
        run += sum(isinstance(one, CallTool) for one in chapter.effects)
        if isinstance(chapter.event, ChildEnded):
            # What a child's own graph allows it, is not known here; the budget holds for both.
            below += chapter.event.spent.tool_calls
        visits.update(one.target for one in chapter.passages)
        budget = chapter.run.setup.budget.tool_calls
        limits = (
            (run + below, budget, f"tools run, {below} of them in child runs; there is room for"),
            (asked, bound.model_calls, "models are asked; proven at most are"),
            (run, bound.tool_calls, "tools run; the budget has room for"),
        )
        for count, most, what in limits:
            if most is not None and count > most:
                yield Violation("bound", f"{count} {what} {most}", number)
                return
    for node, count in visits.items():
        most = bound.visits.get(node)
        if most is not None and count > most:
            found = f"{node!r} is visited {count} times; proven are {most} at most"
            yield Violation("bound", found)


def _unruly(subject: Subject[S], trial: Trial[S]) -> Iterator[Violation]:
    chapters = trial.story.chapters
    events = trial.events[: len(chapters)]
    monitor, broken = Monitor.of(subject.rules), set[TemporalRule]()
    for number, happened in enumerate(journal_happenings(subject.graph, events), 1):
        for one in happened:
            monitor = monitor.after(one)
        for rule in monitor.broken:
            if rule not in broken:
                broken.add(rule)
                yield Violation("rule", describe_rule(rule), number)
    if chapters and chapters[-1].run.ended:
        for rule in monitor.owed:
            yield Violation("rule", describe_rule(rule), len(events))
