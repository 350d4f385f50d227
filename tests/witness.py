"""Walks witnesses: finds a world in which a run takes exactly these lines, and simulates it.

The kernel is asked what each possible answer leads to; as soon as a run leaves the witness, that
answer is given up. What is found is then run by the simulation, which knows nothing of the search.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Final

from graphloop.approvals import Approval
from graphloop.drivers.sim import ChildAnswer, Simulation, World, simulate
from graphloop.effects import (
    AskHuman,
    CallModel,
    CallTool,
    CheckCalls,
    Effect,
    HandOver,
    Invoke,
    StartRun,
)
from graphloop.errors import GraphError, GraphloopError
from graphloop.events import (
    Answer,
    CallbackReturned,
    CallCheck,
    CallsChecked,
    Cancelled,
    Changes,
    ChildEnded,
    Decided,
    EffectFailed,
    Event,
    Failure,
    Judged,
    ModelReplied,
    Setup,
    Started,
    Steered,
    ToolReturned,
    Tripped,
)
from graphloop.graph import Graph
from graphloop.proofs.report import Finding
from graphloop.run import Run
from graphloop.spending import Budget, Spent
from graphloop.step import begin, step
from graphloop.tool_outcome import ToolOutcome
from graphloop.values import FinishReason, Message, Reply, Usage, UserMessage, evolve
from tests.recording import recorded
from tests.strategies import call, reply, said, setup

__all__ = ["Walked", "walk"]

FULL: Final = "ContextOverflow"
LIMIT: Final = 5_000
"""A reply may use more than the budget, so that a stop check stops."""

ASKED_MAX: Final = 200
"""After how many effects a run that goes in circles has shown that it does."""

SETUPS: Final = tuple(
    evolve(setup(client=False), budget=Budget(tokens=LIMIT, tool_calls=calls), attended=attended)
    for attended in (False, True)
    for calls in (None, 1)
)
"""A caller that has its say, or none; a budget that one call of a tool has spent, or none."""

CONVERSATIONS: Final[tuple[tuple[Message, ...], ...]] = (
    (UserMessage("go"),),
    (UserMessage("go"), said(call("read", "a"))),
    (UserMessage("go"), said(call("read", "a"), call("read", "b"))),
    (UserMessage("x" * 40_000),),
)
VERDICTS: Final = ('{"accepted": true, "feedback": ""}', '{"accepted": false, "feedback": "no"}')
REPLIES: Final = (
    reply("done"),
    reply(call("read", "a")),
    reply(finish=FinishReason.PAUSE),
    reply("half", call("read", "a", "{"), finish=FinishReason.LENGTH),
    reply(),
    reply("no", finish=FinishReason.REFUSAL),
    reply("full", finish=FinishReason.CONTEXT_WINDOW),
)
FAILURES: Final = (Failure("ServerError", "down"), Failure(FULL, "full"))


class _Enough(BaseException):
    """No effect fails by this: it ends the simulation."""


@dataclass(frozen=True)
class Walked:
    """What came of a witness: the lines that it took, and the simulation, if it came to an end."""

    simulation: Simulation[None] | None
    left: tuple[tuple[str, str], ...]
    entered: tuple[str, ...]


@dataclass(frozen=True)
class _Plan:
    messages: tuple[Message, ...]
    answers: Mapping[int, Event]
    abort_after: int | None
    setup: Setup


def walk(graph: Graph[None], finding: Finding) -> Walked | None:
    """Simulate a run along the witness of `finding`; None if no world was found for it."""
    lines = tuple(zip(finding.witness, finding.outcomes, strict=False))
    for given, messages in product(SETUPS, CONVERSATIONS):
        plan = _search(graph, lines, finding.witness[-1], messages, given)
        if plan is not None:
            return _simulated(graph, plan)
    return None


def _search(
    graph: Graph[None],
    lines: tuple[tuple[str, str], ...],
    last: str,
    messages: tuple[Message, ...],
    given: Setup,
) -> _Plan | None:
    heard, left, entered = recorded(graph)
    started = Started(0.0, "sim-0", graph.name, messages, given, None)
    first = begin(heard, started, None).run
    todo: list[tuple[Run[None], tuple[Event, ...], tuple[tuple[str, str], ...], str]] = [
        (first, (started,), tuple(left), "END" if first.ended else entered[-1])
    ]
    for _ in range(20_000):
        if not todo:
            return None
        run, events, taken, place = todo.pop()
        if taken[: len(lines)] == lines and (len(taken) > len(lines) or place == last):
            return _planned(messages, events, given)
        if run.ended or taken != lines[: len(taken)]:
            continue
        for event in reversed(list(_answers(run))):
            del left[:], entered[:]
            try:
                after = step(heard, run, event).run
            except GraphError:
                # A cycle that never waits: the kernel gives it up, and it was walked all the same.
                if (*taken, *left)[: len(lines)] == lines:
                    return _planned(messages, (*events, event), given)
                continue
            except ValueError:
                continue
            arrived = "END" if after.ended else entered[-1] if entered else place
            todo.append((after, (*events, event), (*taken, *left), arrived))
    return None


def _planned(messages: tuple[Message, ...], events: tuple[Event, ...], given: Setup) -> _Plan:
    answers = {getattr(event, "effect", 0): event for event in events[1:]}
    cancelled = [at for at, event in enumerate(events) if isinstance(event, Cancelled)]
    return _Plan(messages, answers, cancelled[0] if cancelled else None, given)


def _answers(run: Run[None]) -> Iterator[Event]:
    """Yield what may happen next, the ordinary first."""
    effect = run.pending[min(run.pending)]
    at = run.at + 1
    yield from _answers_to(effect, at)
    yield Cancelled(at, "simulated")


def _answers_to(effect: Effect, at: float) -> Iterator[Event]:  # noqa: C901 - one case an effect
    match effect:
        case CallModel(request=request):
            for one in _replies(request.tool_choice.mode == "tool"):
                yield ModelReplied(at, effect.id, one, 0.0)
                yield ModelReplied(at, effect.id, evolve(one, usage=Usage(LIMIT)), 0.0)
            for failure in FAILURES:
                yield EffectFailed(at, effect.id, failure)
        case CheckCalls():
            for asked in (0, 1, len(effect.calls)):
                checks = [CallCheck("", place < asked) for place in range(len(effect.calls))]
                yield CallsChecked(at, effect.id, tuple(checks))
        case AskHuman():
            for approved in (True, False):
                yield Decided(at, effect.id, approved)
        case CallTool():
            yield ToolReturned(at, effect.id, "fine")
        case Invoke():
            for answer in _callbacks():
                yield CallbackReturned(at, effect.id, answer)
        case StartRun():
            yield ChildEnded(at, effect.id, "42", "ok", Spent())
            yield ChildEnded(at, effect.id, "bad", "error", Spent())
        case HandOver():
            yield Steered(at, effect.id)
            yield Steered(at, effect.id, append=(UserMessage("more"),))
        case _:
            return


def _replies(judged: bool) -> tuple[Reply, ...]:
    if judged:
        return tuple(reply(call("verdict", "v", one)) for one in VERDICTS)
    return REPLIES


def _callbacks() -> tuple[Answer, ...]:
    return Judged(True), Judged(False, "no", True), Changes(), Tripped()


def _simulated(graph: Graph[None], plan: _Plan) -> Walked:
    heard, left, entered = recorded(graph)

    def model(effect: CallModel) -> Reply:
        event = plan.answers.get(effect.id)
        if effect.id > ASKED_MAX:
            raise _Enough
        if isinstance(event, EffectFailed):
            raise _error(event.failure)
        return event.reply if isinstance(event, ModelReplied) else reply("done")

    def check(effect: CheckCalls) -> tuple[CallCheck, ...]:
        event = plan.answers.get(effect.id)
        if isinstance(event, CallsChecked):
            return event.checks
        return (CallCheck(),) * len(effect.calls)

    def human(effect: AskHuman) -> Approval:
        event = plan.answers.get(effect.id)
        return Approval(not isinstance(event, Decided) or event.approved)

    def callback(effect: Invoke) -> Answer:
        event = plan.answers.get(effect.id)
        return event.answer if isinstance(event, CallbackReturned) else Changes()

    def child(effect: StartRun) -> ChildAnswer:
        event = plan.answers.get(effect.id)
        return ("42", event.status if isinstance(event, ChildEnded) else "ok", Spent())

    def steer(effect: HandOver, run: Run[None]) -> Steered:
        event = plan.answers.get(effect.id)
        return event if isinstance(event, Steered) else Steered(run.at, effect.id)

    world = World(
        model=model,
        tool=lambda _: ToolOutcome("fine", "ok"),
        check=check,
        human=human,
        callback=callback,
        child=child,
        steer=steer,
        repeatable=lambda _: True,
    )
    simulation = None
    with suppress(_Enough, GraphError):
        simulation = simulate(
            heard,
            plan.messages,
            world,
            None,
            setup=plan.setup,
            abort_after=plan.abort_after,
        )
    return Walked(simulation, tuple(left), tuple(entered))


def _error(failure: Failure) -> Exception:
    kind: type[Exception] = type(failure.error, (GraphloopError,), {})
    return kind(failure.message)
