"""Fuzzer: tries the worlds of seeds, and makes what fails in them as simple as it goes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar, final

from ..graph import Graph
from ..limits import whole_number
from ..proofs.bound import bound
from ..proofs.most import Bound
from ..spending import Budget
from . import trials
from .choices import Choices, to_token
from .coverage import Coverage
from .differences import between_runs
from .interrupts import Interrupts
from .oracle import Trial, violations
from .report import Failing, FuzzReport, Unfinished
from .shrinking import shrunk
from .story import Story
from .subject import RULES_MARK, Subject
from .violation import Violation
from .watching import Notes

__all__ = ["EVENTS_MAX", "Fuzzer"]

S = TypeVar("S")

EVENTS_MAX: Final = 1_000
"""After how many events a run counts as endless, where no bound is proven."""

EVENTS_PER_REPLY: Final = 300
"""How many events one reply leads to at most: its calls are checked, asked about, begun, run."""

FAILED_MAX: Final = 10
"""After how many failing seeds the search is over: more of them say little more."""

REPEATED_EVERY: Final = 16
"""Every so many seeds a world is made twice: its two runs have to be the same."""

CHANGED: Final = "the table or the tools have changed since this token was made"
OTHER_RULES: Final = "other rules than this token was made with: give the same ones"


@dataclass
class _Found(Generic[S]):
    """A run that fails, and in what."""

    seed: int
    trial: Trial[S]
    wrong: tuple[Violation, ...]


@final
class Fuzzer(Generic[S]):
    """Fuzzes one subject.

    Args:
        subject: what is fuzzed.
        events_max: after how many events a run counts as endless; more where more are proven.
    """

    def __init__(self, subject: Subject[S], events_max: int = EVENTS_MAX) -> None:
        whole_number("events_max", events_max)
        self.subject = subject
        self._bounds: dict[Budget, Bound] = {}
        proven = self._bound(subject.setup.budget)
        # What agents that are tools ask is not this run's: they are answered, not run.
        replies = proven.alone if proven.ends else None
        longer = 0 if replies is None else replies * EVENTS_PER_REPLY
        self._events_max = events_max + longer
        self._interrupts = Interrupts()
        self._in_hand: tuple[Choices, Notes] | None = None

    def search(self, first_seed: int, seeds: int) -> FuzzReport:
        """Try seeds, and shrink the first failure of each kind; Ctrl-C ends the search early."""
        search: _Search[S] = _Search(Coverage.of(self.subject.graph))
        failing: list[Failing] = []
        unfinished: Unfinished | None = None
        interrupted = False
        seed: int | None = first_seed
        with self._interrupts:
            try:
                for seed in range(first_seed, first_seed + seeds):
                    self._try_seed(seed, search, twice=(seed - first_seed) % REPEATED_EVERY == 0)
                    if search.failed == FAILED_MAX:
                        break
                seed = None
                for code, found in search.found.items():
                    # A run that was found for another reason may fail in this way, too.
                    if not any(code == one.code for each in failing for one in each.violations):
                        failing.append(self._simplest(code, found))
            except KeyboardInterrupt:
                interrupted = True
                unfinished = self._unfinished(seed)
                told = {one.code for each in failing for one in each.violations}
                failing += [
                    self._failing(code, found)
                    for code, found in search.found.items()
                    if code not in told
                ]
        stopped = not interrupted and search.coverage.runs < seeds
        return FuzzReport(
            self.subject.graph.name,
            search.coverage.runs,
            first_seed,
            tuple({one.token: one for one in failing}.values()),
            search.failed,
            search.coverage,
            (f"stopped after {FAILED_MAX} failing seeds",) if stopped else (),
            interrupted=interrupted,
            unfinished=unfinished,
        )

    def again(self, values: tuple[int, ...], mark: int) -> FuzzReport:
        """Run the world of these choices again.

        Args:
            values: the choices.
            mark: the checksum of what they were made for.
        """
        graph, coverage = self.subject.graph, Coverage.of(self.subject.graph)
        failing: tuple[Failing, ...] = ()
        unfinished: Unfinished | None = None
        interrupted = False
        with self._interrupts:
            try:
                trial, wrong = self.tried(Choices.given(values))
                coverage.add(graph, trial.story)
                token = to_token(values, self.subject.mark)
                story = tuple(trial.story.lines())
                failed = Failing(wrong, None, token, story, repeats=_repeats(wrong))
                failing = (failed,) * bool(wrong)
            except KeyboardInterrupt:
                interrupted, unfinished = True, self._unfinished(None)
        differs = mark ^ self.subject.mark
        notes = ((OTHER_RULES,) if differs & RULES_MARK else ()) + (
            (CHANGED,) if differs & ~RULES_MARK else ()
        )
        return FuzzReport(
            graph.name,
            coverage.runs,
            0,
            failing,
            len(failing),
            coverage,
            notes,
            interrupted=interrupted,
            unfinished=unfinished,
            other_rules=OTHER_RULES in notes,
        )

    def tried(
        self, choices: Choices, events_max: int | None = None
    ) -> tuple[Trial[S], tuple[Violation, ...]]:
        """Return one run, and what is wrong with it, in the order that it happened."""
        notes = Notes(interrupts=self._interrupts)
        self._in_hand = choices, notes
        most = self._events_max if events_max is None else events_max
        wrong: list[Violation] = []
        trial: Trial[S] = Trial((), (), Story(()))
        try:
            trial = trials.tried(self.subject, choices, most, notes)
            budget = next((one.run.setup.budget for one in trial.story.chapters[:1]), Budget())
            for one in violations(self.subject, trial, self._bound(budget)):
                wrong.append(one)  # noqa: PERF402 - what was found before an error is not lost.
        except Exception as error:  # noqa: BLE001 - one world must not cost all the others.
            wrong.append(Violation("unjudged", f"{type(error).__name__}: {error}"))
            if not trial.choices:
                trial = Trial(tuple(choices.taken), tuple(notes.journal), trial.story)
        self._in_hand = None
        # What came first is the cause of much that came later.
        return trial, tuple(sorted(wrong, key=lambda one: one.event or len(trial.events)))

    def _try_seed(self, seed: int, search: _Search[S], *, twice: bool) -> None:
        trial, wrong = self.tried(Choices.seeded(seed))
        if twice:
            again, _ = self.tried(Choices.given(trial.choices))
            parted = between_runs(trial.deeds, again.deeds)
            if parted is not None and all(one.code != "replay" for one in wrong):
                wrong = (_unrepeated(trial, again), *wrong)
        search.note(self.subject.graph, _Found(seed, trial, wrong))

    def _bound(self, budget: Budget) -> Bound:
        """Return what is proven of runs with a budget; some worlds have one."""
        if budget not in self._bounds:
            self._bounds[budget] = bound(self.subject.graph, budget=budget)
        return self._bounds[budget]

    def _simplest(self, code: str, found: _Found[S]) -> Failing:
        values = found.trial.choices
        again, wrong = self.tried(Choices.given(values))
        event = next((one.event for one in wrong if one.code == code), None)
        if event is None:
            return self._failing(code, found, again)
        # What goes wrong later is not simpler, so nobody needs to look further.
        most = event + 1 if event and code != "endless" else None

        def fails(candidate: tuple[int, ...]) -> tuple[int, ...] | None:
            trial, wrong = self.tried(Choices.given(candidate), most)
            return trial.choices if any(one.code == code for one in wrong) else None

        values = shrunk(values, fails)
        trial, wrong = self.tried(Choices.given(values))
        if all(one.code != code for one in wrong):
            # It has failed again, and then no more.
            return self._failing(code, found, trial)
        return self._failing(code, _Found(found.seed, trial, wrong))

    def _failing(self, code: str, found: _Found[S], again: Trial[S] | None = None) -> Failing:
        """Return what is told of a run that fails.

        Args:
            code: in what it was found to fail.
            found: the run.
            again: another run by the same choices that does not fail so.
        """
        wrong = sorted(found.wrong, key=lambda one: one.code != code)
        if again is not None and all(one.code != "replay" for one in wrong):
            wrong.append(_unrepeated(found.trial, again))
        token = to_token(found.trial.choices, self.subject.mark)
        story = tuple(found.trial.story.lines())
        return Failing(tuple(wrong), found.seed, token, story, repeats=_repeats(wrong))

    def _unfinished(self, seed: int | None) -> Unfinished | None:
        """Return what is known of the run that was under way."""
        if self._in_hand is None:
            return None
        choices, notes = self._in_hand
        token = to_token(choices.taken, self.subject.mark)
        return Unfinished(seed, len(notes.journal), notes.busy, token)


def _repeats(wrong: Iterable[Violation]) -> bool:
    """Whether the same choices surely fail again: not where a node goes by more than its run."""
    return all(one.code != "replay" for one in wrong)


def _unrepeated(trial: Trial[S], again: Trial[S]) -> Violation:
    """Return that two runs by the same choices are not the same run."""
    parted = between_runs(trial.deeds, again.deeds)
    where = "" if parted is None else f": {parted}"
    found = f"the same choices made another run{where}"
    return Violation("replay", found, 0 if parted is None else parted.event)


@dataclass
class _Search(Generic[S]):
    """What was seen so far: the first failure of each kind."""

    coverage: Coverage
    found: dict[str, _Found[S]] = field(default_factory=dict[str, "_Found[S]"])
    failed: int = 0

    def note(self, graph: Graph[S], found: _Found[S]) -> None:
        self.coverage.add(graph, found.trial.story)
        self.failed += bool(found.wrong)
        for one in found.wrong:
            self.found.setdefault(one.code, found)
