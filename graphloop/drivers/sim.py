"""The simulation driver: the same kernel, under a seed, in a world that you write.

No event loop, no real time. Which pending effect is answered next is drawn from the seed; faults,
a crash after any event, and an abort after any event are injected; the same seed gives the same
events, byte for byte. A crash forgets everything but the journal: the run is folded from it, and
what was pending is performed again.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar, assert_never

from ..effects import AskHuman, CallModel, CallTool, CheckCalls, Effect, Invoke
from ..errors import GraphloopError
from ..events import (
    Answer,
    CallbackReturned,
    CallCheck,
    CallsChecked,
    Cancelled,
    Decided,
    Event,
    ModelReplied,
    Setup,
    Started,
    ToolReturned,
)
from ..graph import Graph
from ..replay import replay
from ..run import Run
from ..step import begin, step
from ..tool_outcome import ToolOutcome
from ..values import Message, Reply
from .perform import failed
from .ports import Approval

__all__ = ["Simulation", "World", "simulate"]

S = TypeVar("S")

EVENTS_MAX: Final = 100_000
"""After how many events a simulation is given up: nothing bounded gets here."""

LATENCY_MAX_S: Final = 10.0


def _all_valid(effect: CheckCalls) -> tuple[CallCheck, ...]:
    return tuple(CallCheck() for _ in effect.calls)


def _nobody(_: AskHuman) -> Approval | None:
    return None


def _no_callback(effect: Invoke) -> Answer:
    raise GraphloopError(f"this world has no callback for {effect.callback!r}")


@dataclass(frozen=True, kw_only=True)
class World:
    """How effects are answered. Whatever a function raises becomes `EffectFailed`.

    Args:
        model: a reply for a request.
        tool: what a tool returns; called once for every execution.
        check: one check a call; by default every call is valid and needs no approval.
        human: a decision, or None for "no answer": the run then parks.
        callback: what a function of the user's returns.
    """

    model: Callable[[CallModel], Reply]
    tool: Callable[[CallTool], ToolOutcome]
    check: Callable[[CheckCalls], tuple[CallCheck, ...]] = _all_valid
    human: Callable[[AskHuman], Approval | None] = _nobody
    callback: Callable[[Invoke], Answer] = _no_callback


@dataclass
class Simulation(Generic[S]):
    """What a simulation came to.

    `run` is the last state and `events` the journal; `executions` counts how often each call was
    started, by its key; `repeated` are keys that were started again after their result had been
    journaled (always empty, or graphloop has a bug).
    """

    run: Run[S]
    events: list[Event]
    executions: Counter[str] = field(default_factory=Counter[str])
    finished: set[str] = field(default_factory=set[str])
    repeated: set[str] = field(default_factory=set[str])


def simulate(  # noqa: PLR0913 - each keyword is one dial of the simulation
    graph: Graph[S],
    messages: Sequence[Message],
    world: World,
    state: S,
    *,
    setup: Setup,
    seed: int = 0,
    crash_after: Collection[int] = (),
    abort_after: int | None = None,
) -> Simulation[S]:
    """Simulate one run to its end, or until everything that is pending waits for a human.

    Args:
        graph: what to run.
        messages: the conversation it begins with.
        world: how effects are answered.
        state: the user's state.
        setup: model, tools and settings.
        seed: decides the order and the times of all answers.
        crash_after: after which events (1 is `Started`) the process dies and resumes.
        abort_after: after which event the run is cancelled.

    Raises:
        GraphloopError: the run took more than `EVENTS_MAX` events.
    """
    # Not for secrets: a seeded simulation must be repeatable.
    rng = random.Random(seed)
    clock = 0.0
    started = Started(clock, f"sim-{seed}", graph.name, tuple(messages), setup, state)
    first = begin(graph, started, state)
    simulation = Simulation(first.run, [started])
    flying = _Flying(world, rng, simulation)
    flying.launch(first.effects, clock)
    if 1 in crash_after:
        flying.effects.clear()
        simulation.run = replay(graph, simulation.events)
        flying.launch(simulation.run.pending.values(), clock)
    while not simulation.run.ended and (flying.effects or len(simulation.events) == abort_after):
        if len(simulation.events) == abort_after:
            event: Event = Cancelled(clock, "simulated")
            flying.effects.clear()
        else:
            event = flying.land()
        clock = event.at
        simulation.events.append(event)
        if len(simulation.events) > EVENTS_MAX:
            raise GraphloopError(f"seed {seed}: not over after {EVENTS_MAX} events")
        if len(simulation.events) in crash_after:
            simulation.run = replay(graph, simulation.events)
            flying.effects.clear()
            flying.launch(simulation.run.pending.values(), clock)
        else:
            taken = step(graph, simulation.run, event)
            simulation.run = taken.run
            flying.launch(taken.effects, clock)
    return simulation


class _Flying(Generic[S]):
    """Effects on their way, each with the virtual time of its answer."""

    def __init__(self, world: World, rng: random.Random, simulation: Simulation[S]) -> None:
        self.effects: list[tuple[float, Effect]] = []
        self._world = world
        self._rng = rng
        self._simulation = simulation

    def launch(self, effects: Collection[Effect], now: float) -> None:
        """Start effects; their answers come at random times."""
        for effect in effects:
            if isinstance(effect, CallTool):
                self._count(effect)
            if isinstance(effect, AskHuman) and self._is_silent(effect):
                continue
            self.effects.append((now + self._rng.uniform(0.001, LATENCY_MAX_S), effect))

    def land(self) -> Event:
        """Return the answer that comes first."""
        soonest = min(range(len(self.effects)), key=lambda at: self.effects[at][0])
        at, effect = self.effects.pop(soonest)
        try:
            event = _answer(self._world, effect, at)
        except Exception as error:  # noqa: BLE001 - the effect boundary
            return failed(at, effect, error)
        if isinstance(effect, CallTool):
            self._simulation.finished.add(effect.key)
        return event

    def _is_silent(self, effect: AskHuman) -> bool:
        try:
            return self._world.human(effect) is None
        except Exception:  # noqa: BLE001 - it raises again when it lands, at the effect boundary
            return False

    def _count(self, effect: CallTool) -> None:
        if effect.key in self._simulation.finished:
            self._simulation.repeated.add(effect.key)
        self._simulation.executions[effect.key] += 1


def _answer(world: World, effect: Effect, at: float) -> Event:
    match effect:
        case CallModel():
            return ModelReplied(at, effect.id, world.model(effect), 0.0)
        case CallTool():
            outcome = world.tool(effect)
            return ToolReturned(at, effect.id, outcome.content, outcome.status)
        case CheckCalls():
            return CallsChecked(at, effect.id, world.check(effect))
        case Invoke():
            return CallbackReturned(at, effect.id, world.callback(effect))
        case AskHuman():
            approval = world.human(effect)
            assert approval is not None, "an effect nobody answers is not launched"
            return Decided(at, effect.id, approval.approved, approval.reason, approval.edit)
        case _:
            assert_never(effect)
