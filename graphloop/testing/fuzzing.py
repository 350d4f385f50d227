"""Fuzzing: runs a graph in the worlds of many seeds, and shrinks each kind of failure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final, Generic, TypeAlias, TypeVar, final

from ..agent import Agent, Tools
from ..graph import NodeGraph
from ..proofs import Bound, bound
from ..rules import Rules
from ..spending import Budget, whole_number
from . import trial as trials
from .choices import Choices, from_token, shrunk, to_token
from .oracle import violations
from .report import Coverage, Failing, FuzzReport
from .subject import RULES_MARK, Subject, subject_of
from .trace import Recording, Trace, difference
from .trace_text import trace_lines
from .trial import Trial
from .violation import Violation

__all__ = ["EVENTS_MAX", "Fuzzer", "fuzz", "replay_token"]

S = TypeVar("S")

Judged: TypeAlias = tuple[Trial[S], tuple[Violation, ...]]
"""A run, and its violations."""

EVENTS_MAX: Final = 1_000
"""The number of events after which a run counts as endless, where no bound is proven."""

EVENTS_PER_REPLY: Final = 300
"""The most events that follow a reply: its calls are checked, asked about, started and run."""

FAILED_MAX: Final = 10
"""The number of failing seeds after which the search ends: more of them say little more."""

REPEATED_EVERY: Final = 16
"""Every 16th world runs twice, to find nodes that decide by more than their run."""

CHANGED: Final = "the table or the tools have changed since this token was made"
OTHER_RULES: Final = "other rules than this token was made with: give the same ones"


def fuzz(  # noqa: PLR0913 - each keyword is one dial
    subject: Agent | NodeGraph[Any],  # The state may be of any type.
    *,
    seeds: int = 200,
    first_seed: int = 0,
    rules: Rules | Iterable[Rules] = (),
    tools: Tools = (),
    state: object = None,
    events_max: int = EVENTS_MAX,
) -> FuzzReport:
    """Run a graph in many hostile simulated worlds, and return its failures, shrunk.

    An adversary plays the model, the tools, the people, the child runs and the user's functions.
    Processes die, and runs are stopped, at any moment. Nothing real is called. A seed always makes
    the same world.

    Args:
        subject: a graph, or an agent; an agent without tools gets some.
        seeds: the number of worlds.
        first_seed: the first seed; the others follow it.
        rules: temporal rules that must hold as well (`graphloop.rules`).
        tools: the tools on offer, for a graph; by default, some are invented.
        state: the state that each run begins with; by default, its type makes it.
        events_max: the number of events after which a run counts as endless; a proven bound may
            allow more.

    Raises:
        ConfigError: a rule, a tool or a number cannot work.
    """
    whole_number("seeds", seeds)
    return Fuzzer(subject_of(subject, tools, state, rules), events_max).search(first_seed, seeds)


def replay_token(
    subject: Agent | NodeGraph[Any],
    token: str,
    *,
    rules: Rules | Iterable[Rules] = (),
    tools: Tools = (),
    state: object = None,
    events_max: int = EVENTS_MAX,
) -> FuzzReport:
    """Run the world of a token again; the other arguments are those of `fuzz`.

    Raises:
        ConfigError: no `fuzz` has printed the token, or an argument cannot work.
    """
    values, mark = from_token(token)
    return Fuzzer(subject_of(subject, tools, state, rules), events_max).again(values, mark)


@final
class Fuzzer(Generic[S]):
    """Fuzzes one subject; `events_max` is that of `fuzz`."""

    def __init__(self, subject: Subject[S], events_max: int = EVENTS_MAX) -> None:
        whole_number("events_max", events_max)
        self.subject = subject
        self._bounds: dict[Budget, Bound] = {}
        proven = self._bound(subject.setup.budget)
        # The adversary answers in place of agents that are tools: they have no replies here.
        replies = proven.alone if proven.ends else None
        self._events_max = events_max + (replies or 0) * EVENTS_PER_REPLY
        self._recording = Recording()

    def search(self, first_seed: int, seeds: int) -> FuzzReport:
        """Try seeds, and shrink the first failure of each code, until Ctrl-C."""
        coverage = Coverage.of(self.subject.graph)
        first: dict[str, tuple[int, Judged[S]]] = {}
        failing: list[Failing] = []
        notes: list[str] = []
        failed, interrupted = 0, False
        try:
            for seed in range(first_seed, first_seed + seeds):
                trial, wrong = judged = self._try_seed(seed, coverage.runs % REPEATED_EVERY == 0)
                coverage.add(self.subject.graph, trial.trace)
                for violation in wrong:
                    first.setdefault(violation.code, (seed, judged))
                failed += bool(wrong)
                if failed == FAILED_MAX and coverage.runs < seeds:
                    notes.append(f"stopped after {FAILED_MAX} failing seeds")
                    break
            for code, (seed, judged) in first.items():
                # A run that failed with another code may have failed with this one, too.
                if code not in _codes(failing):
                    failing.append(self._failing(code, seed, self._simplest(code, judged)))
        except KeyboardInterrupt:
            interrupted = True
            if self._recording.busy:
                seed = first_seed + coverage.runs
                notes.append(f"node {self._recording.busy!r} had not returned, in seed {seed}")
            open_ = {code: run for code, run in first.items() if code not in _codes(failing)}
            failing += [self._failing(code, *run) for code, run in open_.items()]
        return FuzzReport(
            self.subject.graph.name,
            coverage.runs,
            first_seed,
            tuple({failure.token: failure for failure in failing}.values()),
            failed,
            coverage,
            tuple(notes),
            interrupted=interrupted,
        )

    def again(self, values: tuple[int, ...], mark: int) -> FuzzReport:
        """Run the world of these choices again.

        Args:
            values: the choices.
            mark: the mark of the subject that they were made for.
        """
        coverage = Coverage.of(self.subject.graph)
        trial, wrong = self.tried(Choices.replayed(values))
        coverage.add(self.subject.graph, trial.trace)
        judged = replace(trial, choices=values), wrong
        failing = [self._failing(violation.code, None, judged) for violation in wrong[:1]]
        differs = mark ^ self.subject.mark
        notes = {OTHER_RULES: differs & RULES_MARK, CHANGED: differs & ~RULES_MARK}
        return FuzzReport(
            self.subject.graph.name,
            coverage.runs,
            0,
            tuple(failing),
            len(failing),
            coverage,
            tuple([note for note, matters in notes.items() if matters]),
            other_rules=bool(notes[OTHER_RULES]),
        )

    def tried(self, choices: Choices, events_max: int | None = None) -> Judged[S]:
        """Return a run, and its violations in the order of their events."""
        self._recording = recording = Recording()
        wrong: list[Violation] = []
        trial: Trial[S] = Trial((), (), Trace(()), recording)
        try:
            trial = trials.tried(self.subject, choices, events_max or self._events_max, recording)
            budget = next((step.run.setup.budget for step in trial.trace.steps[:1]), Budget())
            for violation in violations(self.subject, trial, self._bound(budget)):
                wrong.append(violation)  # noqa: PERF402 - an error later must not lose it.
        except Exception as error:  # noqa: BLE001 - one world must not cost all the others.
            wrong.append(Violation("unjudged", f"{type(error).__name__}: {error}"))
            if not trial.choices:
                events = tuple(recording.journal)
                trial = replace(trial, choices=tuple(choices.taken), events=events)
        # The first violation is the cause of many later ones.
        wrong.sort(key=lambda violation: violation.event or len(trial.events))
        return trial, tuple(wrong)

    def _try_seed(self, seed: int, twice: bool) -> Judged[S]:  # noqa: FBT001 - private
        judged = self.tried(Choices.seeded(seed))
        return self._beside(judged, self._repeated(judged)) if twice else judged

    def _repeated(self, judged: Judged[S]) -> Trial[S]:
        return self.tried(Choices.replayed(judged[0].choices))[0]

    @staticmethod
    def _beside(judged: Judged[S], again: Trial[S], *, surely: bool = False) -> Judged[S]:
        """Return a run, with the first difference from another run by the same choices.

        Args:
            judged: the run.
            again: the other run.
            surely: the runs differ, even if no reaction of a node does.
        """
        trial, wrong = judged
        reason = "the same choices made another run"
        differs = difference(trial.trace, again.recording.reactions, reason)
        if any(violation.code == "replay" for violation in wrong) or not (differs or surely):
            return judged
        return trial, (differs or Violation("replay", reason), *wrong)

    def _bound(self, budget: Budget) -> Bound:
        """Return the proven bound of runs with this budget."""
        if budget not in self._bounds:
            self._bounds[budget] = bound(self.subject.graph, budget=budget)
        return self._bounds[budget]

    def _simplest(self, code: str, judged: Judged[S]) -> Judged[S]:
        trial, wrong = judged
        event = next(violation.event for violation in wrong if violation.code == code)
        # A violation that comes later is not simpler, so the run goes no further.
        most = event + 1 if event and code != "endless" else None

        def fails(candidate: tuple[int, ...]) -> tuple[int, ...] | None:
            shorter, violations = self.tried(Choices.replayed(candidate), most)
            return shorter.choices if any(v.code == code for v in violations) else None

        values = trial.choices
        if fails(values) is not None:
            values = shrunk(values, fails)
        again = self.tried(Choices.replayed(values))
        if any(violation.code == code for violation in again[1]):
            return again
        # The run has not failed again, so it is reported as it was seen.
        return self._beside(judged, again[0], surely=True)

    def _failing(self, code: str, seed: int | None, judged: Judged[S]) -> Failing:
        trial, wrong = judged
        first = tuple(sorted(wrong, key=lambda violation: violation.code != code))
        token = to_token(trial.choices, self.subject.mark)
        # A node that decides by more than its run may decide otherwise the next time.
        repeats = all(violation.code != "replay" for violation in wrong)
        return Failing(first, seed, token, tuple(trace_lines(trial.trace)), repeats=repeats)


def _codes(failing: Iterable[Failing]) -> set[str]:
    return {violation.code for failure in failing for violation in failure.violations}
