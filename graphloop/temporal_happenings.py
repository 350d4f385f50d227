"""Happenings: which of the things that rules speak of take place as a run goes on.

A call is let through by its gate, by the last of several in a row, with the approval, if a person
gave one, right before it: in request order, and before the gate is left. So calls that run side by
side cannot both be the last one allowed. A call that no gate has let through counts when it is
asked for, and one that a person wants run again, because nobody knows whether it took effect,
counts again. It returns with the event that answers it; a call that is answered without having run
never does.

The loop's own tools are none that a rule speaks of. A conversation that was handed in and goes on
where it stopped, with open calls or with results, is the same run to its caller: what it says has
run is past.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, TypeVar

from .effects import AskHuman, CallTool, Effect, StartRun
from .events import ChildEnded, Decided, EffectFailed, Event, ToolReturned
from .outcomes import Aborted, Outcome, outcome_name
from .run import Run, evolve
from .temporal.automata import (
    Happening,
    approval_of,
    earlier,
    entered,
    past_call,
    ran,
    returned,
    taken,
)
from .temporal.monitor import Monitor, Wanted, judged, refusal
from .turn import Verdict
from .values import ToolResult, UserMessage, call_key, call_place

__all__ = [
    "before_the_run",
    "let_through",
    "on_leaving",
    "on_returning",
    "on_wishing",
    "restrained",
    "run_again",
]

S = TypeVar("S")

NOT_RUN: Final = frozenset({"invalid", "unknown_tool", "denied", "not_run"})
"""What is said of a call that has not run."""


def before_the_run(run: Run[S]) -> Iterator[Happening]:
    """Yield what has happened in a conversation that a run begins with and goes on.

    A question begins something new. What ran before the last one counts against what is allowed
    nevertheless, as somebody may have said something while the run went on.
    """
    messages = run.messages
    if run.setup.depth or not len(messages) or isinstance(messages[-1], UserMessage):
        return
    asked = max((at for at, one in enumerate(messages) if isinstance(one, UserMessage)), default=-1)
    for at, one in enumerate(messages):
        if not isinstance(one, ToolResult) or one.status in NOT_RUN or one.name in run.setup.own:
            continue
        if at < asked:
            yield earlier(one.name)
        else:
            yield from past_call(one.name, well=one.status == "ok")


def let_through(run: Run[S], counted: Collection[str]) -> dict[str, Wanted]:
    """Return the calls that a gate lets through as it is left, by key, in request order.

    Args:
        run: the run, as its gate leaves it.
        counted: the keys of calls that were let through before, by another gate perhaps.
    """
    turn = run.turn
    results = turn.results or (None,) * len(turn.calls)
    return {
        key: Wanted(call.name, verdict.asked)
        for place, (call, verdict) in enumerate(zip(turn.calls, turn.verdicts, strict=False))
        if verdict is not None and verdict.kind == "run" and results[place] is None
        if call.name not in run.setup.own
        if (key := call_key(turn.number, place)) not in counted
    }


def restrained(run: Run[S], monitor: Monitor, counted: Collection[str]) -> Run[S]:
    """Return the run, as its gate leaves it, with those calls denied that rules forbid now."""
    wanted = let_through(run, counted)
    denied = {
        call_place(key): Verdict("deny", refusal(rule))
        for key, rule in zip(wanted, judged(monitor, wanted.values()), strict=True)
        if rule is not None
    }
    if not denied:
        return run
    verdicts = tuple([denied.get(at, one) for at, one in enumerate(run.turn.verdicts)])
    return evolve(run, turn=evolve(run.turn, verdicts=verdicts))


def on_leaving(
    run: Run[S], *, node: str, outcome: type[Outcome], target: str, lets: bool, counted: set[str]
) -> Iterator[Happening]:
    """Yield what happens as a node is left, and where that leads is entered.

    If that `lets` calls through, their keys are added to `counted`.
    """
    if lets and not issubclass(outcome, Aborted):
        for key, wanted in let_through(run, counted).items():
            counted.add(key)
            yield from _run(wanted)
    yield taken(node, outcome_name(outcome))
    yield entered(target)


def on_wishing(run: Run[S], effects: Iterable[Effect], *, counted: set[str]) -> Iterator[Happening]:
    """Yield the tools among these wishes that no gate has let through; they count from now on."""
    for effect in effects:
        tool = _tool(run, effect)
        if tool and isinstance(effect, CallTool | StartRun) and effect.key not in counted:
            counted.add(effect.key)
            yield ran(tool)


def on_returning(run: Run[S], event: Event, answered: Effect | None) -> Iterator[Happening]:
    """Yield that a tool has returned, if that is what has happened to a run.

    Args:
        run: the run that waited for it.
        event: what happened.
        answered: the effect that it answers.
    """
    if answered is None or not (tool := _tool(run, answered)):
        return
    if isinstance(event, ToolReturned | ChildEnded):
        yield returned(tool, well=event.status == "ok")
    elif isinstance(event, EffectFailed):
        yield returned(tool, well=False)


def run_again(event: Event, answered: Effect | None, after: Run[S]) -> Iterator[Happening]:
    """Yield what happens if a person has a call run again that may have run already.

    Args:
        event: what happened to a node that was not left.
        answered: the effect that it answers.
        after: the run that waits there now, with all that it waits for.
    """
    if not isinstance(event, Decided) or not isinstance(answered, AskHuman):
        return
    if not event.approved or not answered.unknown:
        return
    if call_place(answered.key) in after.turn.again:
        yield from _run(Wanted(answered.call.name, asked=True))


def _run(wanted: Wanted) -> Iterator[Happening]:
    if wanted.asked:
        yield approval_of(wanted.tool)
    yield ran(wanted.tool)


def _tool(run: Run[S], effect: Effect) -> str:
    """Return the tool that an effect runs; a child run is one only as the answer to a call."""
    if isinstance(effect, CallTool):
        return "" if effect.call.name in run.setup.own else effect.call.name
    if isinstance(effect, StartRun):
        return effect.agent if run.turn.has_call(effect.key) else ""
    return ""
