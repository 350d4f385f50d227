"""The kernel: `step(graph, run, event)` is the only place where a run changes.

    event ─► answers? ─► node.on ──┬─ Wait ──────────────► Step(run, effects)
             (pending;             │
              adds usage           └─ Leave(outcome) ─► table[node][outcome] ─► node.enter ─┐
              and time)                    ▲                    │                           │
                                           └────────────────────┼───────── Wait / Leave ◄───┘
                                                                └─► END

A driver performs effects and reports each result as an event. The kernel performs nothing: no
clock, no randomness, no I/O, no globals. The same graph and the same events give the same run, on
any machine, at any time; resume, replay and simulation rely on that.

Each transition is a lookup in the table; only a stopped run that the table leads in a cycle ends
otherwise. The kernel accepts an answer only while its effect is pending, so none counts twice. Four
events answer no effect: `Queued`, `EffectsStarted`, `Resumed`, and `Cancelled` with `after_step`.
Any other `Cancelled` voids all pending effects, and the node reacts. A *step* is one event here; in
`max_steps` it is a turn. With temporal rules, `WatchedNodes` stand in for the nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Generic, TypeAlias, TypeVar, get_args

from msgspec import Struct

from .effects import (
    AskHuman,
    AwaitCaller,
    CallModel,
    CallTool,
    CheckCalls,
    Effect,
    Invoke,
    StartRun,
)
from .errors import GraphError, IllegalEvent, Problem
from .events import (
    Answering,
    CallbackReturned,
    CallsChecked,
    Cancelled,
    ChildEnded,
    Decided,
    EffectFailed,
    EffectsStarted,
    Event,
    ModelReplied,
    Queued,
    Resumed,
    Started,
    Steered,
    ToolAsked,
    ToolReturned,
)
from .graph import NodeGraph
from .node_protocol import Leave, Reacting, Wait
from .outcomes import Outcome, outcome_name
from .rule_watch import WatchedNodes, watch_begin
from .run import Ending, EndReason, History, Inbox, Record, Run, ended_by_stop, evolve
from .spending import NOTHING_SPENT, Spent
from .turn import Turn

__all__ = ["NOT_WORKING", "TRANSITIONS_MAX", "Step", "begin", "step"]

S = TypeVar("S")

TRANSITIONS_MAX = 1_000
"""The most transitions after one event; more mean a cycle, or a long stretch, without a wait."""

TRANSITIONS: Final = range(TRANSITIONS_MAX)

ANSWERS: Final[Mapping[type[Effect], type[Event]]] = {
    AskHuman: Decided,
    CallModel: ModelReplied,
    CallTool: ToolReturned,
    CheckCalls: CallsChecked,
    AwaitCaller: Steered,
    Invoke: CallbackReturned,
    StartRun: ChildEnded,
}
"""The event that answers each effect; `EffectFailed` may answer any, and `ToolAsked` a tool."""

MAY_RUN_A_CALL: Final = frozenset({CallTool, StartRun})
"""Effect types that may run a tool call of the turn; the effect's key tells whether one does."""

NOT_WORKING: Final = frozenset({AskHuman, AwaitCaller, StartRun})
"""Effects whose waiting time is not working time: a person answers, or a child run counts it."""

NONE_PENDING: Final[Mapping[int, Effect]] = {}
NONE_STARTED: Final = frozenset[int]()
"""No pending and no started effects, shared so that no event has to create its own."""

Reporting: TypeAlias = EffectsStarted | ToolReturned | ToolAsked | EffectFailed | ChildEnded

REPORTING: Final[frozenset[type[Event]]] = frozenset(get_args(Reporting))
"""Events with spending of their own; that of a `Cancelled` counts when a stop ends the run."""

ANSWERING: Final = frozenset({*ANSWERS.values(), EffectFailed, ToolAsked})
"""The event types of `Answering`; a look at the type is much faster than `isinstance`."""


class Step(Struct, Generic[S], frozen=True, gc=False):
    """The result of applying one event: the event, the run after the event, and the new effects."""

    event: Event
    run: Run[S]
    effects: tuple[Effect, ...]


