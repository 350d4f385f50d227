"""Fuzzing: simulates a graph with many seeds, and shrinks the first failure of each kind."""

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
"""A simulated run and the violations that were found in it."""

EVENTS_MAX: Final = 1_000
"""The number of events after which a run counts as endless, unless a proven bound allows more."""

EVENTS_PER_REPLY: Final = 300
"""An upper limit on the events that one model reply and the run of its calls can cause."""

FAILED_MAX: Final = 10
"""The number of failing seeds after which the search ends."""

REPEATED_EVERY: Final = 16
"""Every 16th seed runs twice, to find nodes that depend on more than their run and event."""

CHANGED: Final = "the table or the tools have changed since this token was made"
OTHER_RULES: Final = "other rules than this token was made with: give the same ones"


def fuzz(  # noqa: PLR0913 - each keyword is one dial
    subject: Agent[Any, Any] | NodeGraph[Any],  # The state may be of any type.
    *,
    seeds: int = 200,
    first_seed: int = 0,
    rules: Rules | Iterable[Rules] = (),
    tools: Tools = (),
    state: object = None,
    events_max: int = EVENTS_MAX,
) -> FuzzReport:
    """Simulate a graph against random hostile answers, and report its failures in simplest form.

    An adversary answers for the model, the tools, people, child runs and the user's functions.
    The simulated process crashes, and the run is stopped, at random events. No real model, tool or
    function is called. The same seed always gives the same run.

    Args:
        subject: a graph or an agent; an agent without tools gets sample tools.
        seeds: the number of seeds to try; each seed gives one run.
        first_seed: the first seed; the others are the numbers after it.
        rules: temporal rules that every run must keep, beside the graph's own (`graphloop.rules`).
        tools: the tools that a graph's model can call; without them, sample tools are made. An
            agent has tools of its own.
        state: the user's state at the start of each run; by default, a new value of the graph's
            state type.
        events_max: the number of events after which a run counts as endless; a proven bound may
            allow more.

    Raises:
        ConfigError: a rule, a tool, the state or a number is invalid.
    """
    whole_number("seeds", seeds)
    return Fuzzer(subject_of(subject, tools, state, rules), events_max).search(first_seed, seeds)


def replay_token(
    subject: Agent[Any, Any] | NodeGraph[Any],
    token: str,
    *,
    rules: Rules | Iterable[Rules] = (),
    tools: Tools = (),
    state: object = None,
    events_max: int = EVENTS_MAX,
) -> FuzzReport:
    """Repeat the simulated run of a token from a fuzz report, and return a new report.

    The other arguments are the same as in `fuzz`.

    Raises:
        ConfigError: the token is not from a fuzz report, or an argument is invalid.
    """
    values, mark = from_token(token)
    return Fuzzer(subject_of(subject, tools, state, rules), events_max).again(values, mark)


