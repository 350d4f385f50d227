"""Faults planted in the kernel itself: in what its nodes decide, and in what `step` makes of it.

Each stands in for a line that somebody could get wrong. They change the public methods of the
kernel's nodes, and `step` where drivers call it, so that the kernel's inside may change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, TypeAlias, TypeVar

import pytest

from graphloop import replay
from graphloop.effects import AskHuman, CallModel, CallTool, CheckCalls, Effect, StartRun
from graphloop.events import Cancelled, Decided, Event
from graphloop.graph import NodeGraph
from graphloop.node_protocol import Leave, Reaction, Wait
from graphloop.nodes import (
    Append,
    Compact,
    Execute,
    Gate,
    ModelCall,
    PrepareStep,
    StopCheck,
)
from graphloop.outcomes import Compacted, Outcome, Settled, Stop
from graphloop.run import History, Run, evolve
from graphloop.spending import Budget, Spent
from graphloop.step import Step, step
from graphloop.testing import sim, trace
from graphloop.turn import CallVerdict
from graphloop.values import (
    AssistantMessage,
    Message,
    ModelRequest,
    TextPart,
    ToolResult,
    UserMessage,
    call_key,
    call_place,
)
from tests.runs import changed

__all__ = ["FAULTS", "Fault", "issuing_after_a_stop"]

T = TypeVar("T")
Fault: TypeAlias = Callable[[pytest.MonkeyPatch], None]
Decision: TypeAlias = Reaction[Any, Outcome]
Decide: TypeAlias = Callable[..., Decision]
Heard: TypeAlias = tuple[Event, Effect | None]
Kind: TypeAlias = type[Any]
"""A class of nodes; their methods have too many types to be told here."""


def same(value: T) -> T:
    """Return a value as it is."""
    return value


def as_heard(event: Event, answered: Effect | None) -> Heard:
    """Return an event, and the effect that it answers, as they are."""
    return event, answered


def as_decided(_: Run[Any], decision: Decision) -> Decision:
    """Return a decision as it is."""
    return decision


def faulty(
    kind: Kind,
    *,
    entered: Callable[[Run[Any]], Run[Any]] = same,
    heard: Callable[[Event, Effect | None], Heard] = as_heard,
    decided: Callable[[Run[Any], Decision], Decision] = as_decided,
    node: Callable[[Any], object] = same,
) -> Fault:
    """Return the fault of a kind of nodes.

    Args:
        kind: the class of the nodes.
        entered: changes the run that a node is entered by.
        heard: changes the event that a node reacts to.
        decided: changes a decision; it gets the run before, too.
        node: changes the options of a node.
    """

    def plant(patch: pytest.MonkeyPatch) -> None:
        own_enter: Decide = kind.enter
        own_on: Decide = kind.on

        def enter(self: object, run: Run[Any]) -> Decision:
            return decided(run, own_enter(node(self), entered(run)))

        def on(self: object, run: Run[Any], event: Event, answered: Effect | None) -> Decision:
            return decided(run, own_on(node(self), run, *heard(event, answered)))

        patch.setattr(kind, "enter", enter)
        patch.setattr(kind, "on", on)

    return plant


def deciding(kind: Kind, change: Callable[[Run[Any], Decision], Decision]) -> Fault:
    """Return the fault of a node that decides something else."""
    return faulty(kind, decided=change)


def entering(kind: Kind, change: Callable[[Run[Any]], Run[Any]]) -> Fault:
    """Return the fault of a node that is entered by another run than there is."""
    return faulty(kind, entered=change)


def stepping(change: Callable[[Run[Any], Step[Any]], Step[Any]]) -> Fault:
    """Return the fault of a kernel that makes something else of an event."""

    def wrong(graph: NodeGraph[Any], run: Run[Any], event: Event) -> Step[Any]:
        return change(run, step(graph, run, event))

    def plant(patch: pytest.MonkeyPatch) -> None:
        for module in (sim, trace, replay):
            patch.setattr(module, "step", wrong)

    return plant


# What runs.


def with_verdicts(run: Run[Any], old: str, new: Literal["run", "unknown"] = "run") -> Run[Any]:
    verdicts = [
        evolve(one, kind=new) if one is not None and one.kind == old else one
        for one in run.turn.verdicts
    ]
    return evolve(run, turn=evolve(run.turn, verdicts=tuple(verdicts)))


def running(verdict: str) -> Fault:
    """Return the fault of an Execute that runs what has this verdict."""
    return entering(Execute, lambda run: with_verdicts(run, verdict))


def unasked(run: Run[Any], decision: Decision) -> Decision:
    """Let what is held pass without asking."""
    asks = isinstance(decision, Wait) and any(isinstance(one, AskHuman) for one in decision.effects)
    return Leave(with_verdicts(decision.run, "held"), Settled()) if asks else decision


def once_approved(run: Run[Any], decision: Decision) -> Decision:
    """Take an approval of an earlier turn for one of this."""
    if not isinstance(decision, Wait) or not decision.effects:
        return decision
    held = [one.call.name for one in decision.effects if isinstance(one, AskHuman)]
    approved = {
        result.name
        for one in run.record.steps
        for result in one.tool_results
        if result.status == "ok"
    }
    return unasked(run, decision) if held and approved.issuperset(held) else decision


def approving(event: Event, answered: Effect | None) -> Heard:
    """Take a no for a yes."""
    return evolve(event, approved=True) if isinstance(event, Decided) else event, answered


def patient(event: Event, answered: Effect | None) -> Heard:
    """Wait for an approval for ever."""
    asked = evolve(answered, expires_at=None) if isinstance(answered, AskHuman) else answered
    return event, asked


def unchecked(run: Run[Any], decision: Decision) -> Decision:
    """Let a call run as a person has edited it, without looking at it again."""
    if not isinstance(decision, Wait):
        return decision
    edited = [one for one in decision.effects if isinstance(one, CheckCalls) and one.key]
    if not edited or run.pending:
        return decision
    verdicts = list(decision.run.turn.verdicts)
    verdicts[call_place(edited[0].key)] = CallVerdict("run", arguments=edited[0].calls[0].arguments)
    turn = evolve(decision.run.turn, verdicts=tuple(verdicts))
    return Leave(evolve(decision.run, turn=turn), Settled())


def run_again(run: Run[Any], decision: Decision) -> Decision:
    """Run a call once more that has failed."""
    if not isinstance(decision, Wait) or decision.effects:
        return decision
    failed = [one for one in run.turn.results if one is not None and one.status == "error"]
    if not failed:
        return decision
    call = run.turn.calls[call_place(failed[0].key)]
    return Wait(decision.run, (CallTool(run.next_effect, failed[0].key, call),))


def unbudgeted(run: Run[Any], decision: Decision) -> Decision:
    """Give a child run no budget."""
    if not isinstance(decision, Wait):
        return decision
    effects = [
        evolve(one, budget=Budget()) if isinstance(one, StartRun) else one
        for one in decision.effects
    ]
    return Wait(decision.run, tuple(effects))


# What is told.


def appending(change: Callable[[tuple[Message, ...]], Sequence[Message]]) -> Fault:
    """Return the fault of an Append that adds something else, to both records."""

    def appended(run: Run[Any], decision: Decision) -> Decision:
        messages = run.messages.append(*change(decision.run.messages[len(run.messages) :]))
        added = run.record.added.append(*change(decision.run.record.added[len(run.record.added) :]))
        return replaced(decision, changed(decision.run, messages=messages, added=added))

    return deciding(Append, appended)


def replaced(decision: Decision, run: Run[Any]) -> Decision:
    """Return the decision with another run."""
    if isinstance(decision, Leave):
        return Leave(run, decision.outcome)
    return Wait(run, decision.effects)


def swapped(new: tuple[Message, ...]) -> Sequence[Message]:
    """Turn the last two results round."""
    results = [one for one in new if isinstance(one, ToolResult)]
    if len(results) < 2:
        return new
    at = new.index(results[-2])
    return (*new[:at], new[at + 1], new[at], *new[at + 2 :])


def without_last(new: tuple[Message, ...]) -> Sequence[Message]:
    return new[:-1] if new and isinstance(new[-1], ToolResult) else new


def twice(new: tuple[Message, ...]) -> Sequence[Message]:
    return (*new, *new[-1:]) if new and isinstance(new[-1], ToolResult) else new


def invented(new: tuple[Message, ...]) -> Sequence[Message]:
    said = AssistantMessage((TextPart("All went well."),))
    return (*new, said) if new and isinstance(new[-1], ToolResult) else new


def in_the_middle(run: Run[Any], decision: Decision) -> Decision:
    """Put what is new before the last message."""
    new = decision.run.messages[len(run.messages) :]
    messages = History((*run.messages[:-1], *new, *run.messages[-1:]))
    return replaced(decision, evolve(decision.run, messages=messages))


def unheard(run: Run[Any], decision: Decision) -> Decision:
    """Lose what somebody has said."""
    if not run.inbox.steering:
        return decision
    lost = changed(decision.run, messages=run.messages, added=run.record.added)
    return replaced(decision, lost)


def heard_twice(run: Run[Any], decision: Decision) -> Decision:
    """Keep what was read for the next turn, too."""
    return replaced(decision, changed(decision.run, steering=run.inbox.steering))


def resulting(change: Callable[[ToolResult], ToolResult | None]) -> Fault:
    """Return the fault of an Execute that makes something else of results."""

    def kept(run: Run[Any], decision: Decision) -> Decision:
        turn = decision.run.turn
        results = tuple([None if one is None else change(one) for one in turn.results])
        return replaced(decision, evolve(decision.run, turn=evolve(turn, results=results)))

    return deciding(Execute, kept)


def fine(one: ToolResult) -> ToolResult:
    """Say of what was not run that it went well."""
    return evolve(one, status="ok", content="fine") if one.status == "not_run" else one


def losing(run: Run[Any]) -> Run[Any]:
    """Lose what has come when the run is stopped."""
    empty = (None,) * len(run.turn.calls)
    return evolve(run, turn=evolve(run.turn, results=empty)) if run.was_stopped else run


def denying_it(run: Run[Any]) -> Run[Any]:
    """Say that nothing was under way when the run was stopped."""
    turn = run.turn
    if not run.was_stopped or not turn.results:
        return run
    results = [
        one
        if one is not None and one.status != "unknown"
        else ToolResult(call_key(turn.number, at), call.id, call.name, "No.", "not_run")
        for at, (call, one) in enumerate(zip(turn.calls, turn.results, strict=True))
    ]
    return evolve(run, turn=evolve(turn, results=tuple(results)))


def shortened(run: Run[Any], decision: Decision) -> Decision:
    """Make the conversation shorter in the midst of a turn."""
    if len(run.messages) < 4 or not isinstance(decision, Leave):
        return decision
    messages = History((*run.messages[:1], *run.messages[3:]))
    return Leave(evolve(decision.run, messages=messages), decision.outcome)


def rewriting(run: Run[Any], decision: Decision) -> Decision:
    """Tell another conversation while it is made shorter."""
    if not isinstance(decision, Leave) or not isinstance(decision.outcome, Compacted):
        return decision
    messages = [
        evolve(one, content="Do as you like.") if isinstance(one, UserMessage) else one
        for one in decision.run.messages
    ]
    return Leave(evolve(decision.run, messages=History(messages)), decision.outcome)


# What is asked.


def requesting(change: Callable[[Run[Any], ModelRequest], ModelRequest]) -> Fault:
    """Return the fault of a ModelCall that sends something else."""

    def sent(run: Run[Any], decision: Decision) -> Decision:
        if not isinstance(decision, Wait):
            return decision
        effects = [
            evolve(one, request=change(run, one.request)) if isinstance(one, CallModel) else one
            for one in decision.effects
        ]
        return Wait(decision.run, tuple(effects))

    return deciding(ModelCall, sent)


def windowed(run: Run[Any], request: ModelRequest) -> ModelRequest:
    """Send the end of a conversation."""
    return evolve(request, messages=request.messages[-3:])


def shuffled(run: Run[Any], request: ModelRequest) -> ModelRequest:
    """Send the tools in another order every other turn."""
    return evolve(request, tools=request.tools[::-1]) if run.turn.number % 2 else request


# How it goes on.


def standing_still(run: Run[Any], decision: Decision) -> Decision:
    """Give the next turn the number of the last."""
    number = max(0, run.turn.number)
    turn = evolve(decision.run.turn, number=number)
    return replaced(decision, evolve(decision.run, turn=turn))


def unexplained(run: Run[Any], decision: Decision) -> Decision:
    """Stop without saying why."""
    if not isinstance(decision, Leave) or not isinstance(decision.outcome, Stop):
        return decision
    return Leave(evolve(decision.run, ending=None), decision.outcome)


def waiting_on(before: Run[Any], taken: Step[Any]) -> Step[Any]:
    """Go on waiting for what was answered."""
    answered = getattr(taken.event, "effect", 0)
    if answered not in before.pending or taken.run.ended:
        return taken
    pending = {**taken.run.pending, answered: before.pending[answered]}
    return evolve(taken, run=evolve(taken.run, pending=pending))


def forgetting(before: Run[Any], taken: Step[Any]) -> Step[Any]:
    """Wait for what was asked for last alone."""
    if not taken.effects:
        return taken
    return evolve(taken, run=evolve(taken.run, pending={one.id: one for one in taken.effects}))


def issuing_after_a_stop(before: Run[Any], taken: Step[Any]) -> Step[Any]:
    """Ask once more for the calls that were under way, once the run was stopped."""
    stopped = isinstance(taken.event, Cancelled) and not taken.event.after_step
    calls = [one for one in before.pending.values() if isinstance(one, CallTool | StartRun)]
    if not stopped or not calls:
        return taken
    new = tuple([evolve(one, id=at) for at, one in enumerate(calls, before.next_effect)])
    run = evolve(
        before,
        seq=taken.run.seq,
        at=taken.run.at,
        pending={one.id: one for one in new},
        next_effect=before.next_effect + len(new),
        ending=taken.run.ending,
    )
    return Step(taken.event, run, new)


FAULTS: Final[Mapping[str, tuple[Fault, frozenset[str]]]] = {
    name: (fault, frozenset(codes.split()))
    for name, (fault, codes) in {
        "a denied call runs": (running("deny"), "gate"),
        "an invalid call runs": (running("invalid"), "gate"),
        "a call of no tool runs": (running("unknown"), "gate"),
        "a held call runs unasked": (deciding(Gate, unasked), "gate"),
        "an approval is used again": (deciding(Gate, once_approved), "gate"),
        "a no is taken for a yes": (faulty(Gate, heard=approving), "gate"),
        "an approval that comes too late counts": (faulty(Gate, heard=patient), "gate"),
        "an edited call is not checked": (deciding(Gate, unchecked), "gate"),
        "a failed call runs again": (deciding(Execute, run_again), "broken"),
        "a client's batch is not held": (
            faulty(Execute, node=lambda node: replace(node, hold=False)),
            "room",
        ),
        "too many calls run at once": (
            faulty(Execute, node=lambda node: replace(node, max_tool_concurrency=99)),
            "room",
        ),
        "a child gets no budget": (deciding(Execute, unbudgeted), "room"),
        "what tools have used is not counted": (
            entering(Execute, lambda run: evolve(run, spent=Spent())),
            "bound room",
        ),
        "a result is dropped": (appending(without_last), "history"),
        "two results are swapped": (appending(swapped), "history"),
        "a call is answered twice": (appending(twice), "history"),
        "an answer is invented": (appending(invented), "answers"),
        "a turn stands in mid-history": (deciding(Append, in_the_middle), "past"),
        "what is said is lost": (deciding(PrepareStep, unheard), "history"),
        "what is said is read twice": (deciding(PrepareStep, heard_twice), "history"),
        "what was not run went well": (resulting(fine), "answers"),
        "a stop loses results": (entering(Append, losing), "answers"),
        "a stop denies what was under way": (entering(Append, denying_it), "answers"),
        "a turn is compacted in its midst": (deciding(Execute, shortened), "past"),
        "a Compact rewrites": (deciding(Compact, rewriting), "past"),
        "a request is the end of the conversation": (requesting(windowed), "prefix"),
        "tools change their order": (requesting(shuffled), "prefix"),
        "max_steps is ignored": (
            faulty(StopCheck, node=lambda node: replace(node, max_steps=99)),
            "bound",
        ),
        "a turn's number stays": (deciding(PrepareStep, standing_still), "once"),
        "the retries of a turn are forgotten": (
            entering(ModelCall, lambda run: evolve(run, turn=evolve(run.turn, retries=0))),
            "bound",
        ),
        "a stop says no reason": (deciding(StopCheck, unexplained), "ending"),
        "what is answered is waited for": (stepping(waiting_on), "broken"),
        "what is under way is forgotten": (stepping(forgetting), "broken"),
        "a run that was stopped goes on": (stepping(issuing_after_a_stop), "stopped"),
    }.items()
}
"""By what is wrong: the fault, and the invariants that it may be found by."""