def begin(graph: NodeGraph[S], started: Started, state: S) -> Step[S]:
    """Create a run, and follow the table from the start node until a node waits or the run ends.

    `state` is `started.state` with the graph's own state type; the journal types it as `object`.
    """
    run: Run[S] = Run(
        id=started.run_id,
        node=graph.start,
        state=state,
        setup=started.setup,
        at=started.at,
        messages=History(started.messages),
        inbox=Inbox(started.steering),
        record=Record(started.at, chat="" if started.chat is None else started.chat.id),
    )
    if started.setup.watch:
        states = () if started.chat is None else started.chat.states
        run = watch_begin(run, started.setup.watch, states)
    return _follow_table(graph, run, started, None, None)


def step(graph: NodeGraph[S], run: Run[S], event: Event) -> Step[S]:
    """Return the run after one event, and the new effects that its nodes request.

    An exception that a node raises passes through unchanged, with a note that names the node.

    Raises:
        IllegalEvent: the run has ended, or the event does not match a pending effect.
        GraphError: a node breaks the protocol, or the graph cycles without a node that waits.
    """
    kind = type(event)
    if kind not in ANSWERING:
        if run.node == "END":
            raise _run_is_over(run, event)
        if type(event) is not Cancelled or event.after_step:
            return Step(event, _apply_aside(run, event), ())
        run = ended_by_stop(run, event, _spend(run, event, None))
        return _follow_table(graph, run, event, event, None)
    answering: Answering = event  # type: ignore[assignment]  # As `ANSWERING` says.
    effect = answering.effect
    answered = run.pending.get(effect)
    if answered is None or not (
        kind is ANSWERS[type(answered)]
        or kind is EffectFailed
        or (kind is ToolAsked and type(answered) is CallTool)
    ):
        raise _unasked_event(run, event, effect)
    spent, pending, started = _spend(run, event, answered), NONE_PENDING, NONE_STARTED
    if len(run.pending) > 1:
        pending, started = {**run.pending}, run.started - {effect}
        del pending[effect]
    run = evolve(run, seq=run.seq + 1, at=event.at, pending=pending, started=started, spent=spent)
    return _follow_table(graph, run, event, event, answered)


def _unasked_event(run: Run[S], event: Event, effect: int) -> IllegalEvent:
    """Return the error for an event that answers no pending effect, or one of another type."""
    found, answered = type(event).__name__, run.pending.get(effect)
    if run.node == "END":
        return _run_is_over(run, event)
    if answered is None:
        return IllegalEvent(
            f"{found} answers effect {effect} of run {run.id!r}, "
            f"which waits for {sorted(run.pending) or 'nothing'} at {run.node!r}"
        )
    return IllegalEvent(
        f"{type(answered).__name__} {answered.id} of run {run.id!r} is pending: expected "
        f"{ANSWERS[type(answered)].__name__} or EffectFailed, found {found}"
    )


def _run_is_over(run: Run[S], event: Event) -> IllegalEvent:
    return IllegalEvent(f"run {run.id!r} is over; it cannot take {type(event).__name__}")


def _apply_aside(run: Run[S], event: Event) -> Run[S]:
    """Return the run after an event that answers no effect; the run stays at its node."""
    seq, at, inbox = run.seq + 1, event.at, run.inbox
    if type(event) is EffectsStarted:
        started = run.started.union(event.effects)
        if not run.pending.keys() >= started:
            strangers = [effect for effect in event.effects if effect not in run.pending]
            raise IllegalEvent(
                f"EffectsStarted names effects {strangers} of run {run.id!r}, "
                f"which waits for {sorted(run.pending) or 'nothing'}"
            )
        if event.unstarted:
            started = started.difference(event.unstarted)
        return evolve(run, seq=seq, at=at, spent=_spend(run, event, None), started=started)
    match event:
        case Queued(signal_id=signal_id) if signal_id in inbox.signals:
            pass  # A store may deliver a message twice.
        case Queued(message=message, follow_up=True):
            inbox = evolve(inbox, follow_ups=(*inbox.follow_ups, message))
        case Queued(message=message):
            inbox = evolve(inbox, steering=(*inbox.steering, message))
        case Cancelled(reason=reason):
            inbox = evolve(inbox, stopping=reason)
        case Resumed():
            return evolve(run, seq=seq, at=at)
        case _:
            raise IllegalEvent(f"run {run.id!r} has started already")
    if type(event) is Queued and event.signal_id:
        inbox = evolve(inbox, signals=inbox.signals | {event.signal_id})
    return evolve(run, seq=seq, at=at, spent=_spend(run, event, None), inbox=inbox)


