"""fuzz: run a graph in hundreds of hostile worlds, and tell the simplest one in which it fails."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar, final

from ..errors import ConfigError
from ..events import Setup
from ..front.agent import Agent
from ..front.graph import Graph as FrontGraph
from ..front.options import Tools
from ..front.runner import Runner
from ..front.world import split_tools
from ..graph import Graph
from ..limits import whole_number
from ..proofs.bound import Bound, bound
from ..temporal import Rules, rules_of
from ..temporal_names import names_of, resolve
from ..tools import Toolbox
from ..values import evolve
from . import trials
from .choices import Choices, from_token, to_token
from .coverage import Coverage
from .oracle import Trial, violations
from .report import Failing, FuzzReport
from .shrinking import shrunk
from .subject import Subject, invented_tools
from .violation import Violation

__all__ = ["EVENTS_MAX", "Fuzzer", "fuzz", "replay_token", "subject_of"]

S = TypeVar("S")

EVENTS_MAX: Final = 1_000
"""After how many events a run counts as endless, where no bound is proven."""

EVENTS_PER_REPLY: Final = 300
"""How many events one reply leads to at most: its calls are checked, asked about, begun, run."""

FAILED_MAX: Final = 10
"""After how many failing seeds the search is over: more of them say little more."""


def fuzz(  # noqa: PLR0913 - each keyword is one dial
    subject: Agent | Graph[Any],  # The state may be of any type.
    *,
    seeds: int = 200,
    first_seed: int = 0,
    rules: Rules | Iterable[Rules] = (),
    tools: Tools = (),
    state: object = None,
    events_max: int = EVENTS_MAX,
) -> FuzzReport:
    """Run a graph in many simulated worlds, and return what went wrong, made as simple as it goes.

    The model, the tools, the people, the child runs and your own functions are all played by an
    adversary; processes die, and runs are stopped, at any moment. Nothing real is called. A seed
    always makes the same world.

    Args:
        subject: a graph, or an agent.
        seeds: how many worlds.
        first_seed: the first of the seeds, which follow one another.
        rules: temporal rules that must hold as well (`graphloop.temporal`).
        tools: the tools on offer, for a graph; some are made up if none are given.
        state: the state that each run begins with; what its type is without arguments, if not
            given.
        events_max: after how many events a run counts as endless; more where more are proven.

    Raises:
        ConfigError: a rule, a tool or a number cannot work.
    """
    fuzzer = Fuzzer(subject_of(subject, tools, state, rules), events_max)
    return fuzzer.search(first_seed, whole_number("seeds", seeds))


def replay_token(
    subject: Agent | Graph[Any],
    token: str,
    *,
    rules: Rules | Iterable[Rules] = (),
    tools: Tools = (),
    state: object = None,
    events_max: int = EVENTS_MAX,
) -> FuzzReport:
    """Run the one world of a token again; the arguments are those of `fuzz`.

    Raises:
        ConfigError: it is no token, or an argument cannot work.
    """
    values, mark = from_token(token)
    return Fuzzer(subject_of(subject, tools, state, rules), events_max).again(values, mark)


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
        self._bound: Bound = bound(subject.graph)
        replies = self._bound.model_calls
        proven = 0 if replies is None or not self._bound.ends else replies * EVENTS_PER_REPLY
        self._events_max = events_max + proven

    def search(self, first_seed: int, seeds: int) -> FuzzReport:
        """Try seeds, and shrink the first failure of each kind; Ctrl-C ends the search early."""
        graph = self.subject.graph
        search = _Search(Coverage.of(graph))
        failing: list[Failing] = []
        interrupted = False
        try:
            for seed in range(first_seed, first_seed + seeds):
                trial, wrong = self.tried(Choices.seeded(seed))
                search.note(graph, seed, trial, wrong)
                if search.failed == FAILED_MAX:
                    break
            for code, (seed, values) in search.found.items():
                # A run that was found for another reason may fail in this way, too.
                if not any(code == one.code for each in failing for one in each.violations):
                    failing.append(self._simplest(code, seed, values))
        except KeyboardInterrupt:
            interrupted = True
            told = {one.code for each in failing for one in each.violations}
            failing += [
                self._failing(values, seed, code)
                for code, (seed, values) in search.found.items()
                if code not in told
            ]
        stopped = not interrupted and search.coverage.runs < seeds
        return FuzzReport(
            graph.name,
            search.coverage.runs,
            first_seed,
            tuple({one.token: one for one in failing}.values()),
            search.failed,
            search.coverage,
            (f"stopped after {FAILED_MAX} failing seeds",) if stopped else (),
            interrupted=interrupted,
        )

    def again(self, values: tuple[int, ...], mark: int) -> FuzzReport:
        """Run the world of these choices again.

        Args:
            values: the choices.
            mark: the checksum of what they were made for.
        """
        coverage = Coverage.of(self.subject.graph)
        trial, wrong = self.tried(Choices.given(values))
        coverage.add(self.subject.graph, trial.story)
        token = to_token(values, self.subject.mark)
        failing = (Failing(wrong, None, token, tuple(trial.story.lines())),) if wrong else ()
        changed = mark != self.subject.mark
        notes = ("the table or the tools have changed since this token was made",)
        return FuzzReport(
            self.subject.graph.name,
            1,
            0,
            failing,
            len(failing),
            coverage,
            notes if changed else (),
        )

    def tried(
        self, choices: Choices, events_max: int | None = None
    ) -> tuple[Trial[S], tuple[Violation, ...]]:
        """Return one run, and what is wrong with it, in the order that it happened."""
        most = self._events_max if events_max is None else events_max
        trial = trials.tried(self.subject, choices, most)
        wrong = violations(self.subject, trial, self._bound)
        # What came first is the cause of much that came later.
        return trial, tuple(sorted(wrong, key=lambda one: one.event or len(trial.events)))

    def _simplest(self, code: str, seed: int, values: tuple[int, ...]) -> Failing:
        _, found = self.tried(Choices.given(values))
        event = next(one.event for one in found if one.code == code)
        # What goes wrong later is not simpler, so nobody needs to look further.
        most = event + 1 if event and code != "endless" else None

        def fails(candidate: tuple[int, ...]) -> tuple[int, ...] | None:
            trial, wrong = self.tried(Choices.given(candidate), most)
            return trial.choices if any(one.code == code for one in wrong) else None

        return self._failing(shrunk(values, fails), seed, code)

    def _failing(self, values: tuple[int, ...], seed: int, code: str) -> Failing:
        trial, wrong = self.tried(Choices.given(values))
        first = sorted(wrong, key=lambda one: one.code != code)
        token = to_token(values, self.subject.mark)
        return Failing(tuple(first), seed, token, tuple(trial.story.lines()))


@dataclass
class _Search:
    """What was seen so far: the first failure of each kind, with its seed and its choices."""

    coverage: Coverage
    found: dict[str, tuple[int, tuple[int, ...]]] = field(
        default_factory=dict[str, tuple[int, tuple[int, ...]]]
    )
    failed: int = 0

    def note(
        self, graph: Graph[S], seed: int, trial: Trial[S], wrong: tuple[Violation, ...]
    ) -> None:
        self.coverage.add(graph, trial.story)
        self.failed += bool(wrong)
        for one in wrong:
            self.found.setdefault(one.code, (seed, trial.choices))


def subject_of(
    subject: Agent | Graph[Any],
    tools: Tools = (),
    state: object = None,
    rules: Rules | Iterable[Rules] = (),
) -> Subject[Any]:
    """Return what is fuzzed; the arguments are those of `fuzz`.

    Raises:
        ConfigError: a rule, a tool or the state cannot work.
    """
    given = rules_of(rules)
    if isinstance(subject, Agent):
        if tools:
            raise ConfigError("`tools` are for a graph; an agent has its own")
        graph: Graph[Any] = subject.graph
        opener = subject.as_tool(name="fuzzed").opener
        assert isinstance(opener, Runner), "an agent's runs are opened by its runner"
        setup = opener.setup
    else:
        graph = subject
        specs = Toolbox(split_tools(tools)[0]).specs
        setup = Setup("model", specs or invented_tools(graph, graph.rules & given))
    names = names_of(graph, [one.name for one in setup.tools])
    kept = resolve(graph.rules, names)
    setup = evolve(setup, watch=(Rules(setup.watch) & kept).rules)
    known = resolve(given, names) & kept
    iterated = isinstance(subject, Agent)
    return Subject(graph, _state(graph, state), setup, known, iterated=iterated)


def _state(graph: Graph[Any], given: object) -> object:
    kind = graph.state_type if isinstance(graph, FrontGraph) else None
    if given is not None or not isinstance(kind, type):
        return given
    try:
        made: object = kind()
    except TypeError as error:
        raise ConfigError(
            f"graph {graph.name!r} carries a state of type {kind.__name__}, which cannot be made "
            f"without arguments ({error}): give one with `state=`"
        ) from error
    return made