@final
class Fuzzer(Generic[S]):
    """Fuzzes one subject.

    Args:
        subject: the graph, with the input of its runs.
        events_max: the number of events after which a run counts as endless; a proven bound may
            allow more.
    """

    def __init__(self, subject: Subject[S], events_max: int = EVENTS_MAX) -> None:
        whole_number("events_max", events_max)
        self.subject = subject
        self._bounds: dict[Budget, Bound] = {}
        proven = self._bound_for(subject.setup.budget)
        # The replies of sub-agents are left out, because the adversary answers in their place.
        replies = proven.alone if proven.ends else None
        self._events_max = events_max + (replies or 0) * EVENTS_PER_REPLY
        self._recording = Recording()

    def search(self, first_seed: int, seeds: int) -> FuzzReport:
        """Run each seed, shrink the first failure of each code, and return a report.

        Ctrl-C ends the search early; the report then holds the failures found so far.
        """
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
                # A reported run may also contain a violation with this code.
                if code not in _violated_codes(failing):
                    failing.append(self._make_failing(code, seed, self._shrink(code, judged)))
        except KeyboardInterrupt:
            interrupted = True
            if self._recording.busy:
                seed = first_seed + coverage.runs
                notes.append(f"node {self._recording.busy!r} had not returned, in seed {seed}")
            open_ = {
                code: run for code, run in first.items() if code not in _violated_codes(failing)
            }
            failing += [self._make_failing(code, *run) for code, run in open_.items()]
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
        """Repeat the run of these choices, and report it.

        Args:
            values: the choices of a replay token.
            mark: the checksum in the token (`Subject.mark`); the report notes a difference.
        """
        coverage = Coverage.of(self.subject.graph)
        trial, wrong = self.tried(Choices.replayed(values))
        coverage.add(self.subject.graph, trial.trace)
        judged = replace(trial, choices=values), wrong
        failing = [self._make_failing(violation.code, None, judged) for violation in wrong[:1]]
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
        """Simulate the run of these choices, and return it with its violations, by event number."""
        self._recording = recording = Recording()
        wrong: list[Violation] = []
        trial: Trial[S] = Trial((), (), Trace(()), recording)
        try:
            trial = trials.tried(self.subject, choices, events_max or self._events_max, recording)
            budget = next((step.run.setup.budget for step in trial.trace.steps[:1]), Budget())
            for violation in violations(self.subject, trial, self._bound_for(budget)):
                wrong.append(violation)  # noqa: PERF402 - an error later must not lose it.
        except Exception as error:  # noqa: BLE001 - one world must not cost all the others.
            wrong.append(Violation("unjudged", f"{type(error).__name__}: {error}"))
            if not trial.choices:
                events = tuple(recording.journal)
                trial = replace(trial, choices=tuple(choices.taken), events=events)
        # The earliest violation often causes the later violations, so it comes first.
        wrong.sort(key=lambda violation: violation.event or len(trial.events))
        return trial, tuple(wrong)

    def _try_seed(self, seed: int, twice: bool) -> Judged[S]:  # noqa: FBT001 - private
        judged = self.tried(Choices.seeded(seed))
        return self._compare_runs(judged, self._repeat(judged)) if twice else judged

    def _repeat(self, judged: Judged[S]) -> Trial[S]:
        return self.tried(Choices.replayed(judged[0].choices))[0]

    @staticmethod
    def _compare_runs(judged: Judged[S], again: Trial[S], *, surely: bool = False) -> Judged[S]:
        """Add a "replay" violation to a run if a second run with the same choices differs.

        Args:
            judged: the first run and its violations.
            again: the second run.
            surely: whether the runs are known to differ, even if all node reactions are equal.
        """
        trial, wrong = judged
        reason = "the same choices made another run"
        differs = difference(trial.trace, again.recording.reactions, reason)
        if any(violation.code == "replay" for violation in wrong) or not (differs or surely):
            return judged
        return trial, (differs or Violation("replay", reason), *wrong)

    def _bound_for(self, budget: Budget) -> Bound:
        """Return the proven upper bound of a run with this budget; each budget is proven once."""
        if budget not in self._bounds:
            self._bounds[budget] = bound(self.subject.graph, budget=budget)
        return self._bounds[budget]

    def _shrink(self, code: str, judged: Judged[S]) -> Judged[S]:
        trial, wrong = judged
        event = next(violation.event for violation in wrong if violation.code == code)
        # Shrinking must not trade a short list for a later violation, so the event limit is tight.
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
        # The failure did not repeat, so the original run is reported.
        return self._compare_runs(judged, again[0], surely=True)

    def _make_failing(self, code: str, seed: int | None, judged: Judged[S]) -> Failing:
        trial, wrong = judged
        first = tuple(sorted(wrong, key=lambda violation: violation.code != code))
        token = to_token(trial.choices, self.subject.mark)
        # A "replay" violation means that a node is not deterministic: the failure may not repeat.
        repeats = all(violation.code != "replay" for violation in wrong)
        return Failing(first, seed, token, tuple(trace_lines(trial.trace)), repeats=repeats)


def _violated_codes(failing: Iterable[Failing]) -> set[str]:
    return {violation.code for failure in failing for violation in failure.violations}