def _spend(run: Run[S], event: Event, answered: Effect | None) -> Spent:
    """Return the run's spending plus the time since its last event and the usage in this event."""
    spent, at, elapsed_s = run.spent, event.at, 0.0
    if at > run.at:
        for effect in run.pending.values():
            # Waiting for others is not working time.
            if type(effect) not in NOT_WORKING and not (type(effect) is CallTool and effect.client):
                elapsed_s = at - run.at
                break
    if type(event) is ModelReplied:
        return spent.with_model_call(event.reply.usage, event.cost_usd, elapsed_s)
    seconds = spent.seconds + elapsed_s
    if type(answered) is CallTool:
        # A failed tool counts as well: it has run, or may have. A tool that asks will go on.
        has_run = type(event) is not ToolAsked and answered.call.name not in run.setup.own
        calls = spent.tool_calls + has_run
        spent = evolve(spent, tool_calls=calls, seconds=seconds)
    elif type(answered) is StartRun:
        calls = spent.agent_calls + run.turn.has_call(answered.key)
        spent = evolve(spent, agent_calls=calls, seconds=seconds)
    elif elapsed_s:
        spent = evolve(spent, seconds=seconds)
    if type(event) in REPORTING:
        reporting: Reporting = event  # type: ignore[assignment]  # As `REPORTING` says.
        more = reporting.spent
        return spent if more is NOTHING_SPENT else spent + more
    return spent


def _follow_table(
    graph: NodeGraph[S], run: Run[S], event: Event, told: Event | None, answered: Effect | None
) -> Step[S]:
    """Follow the table until a node waits or the run is over.

    Args:
        graph: the graph whose table is followed.
        run: the run, at the node that reacts first.
        event: the event that is applied.
        told: the event for the first node's `on`; None to call its `enter` instead. Only the first
            node hears the event; the kernel enters every later node.
        answered: the effect that the event answers.
    """
    nodes: Mapping[str, Reacting[S, Outcome]] = graph.nodes
    if run.watch.monitor.automata:
        nodes = WatchedNodes(graph)  # The same nodes; each also enforces the run's temporal rules.
    table, node, cancelled = graph.table, run.node, type(event) is Cancelled
    for _ in TRANSITIONS:
        try:
            if told is None:
                reaction = nodes[node].enter(run)
            else:
                reaction, told = nodes[node].on(run, told, answered), None
        except Exception as error:
            error.add_note(f"raised by node {node!r} of graph {graph.name!r}")
            if type(run) is not Run:
                error.add_note(f"the node before it left with {run!r} in place of a run")
            raise
        if type(reaction) is Leave:
            run = reaction.run
            target = table[node].get(type(reaction.outcome), "END")
            if target == "END":  # `_end` refuses an outcome that has no row.
                return _end(graph, event, node, run, reaction.outcome)
            node = target
            continue
        taken = _wait(graph, event, node, reaction)
        run = reaction.run
        if not taken.effects or not (cancelled or (run.ending is not None and run.was_stopped)):
            return taken
        # A stopped run starts no effects: drop these, and let the node react to the stop.
        run, told, answered = evolve(run, node=node), Cancelled(run.at), None
    if cancelled or run.was_stopped:
        # The table leads a stopped run in a cycle; no later event could end the run.
        return _end(graph, event, node, run, None)
    raise _protocol_error(
        graph,
        node,
        f"was passed within {TRANSITIONS_MAX} transitions without waiting for anything.",
        "break the cycle, or put a node that waits into it.",
    )


def _end(
    graph: NodeGraph[S], event: Event, node: str, run: Run[S], outcome: Outcome | None
) -> Step[S]:
    """End the run that leaves by an outcome, which has no row if its node has not declared it."""
    row = graph.table[node]
    if type(run) is not Run or (outcome is not None and type(outcome) not in row):
        raise _protocol_error(graph, node, *_unfit_leave(row, run, outcome))
    if run.pending:
        waiting = ", ".join(map(str, sorted(run.pending)))
        raise _protocol_error(
            graph,
            node,
            f"ended the run while it waits for effects {waiting}: it must not end before.",
            "stay, with Wait(run), until each of its effects is answered.",
        )
    ending = run.ending or Ending(EndReason.COMPLETED)
    return Step(event, evolve(run, node="END", ending=ending), ())


