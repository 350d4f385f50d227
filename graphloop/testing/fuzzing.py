"""Fuzzing: tries the worlds of many seeds, and makes each kind of failure as simple as it goes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar, final

from ..agent import Agent, Tools
from ..graph import NodeGraph
from ..proofs import Bound, bound
from ..rules import Rules, rules_of
from ..spending import Budget, whole_number
from . import trial as trials
from .choices import Choices, from_token, shrunk, to_token
from .oracle import violations
from .report import Coverage, Failing, FuzzReport
from .subject import RULES_MARK, Subject, subject_of
from .trace import Recording, Trace, parted
from .trace_text import trace_lines
from .trial import Trial
from .violation import Violation

__all__ = ["EVENTS_MAX", "Fuzzer", "fuzz", "replay_token"]

S = TypeVar("S")

EVENTS_MAX: Final = 1_000
"""After how many events a run counts as endless, where no bound is proven."""

EVENTS_PER_REPLY: Final = 300
"""How many events one reply leads to at most: its calls are checked, asked about, started, run."""

FAILED_MAX: Final = 10
"""After how many failing seeds the search is over: more of them say little more."""

REPEATED_EVERY: Final = 16
"""Every so many seeds a world is made twice: its two runs have to be the same."""

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
    """Run a graph in many simulated worlds, and return its failures, as simple as they go.

    An adversary plays the model, the tools, the people, the child runs and the user's functions;
    processes die, and runs are stopped, at any moment. Nothing real is called. A seed always makes
    the same world.

    Args:
        subject: a graph, or an agent; one without tools gets some.
        seeds: how many worlds.
        first_seed: the first of the seeds, which follow one another.
        rules: temporal rules that must hold as well (`graphloop.rules`).
        tools: the tools on offer, for a graph; some are invented if none are given.
        state: the state that each run begins with; made by its type, if not given.
        events_max: after how many events a run counts as endless; more where more are proven.

    Raises:
        ConfigError: a rule, a tool or a number cannot work.
    """
    rules = rules_of(rules)
    fuzzer = Fuzzer(subject_of(subject, tools, state, rules), events_max)
    report = fuzzer.search(first_seed, whole_number("seeds", seeds))
    return replace(report, given=_given(rules, tools, state, events_max))


def replay_token(
    subject: Agent | NodeGraph[Any],
    token: str,
    *,
    rules: Rules | Iterable[Rules] = (),
    tools: Tools = (),
    state: object = None,
    events_max: int = EVENTS_MAX,
) -> FuzzReport:
    """Run the one world of a token again; the arguments are those of `fuzz`.

    Raises:
        ConfigError: the token is none, or an argument cannot work.
    """
    values, mark = from_token(token)
    rules = rules_of(rules)
    fuzzer = Fuzzer(subject_of(subject, tools, state, rules), events_max)
    return replace(fuzzer.again(values, mark), given=_given(rules, tools, state, events_max))


def _given(rules: Rules, tools: Tools, state: object, events_max: int) -> tuple[str, ...]:
    """Return the arguments that make the same world together with a token."""
    words = {
        "rules=…": bool(rules),
        "tools=…": bool(tools),
        "state=…": state is not None,
        f"events_max={events_max}": events_max != EVENTS_MAX,
    }
    return tuple([word for word, matters in words.items() if matters])


@final
@dataclass(frozen=True)
class _Found(Generic[S]):
    """A run and its violations."""

    seed: int | None
    trial: Trial[S]
    wrong: tuple[Violation, ...]

    def has(self, code: str) -> bool:
        return any(one.code == code for one in self.wrong)

    def beside(self, again: Trial[S], *, surely: bool = False) -> _Found[S]:
        """Return the run, with where another run by the same choices differs from it.

        Args:
            again: the other run.
            surely: they differ, if not in a decision.
        """
        reason = "the same choices made another run"
        differs = parted(self.trial.decisions, again.decisions, reason)
        if self.has("replay") or not (differs or surely):
            return self
        return replace(self, wrong=(differs or Violation("replay", reason), *self.wrong))


@final
class Fuzzer(Generic[S]):
    """Fuzzes one subject.

    Args:
        subject: the graph, with the input of its runs.
        events_max: after how many events a run counts as endless; more where more are proven.
    """

    def __init__(self, subject: Subject[S], events_max: int = EVENTS_MAX) -> None:
        whole_number("events_max", events_max)
        self.subject = subject
        self._bounds: dict[Budget, Bound] = {}
        proven = self._bound(subject.setup.budget)
        # Agents that are tools are answered, not run: their replies are not this run's.
        replies = proven.alone if proven.ends else None
        self._events_max = events_max + (replies or 0) * EVENTS_PER_REPLY
        self._recording = Recording()

    def search(self, first_seed: int, seeds: int) -> FuzzReport:
        """Try seeds, and shrink the first failure of each code; Ctrl-C ends the search early."""
        graph, coverage = self.subject.graph, Coverage.of(self.subject.graph)
        first: dict[str, _Found[S]] = {}
        failing: list[Failing] = []
        notes: list[str] = []
        failed, interrupted = 0, False
        try:
            for seed in range(first_seed, first_seed + seeds):
                found = self._try_seed(seed, twice=(seed - first_seed) % REPEATED_EVERY == 0)
                coverage.add(graph, found.trial.trace)
                for one in found.wrong:
                    first.setdefault(one.code, found)
                failed += bool(found.wrong)
                if failed == FAILED_MAX and coverage.runs < seeds:
                    notes.append(f"stopped after {FAILED_MAX} failing seeds")
                    break
            for code, found in first.items():
                # A run that failed with another code may have failed with this one, too.
                if all(one.code != code for each in failing for one in each.violations):
                    failing.append(self._simplest(code, found))
        except KeyboardInterrupt:
            interrupted = True
            if self._recording.busy:
                seed = first_seed + coverage.runs
                notes.append(f"node {self._recording.busy!r} had not returned, in seed {seed}")
            told = {one.code for each in failing for one in each.violations}
            rest = [(code, found) for code, found in first.items() if code not in told]
            failing += [self._failing(code, found) for code, found in rest]
        return FuzzReport(
            graph.name,
            coverage.runs,
            first_seed,
            tuple({one.token: one for one in failing}.values()),
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
        graph, coverage = self.subject.graph, Coverage.of(self.subject.graph)
        trial, wrong = self.tried(Choices.given(values))
        coverage.add(graph, trial.trace)
        found = _Found(None, replace(trial, choices=values), wrong)
        failing = [self._failing(one.code, found) for one in wrong[:1]]
        differs = mark ^ self.subject.mark
        notes = {OTHER_RULES: differs & RULES_MARK, CHANGED: differs & ~RULES_MARK}
        return FuzzReport(
            graph.name,
            coverage.runs,
            0,
            tuple(failing),
            len(failing),
            coverage,
            tuple([note for note, matters in notes.items() if matters]),
            other_rules=bool(notes[OTHER_RULES]),
        )

    def tried(
        self, choices: Choices, events_max: int | None = None
    ) -> tuple[Trial[S], tuple[Violation, ...]]:
        """Return one run, and its violations in the order that they happened."""
        self._recording = recording = Recording()
        most = events_max or self._events_max
        wrong: list[Violation] = []
        trial: Trial[S] = Trial((), (), Trace(()))
        try:
            trial = trials.tried(self.subject, choices, most, recording)
            budget = next((one.run.setup.budget for one in trial.trace.steps[:1]), Budget())
            for one in violations(self.subject, trial, self._bound(budget)):
                wrong.append(one)  # noqa: PERF402 - what was found before an error is not lost.
        except Exception as error:  # noqa: BLE001 - one world must not cost all the others.
            wrong.append(Violation("unjudged", f"{type(error).__name__}: {error}"))
            if not trial.choices:
                trial = Trial(tuple(choices.taken), tuple(recording.journal), trial.trace)
        # The first violation is the cause of many later ones.
        return trial, tuple(sorted(wrong, key=lambda one: one.event or len(trial.events)))

    def _try_seed(self, seed: int, *, twice: bool) -> _Found[S]:
        found = _Found(seed, *self.tried(Choices.seeded(seed)))
        if not twice:
            return found
        again, _ = self.tried(Choices.given(found.trial.choices))
        return found.beside(again)

    def _bound(self, budget: Budget) -> Bound:
        """Return the proven bound of runs with a budget; some worlds have one."""
        if budget not in self._bounds:
            self._bounds[budget] = bound(self.subject.graph, budget=budget)
        return self._bounds[budget]

    def _simplest(self, code: str, found: _Found[S]) -> Failing:
        values = found.trial.choices
        event = next(one.event for one in found.wrong if one.code == code)
        # A violation that comes later is not simpler, so the run goes no further.
        most = event + 1 if event and code != "endless" else None

        def fails(candidate: tuple[int, ...]) -> tuple[int, ...] | None:
            trial, wrong = self.tried(Choices.given(candidate), most)
            return trial.choices if any(one.code == code for one in wrong) else None

        if fails(values) is not None:
            values = shrunk(values, fails)
        again = _Found(found.seed, *self.tried(Choices.given(values)))
        if again.has(code):
            return self._failing(code, again)
        # It has not failed again, or no more: it is told as it was seen.
        return self._failing(code, found.beside(again.trial, surely=True))

    def _failing(self, code: str, found: _Found[S]) -> Failing:
        wrong = tuple(sorted(found.wrong, key=lambda one: one.code != code))
        token = to_token(found.trial.choices, self.subject.mark)
        lines = tuple(trace_lines(found.trial.trace))
        # A node that decides by more than its run may decide otherwise the next time.
        return Failing(wrong, found.seed, token, lines, repeats=not found.has("replay"))
