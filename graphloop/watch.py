"""Watch: the temporal rules of a run, kept by the kernel as it follows the table.

The monitor's states are a part of the run, so a journal, a fork and a replay know where each rule
stands. A run without rules costs nothing here.

When a gate is left, the calls that it lets through count in request order, each right after its
approval. So two calls of a turn cannot both be the last one that a rule allows. A call that no gate
has let through counts when a node asks for it. A call that a person has run again counts again. A
call returns with the event that answers it. No rule names the loop's own tools.

A conversation that was handed in with open calls or results is the same run to its caller: the
calls that it tells of have happened.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, TypeVar

from .effects import AskHuman, CallTool, Effect, StartRun
from .events import ChildEnded, Decided, EffectFailed, Event, ToolReturned
from .graph import NodeGraph
from .outcomes import Aborted, Outcome, outcome_name
from .rules import (
    Happening,
    Monitor,
    Rules,
    TemporalRule,
    Wanted,
    approved_call,
    describe_rule,
    earlier,
    entered,
    judged,
    past_call,
    ran,
    refusal,
    returned,
    taken,
)
from .run import RuleState, Run, evolve
from .turn import CallVerdict
from .values import ToolResult, UserMessage, call_key, call_place

__all__ = [
    "before_the_run",
    "let_through",
    "lets_through",
    "on_effects",
    "on_leaving",
    "on_returning",
    "restrained",
    "run_again",
    "watch_answer",
    "watch_begin",
    "watch_decision",
    "watch_leave",
    "watch_wait",
]

S = TypeVar("S")


def watch_begin(run: Run[S], rules: tuple[TemporalRule, ...]) -> Run[S]:
    """Return a run that has entered its first node, with its rules where they begin."""
    run = evolve(run, watch=RuleState(Monitor.of(Rules(rules))))
    counted = set(run.watch.counted)
    return _told(run, [*before_the_run(run), entered(run.node)], counted)


def watch_answer(run: Run[S], event: Event, answered: Effect | None) -> Run[S]:
    """Return the run as a node is about to hear an event: a tool may have returned."""
    return _told(run, on_returning(run, event, answered), set(run.watch.counted))


def watch_leave(
    graph: NodeGraph[S], run: Run[S], node: str, outcome: type[Outcome], target: str
) -> Run[S]:
    """Return the run as it leaves a node: a gate's calls that a rule forbids are denied first."""
    counted = set(run.watch.counted)
    lets = lets_through(graph, node, target)
    if lets:
        run = restrained(run, run.watch.monitor, counted)
    left = on_leaving(run, node=node, outcome=outcome, target=target, lets=lets, counted=counted)
    return _told(run, left, counted)


def lets_through(graph: NodeGraph[S], node: str, target: str) -> bool:
    """Whether calls are let through on the way from a node: of gates in a row, by the last."""
    after = graph.nodes.get(target)
    return graph.nodes[node].kind == "gate" and (after is None or after.kind != "gate")


def watch_decision(run: Run[S], event: Event, answered: Effect | None) -> Event:
    """Return a person's word about a call that may have run: a no, if a rule forbids it again."""
    if not isinstance(event, Decided) or not isinstance(answered, AskHuman) or not answered.unknown:
        return event
    rule = run.watch.monitor.forbids(answered.call.name, approved=True)
    return event if rule is None else evolve(event, approved=False)


def watch_wait(
    run: Run[S], event: Event, answered: Effect | None, effects: Iterable[Effect]
) -> Run[S]:
    """Return the run as it waits at a node: the event and these effects have counted."""
    counted = set(run.watch.counted)
    told = [*run_again(event, answered, run), *on_effects(run, effects, counted=counted)]
    return _told(run, told, counted)


def _told(run: Run[S], happened: Iterable[Happening], counted: set[str]) -> Run[S]:
    # A lazy sequence: `counted` is whole only once it has been walked.
    monitor = run.watch.monitor
    for happening in happened:
        monitor = monitor.after(happening)
    return evolve(run, watch=RuleState(monitor, frozenset(counted)))


NOT_RUN: Final = frozenset({"invalid", "unknown_tool", "denied", "not_run"})
"""The statuses of a call that has not run."""


def before_the_run(run: Run[S]) -> Iterator[Happening]:
    """Yield the happenings of a conversation that a run begins with and goes on.

    A question begins something new. Calls before the last question count against the limits of
    rules nevertheless: the caller may have said it while the run went on.
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
        call_place(key): CallVerdict("deny", refusal(rule), by=describe_rule(rule))
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
    """Yield the happenings of a node that is left, and of the next that is entered.

    If that `lets` calls through, their keys are added to `counted`.
    """
    if lets and not issubclass(outcome, Aborted):
        for key, wanted in let_through(run, counted).items():
            counted.add(key)
            yield from _run(wanted)
    yield taken(node, outcome_name(outcome))
    yield entered(target)


def on_effects(run: Run[S], effects: Iterable[Effect], *, counted: set[str]) -> Iterator[Happening]:
    """Yield the tools among these effects that no gate let through; they count from now on."""
    for effect in effects:
        tool = _tool(run, effect)
        if tool and isinstance(effect, CallTool | StartRun) and effect.key not in counted:
            counted.add(effect.key)
            yield ran(tool)


def on_returning(run: Run[S], event: Event, answered: Effect | None) -> Iterator[Happening]:
    """Yield that a tool has returned, if the event says so.

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
    """Yield the happenings of a call that a person has run again, and that may have run.

    Args:
        event: the event that a node heard, and that did not make it leave.
        answered: the effect that it answers.
        after: the run that waits there now.
    """
    if not isinstance(event, Decided) or not isinstance(answered, AskHuman):
        return
    if not event.approved or not answered.unknown:
        return
    if call_place(answered.key) in after.turn.again:
        yield from _run(Wanted(answered.call.name, asked=True))


def _run(wanted: Wanted) -> Iterator[Happening]:
    if wanted.asked:
        yield approved_call(wanted.tool)
    yield ran(wanted.tool)


def _tool(run: Run[S], effect: Effect) -> str:
    """Return the tool that an effect runs; a child run is one only as the answer to a call."""
    if isinstance(effect, CallTool):
        return "" if effect.call.name in run.setup.own else effect.call.name
    if isinstance(effect, StartRun):
        return effect.agent if run.turn.has_call(effect.key) else ""
    return ""