def _wait(graph: NodeGraph[S], event: Event, node: str, wait: Wait[S]) -> Step[S]:
    # Type checkers rule this out; for code that is not type-checked, an error names the node.
    if type(wait) is not Wait or type(wait.run) is not Run or type(wait.effects) is not tuple:
        raise _protocol_error(graph, node, *_unfit_wait(wait))
    run, effects = wait.run, wait.effects
    if not effects and run.pending:
        # The node has asked for nothing new: it waits on for its earlier effects.
        return Step(event, run if run.node == node else evolve(run, node=node), ())
    turn, number, pending = run.turn, run.next_effect, {**run.pending}
    keys: list[str] = []
    for effect in effects:
        kind = type(effect)
        if kind not in ANSWERS or effect.id != number:
            raise _protocol_error(graph, node, *_unfit_effect(effect, number))
        if kind in MAY_RUN_A_CALL:
            keys.append(effect.key)  # type: ignore[union-attr]  # As `kind` says.
        pending[number] = effect
        number += 1
    if not pending:
        raise _protocol_error(graph, node, "waits for nothing.", "ask for an effect, or leave.")
    if keys and turn.calls:
        turn = evolve(turn, started=_with_keys(graph, node, turn, keys))
    waiting = evolve(run, node=node, pending=pending, next_effect=number, turn=turn)
    return Step(event, waiting, effects)


def _with_keys(graph: NodeGraph[S], node: str, turn: Turn, keys: Sequence[str]) -> tuple[str, ...]:
    """Return the keys of the turn's started effects, with these keys of new effects added."""
    started = [*turn.started]
    for key in keys:
        has_started = key in started
        place = turn.place_of(key) if has_started or turn.results else None
        if place is not None:
            is_over = any(turn.results[place : place + 1])
            if is_over or (has_started and place not in turn.again):
                found = f"asked for call {key}, which has started or has its result."
                raise _protocol_error(graph, node, found, "ask for each call of a turn once.")
        started.append(key)
    return tuple(started)


def _unfit_leave(row: Mapping[type[Outcome], str], run: object, outcome: object) -> tuple[str, str]:
    """Return the fault of a `Leave` whose run or outcome is invalid, and the fix."""
    declared = ", ".join(sorted(map(outcome_name, row)))
    if not isinstance(run, Run):
        return f"left with {run!r} in place of a run.", "leave with the run: Leave(run, …)."
    if isinstance(outcome, Outcome):
        return (
            f"left by {outcome_name(type(outcome))!r}, which it does not declare.",
            f"declare it among its outcomes ({declared}) and give it a row.",
        )
    if isinstance(outcome, type):
        return (
            f"left by the class {outcome.__name__!r}, not by an instance of it.",
            f"write `Leave(run, {outcome.__name__}())`.",
        )
    return f"left by {outcome!r}, which is no outcome.", f"leave by one of its own: {declared}."


def _unfit_wait(wait: object) -> tuple[str, str]:
    """Return the fault of a reaction that is not a valid `Wait`, and the fix."""
    if not isinstance(wait, Wait):
        return f"returned {wait!r}, no reaction.", "return Wait(run, …) or Leave(run, …)."
    return (
        "waits with something that is not a run and a tuple of effects.",
        "write `Wait(run, (effect,))`.",
    )


def _unfit_effect(effect: object, number: int) -> tuple[str, str]:
    """Return the fault of a requested effect with a wrong type or id, and the fix."""
    if type(effect) not in ANSWERS:
        known = ", ".join(sorted(kind.__name__ for kind in ANSWERS))
        return f"asked for {effect!r}, which is no effect.", f"ask for one of {known}."
    return (
        f"gave an effect a wrong id: expected {number}, found {effect!r}.",
        "number a node's effects from `run.next_effect` upwards, without gaps.",
    )


def _protocol_error(graph: NodeGraph[S], node: str, found: str, fix: str) -> GraphError:
    return GraphError(graph.name, [Problem(f"node {node!r}", found, fix)])
