"""The simulation driver: runs a graph with the real kernel and answers from your own functions.

It uses no event loop and no real time. The seed decides which pending effect is answered next: the
same seed gives the same events, byte for byte. The caller chooses after which events the process
crashes or the run is aborted. A crash loses everything but the journal. The simulation then
replays the journal and performs the pending effects again. A call that must not be repeated starts
only after `EffectsStarted` is journaled. If a crash interrupts such a call, its result is
`unknown`, and the seed decides whether the tool took effect.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NoReturn, TypeAlias, TypeVar, assert_never

from ..driver import child_abandoned, failed
from ..effects import (
    AskHuman,
    AwaitCaller,
    CallModel,
    CallTool,
    CheckCalls,
    Effect,
    Invoke,
    StartRun,
)
from ..errors import GraphloopError
from ..events import (
    CallbackAnswer,
    CallbackReturned,
    CallCheck,
    CallsChecked,
    Cancelled,
    ChildEnded,
    Decided,
    EffectFailed,
    EffectsStarted,
    Event,
    Failure,
    ModelReplied,
    Queued,
    Resumed,
    Setup,
    Started,
    Steered,
    ToolReturned,
)
from ..graph import NodeGraph
from ..policy import Approval
from ..replay import replay
from ..run import Run
from ..spending import Spent
from ..step import begin, step
from ..tools import ToolOutcome, unknown_outcome
from ..values import Message, Reply, ResultStatus, evolve

__all__ = ["ChildAnswer", "Simulation", "World", "simulate"]

S = TypeVar("S")

EVENTS_MAX: Final = 100_000
"""The default number of events after which a simulation raises an error."""

LATENCY_MAX_S: Final = 10.0

DOWNTIME_MAX_S: Final = 1_000.0
"""The maximum virtual time, in seconds, between a crash and the resume."""

ChildAnswer: TypeAlias = tuple[str, ResultStatus, Spent]
"""The end of a child run: its answer, its status, and its use of the budget."""


def _not_in_world(kind: str, name: str) -> NoReturn:
    raise GraphloopError(f"this world has no {kind} for {name!r}")


@dataclass(frozen=True, kw_only=True)
class World:
    """Your functions that answer the effects of a simulated run.

    An error that a function raises becomes the event `EffectFailed`.

    Args:
        model: returns the model's reply to a request.
        tool: returns the outcome of a tool call. It is called once for each execution that takes
            effect, even if a crash loses the result.
        check: returns a check for each call; by default every call is valid without an approval.
        human: returns a person's decision, or None to park the run.
        callback: returns the answer in place of a user's function.
        child: returns the end of a child run, or None to park the child.
        steer: returns the `Steered` event of a caller that iterates the run. The simulation sets
            its time and its effect.
        repeatable: whether a call may run again after a crash; by default no call may.
    """

    model: Callable[[CallModel], Reply]
    tool: Callable[[CallTool], ToolOutcome]
    check: Callable[[CheckCalls], tuple[CallCheck, ...]] = lambda effect: (
        (CallCheck(),) * len(effect.calls)
    )
    human: Callable[[AskHuman], Approval | None] = lambda _: None
    callback: Callable[[Invoke], CallbackAnswer] = lambda effect: _not_in_world(
        "callback", effect.callback
    )
    child: Callable[[StartRun], ChildAnswer | None] = lambda effect: _not_in_world(
        "agent", effect.agent
    )
    steer: Callable[[AwaitCaller, Run[Any]], Steered] = lambda effect, run: Steered(
        run.at, effect.id
    )
    repeatable: Callable[[CallTool], bool] = lambda _: False


@dataclass
class Simulation(Generic[S]):
    """The result of `simulate`: the run, its journal, and counts of the executed calls.

    Attributes:
        run: the run after its last event.
        events: the journal.
        executions: maps the key of a call to how often the call was started.
        finished: the keys of the calls whose results are in the journal.
        repeated: the keys of calls that started again although their results were journaled. A
            call that must not be repeated is listed if its earlier start was journaled. Any key
            here shows a bug of graphloop.
    """

    run: Run[S]
    events: list[Event]
    executions: Counter[str] = field(default_factory=Counter[str])
    finished: set[str] = field(default_factory=set[str])
    repeated: set[str] = field(default_factory=set[str])


def simulate(  # noqa: PLR0913 - each keyword is one dial of the simulation
    graph: NodeGraph[S],
    messages: Sequence[Message],
    world: World,
    state: S,
    *,
    setup: Setup,
    seed: int = 0,
    crash_after: Collection[int] = (),
    abort_after: int | None = None,
    meanwhile: Mapping[int, Queued | Cancelled] | None = None,
    events_max: int | None = None,
    journal: list[Event] | None = None,
) -> Simulation[S]:
    """Simulate one run until it ends, or until only people or child runs could answer.

    Args:
        graph: the graph to run.
        messages: the input of the run.
        world: the functions that answer the effects.
        state: the user's state at the start of the run.
        setup: the model, the tools and the settings of the run.
        seed: decides the order and times of the answers, and which interrupted tools took effect
            before a crash.
        crash_after: the numbers of the events (1 is `Started`) after which the process crashes.
        abort_after: the number of the event after which the run is cancelled.
        meanwhile: maps the number of an event to the `Queued` or `Cancelled` event that the caller
            sends after it. The simulation sets the times of these events.
        events_max: the number of events after which the simulation raises an error.
        journal: an empty list to append the events to. It keeps them even if `simulate` raises.

    Raises:
        GraphloopError: the run took more than `events_max` events.
        Exception: a node raised this error.
    """
    most = EVENTS_MAX if events_max is None else events_max
    started = Started(0.0, f"sim-{seed}", graph.name, tuple(messages), setup, state)
    events: list[Event] = [] if journal is None else journal
    events.append(started)
    first = begin(graph, started, state)
    simulation = Simulation(first.run, events)
    # A secure generator has no seed, and a simulation must be repeatable.
    process = _Process(graph, world, random.Random(seed), simulation)
    if 1 in crash_after:
        process.crash()
    else:
        process.perform(first.effects)
    outside = {**(meanwhile or {})}
    if abort_after is not None:
        outside[abort_after] = Cancelled(0.0, "simulated")
    while not simulation.run.ended:
        interruption = outside.get(len(simulation.events))
        event = process.next_event() if interruption is None else process.interrupted(interruption)
        if event is None:
            break
        if len(simulation.events) >= most:
            raise GraphloopError(f"seed {seed}: not over after {most} events")
        process.take(event, crash=len(simulation.events) + 1 in crash_after)
    return simulation


class _Process(Generic[S]):
    """The simulated driver process, with the effects to start and the effects in flight.

    Each effect in flight is stored with the virtual time of its answer. A crash empties both lists,
    and the next process resumes in the same object.
    """

    def __init__(
        self, graph: NodeGraph[S], world: World, rng: random.Random, simulation: Simulation[S]
    ) -> None:
        self._graph = graph
        self._world = world
        self._rng = rng
        self._simulation = simulation
        self._clock = 0.0
        self._resuming = False
        self._waiting: list[Effect] = []
        self._in_flight: list[tuple[float, Effect]] = []
        self._interrupted: frozenset[int] = frozenset()
        self._resumed_at = 0
        self._started: set[int] = set()

    def perform(self, effects: Iterable[Effect]) -> None:
        """Queue the effects to start, except those that no person or child will answer."""
        self._waiting += [effect for effect in effects if not self._is_silent(effect)]

    def interrupted(self, event: Queued | Cancelled) -> Event:
        """Return the caller's event at the current time; an immediate stop drops all effects."""
        if isinstance(event, Cancelled) and not event.after_step:
            unstarted = tuple(
                [wait.id for wait in self._waiting if self._is_surely_unstarted(wait)]
            )
            self._waiting.clear()
            self._in_flight.clear()
            event = evolve(event, unstarted=unstarted)
        return evolve(event, at=self._clock)

    def next_event(self) -> Event | None:
        """Start the waiting effects, and return the next event; None if no effect can be answered.

        The next event may also be `Resumed`, `EffectsStarted` or the end of an abandoned child.
        """
        if self._simulation.run.abandoned:
            return self._end_abandoned(min(self._simulation.run.abandoned))
        if self._resuming and self._waiting:
            self._resuming = False
            return Resumed(self._clock)
        risky = [effect.id for effect in self._waiting if self._must_be_noted(effect)]
        if risky:
            return EffectsStarted(self._clock, tuple(risky))
        for effect in self._waiting:
            self._start_effect(effect)
        self._waiting.clear()
        return self._next_answer() if self._in_flight else None

    def take(self, event: Event, *, crash: bool) -> None:
        """Append an event to the journal; then crash if `crash` is set, else apply the event."""
        simulation = self._simulation
        answered = simulation.run.pending.get(getattr(event, "effect", 0))
        if isinstance(answered, StartRun):
            simulation.finished.add(answered.key)
        if isinstance(answered, CallTool) and getattr(event, "status", "") != "unknown":
            simulation.finished.add(answered.key)
        simulation.events.append(event)
        self._clock = event.at
        if crash:
            self.crash()
        else:
            taken = step(self._graph, simulation.run, event)
            simulation.run = taken.run
            self.perform(taken.effects)

    def crash(self) -> None:
        """Drop all effects, replay the run from the journal, and perform its pending effects."""
        for _, effect in self._in_flight:
            if self._may_run(effect) and self._rng.random() < 0.5:
                self._lose_result(effect)
        self._in_flight.clear()
        self._waiting.clear()
        self._resuming = True
        self._clock += self._rng.uniform(0.0, DOWNTIME_MAX_S)
        run = self._simulation.run = replay(self._graph, self._simulation.events)
        self._interrupted, self._resumed_at = run.started, run.next_effect
        if not run.ended:
            self.perform(run.pending.values())

    def _end_abandoned(self, effect_id: int) -> Event:
        """Return the event that ends an abandoned effect; the seed decides on a child's costs."""
        self._waiting = [wait for wait in self._waiting if wait.id != effect_id]
        self._in_flight = [pair for pair in self._in_flight if pair[1].id != effect_id]
        effect, spent = self._simulation.run.pending[effect_id], Spent()
        if not isinstance(effect, StartRun):
            return EffectFailed(self._clock, effect_id, Failure("Abandoned", "not needed any more"))
        with suppress(Exception):
            ended = self._world.child(effect) if self._rng.random() < 0.5 else None
            spent = spent if ended is None else ended[2]
        return child_abandoned(self._clock, effect_id, spent)

    def _is_surely_unstarted(self, effect: Effect) -> bool:
        """Whether it is certain that no process has started this waiting call or child run."""
        if not isinstance(effect, CallTool | StartRun):
            return False
        return effect.id >= self._resumed_at or self._must_be_noted(effect)

    def _must_be_noted(self, effect: Effect) -> bool:
        return (
            isinstance(effect, CallTool)
            and not effect.client
            and effect.id not in self._simulation.run.started
            and not self._world.repeatable(effect)
        )

    def _may_run(self, effect: Effect) -> bool:
        """Whether to run the effect's tool: not if a crash interrupted an unrepeatable call."""
        if not isinstance(effect, CallTool):
            return False
        return effect.id not in self._interrupted or self._world.repeatable(effect)

    def _start_effect(self, effect: Effect) -> None:
        if isinstance(effect, CallTool) and self._may_run(effect):
            again = effect.id in self._started and not (
                effect.client or self._world.repeatable(effect)
            )
            if again or effect.key in self._simulation.finished:
                self._simulation.repeated.add(effect.key)
            self._started.add(effect.id)
            self._simulation.executions[effect.key] += 1
        if isinstance(effect, StartRun) and effect.key in self._simulation.finished:
            self._simulation.repeated.add(effect.key)
        self._in_flight.append((self._clock + self._rng.uniform(0.001, LATENCY_MAX_S), effect))

    def _next_answer(self) -> Event:
        """Remove the effect in flight with the earliest answer, and return the answer's event."""
        soonest = min(range(len(self._in_flight)), key=lambda at: self._in_flight[at][0])
        at, effect = self._in_flight.pop(soonest)
        if isinstance(effect, CallTool) and not self._may_run(effect):
            outcome = unknown_outcome(effect.call.name)
            return ToolReturned(at, effect.id, outcome.content, outcome.status, outcome.data)
        try:
            return _answer_effect(self._world, effect, self._simulation.run, at)
        except Exception as error:  # noqa: BLE001 - the effect boundary
            return failed(at, effect, error)

    def _lose_result(self, effect: Effect) -> None:
        """Call the tool's function, and drop its result, as if a crash had lost it."""
        with suppress(Exception):
            _answer_effect(self._world, effect, self._simulation.run, self._clock)

    def _is_silent(self, effect: Effect) -> bool:
        if not isinstance(effect, AskHuman | StartRun):
            return False
        try:
            if isinstance(effect, AskHuman):
                return self._world.human(effect) is None
            return self._world.child(effect) is None
        except Exception:  # noqa: BLE001 - `_next_answer` calls it again and reports the error
            return False


def _answer_effect(  # noqa: PLR0911 - one way out for each effect
    world: World, effect: Effect, run: Run[Any], at: float
) -> Event:
    match effect:
        case CallModel():
            return ModelReplied(at, effect.id, world.model(effect), 0.0)
        case CallTool():
            outcome = world.tool(effect)
            return ToolReturned(at, effect.id, outcome.content, outcome.status, outcome.data)
        case CheckCalls():
            return CallsChecked(at, effect.id, world.check(effect))
        case Invoke():
            return CallbackReturned(at, effect.id, world.callback(effect))
        case AskHuman():
            approval = world.human(effect)
            assert approval is not None, "an effect without an answer is not started"
            return Decided(at, effect.id, approval.approved, approval.reason, approval.edit)
        case StartRun():
            ended = world.child(effect)
            assert ended is not None, "a child that parks is not started"
            return ChildEnded(at, effect.id, *ended)
        case AwaitCaller():
            return evolve(world.steer(effect, run), at=at, effect=effect.id)
        case _:
            assert_never(effect)
