"""execute: a node that runs the calls that the gate allowed, a few at a time.

Each call has one result slot, so results stand in request order, whatever order the tools end in.
The node requests no more calls than `max_tool_concurrency`, the tools' locks and the remaining
budget allow.
So drivers need no semaphore, and no child run can spend more than its parent has remaining. An
agent that takes over the conversation starts last, when all other calls of the turn have results.
At most one such agent starts in a turn.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Final, Literal, TypeAlias, TypeVar, assert_never

from ..contract import BROKEN, Cap, Contract
from ..conversation import hand_over, steered
from ..effects import AskHuman, CallTool, Effect, StartRun
from ..events import ChildEnded, Decided, EffectFailed, Event, Steered, ToolReturned
from ..limits import (
    answer,
    budget_remaining,
    has_capacity,
    note_limits,
    places_of,
    queued,
    refusals,
    starts,
    tools_waiting,
)
from ..node_protocol import Leave, Reaction, Wait, outcomes_of
from ..outcomes import Aborted, ApprovalNeeded, Done
from ..rules import describe_rule
from ..run import Run, evolve
from ..spending import whole_number
from ..turn import RUN, CallVerdict, Queue, Turn
from ..values import (
    Message,
    ResultStatus,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserPart,
    call_key,
    call_place,
)
from .dialogue import about_question
from .frozen_fields import FrozenFields

__all__ = ["Execute", "ExecuteOutcome"]

S = TypeVar("S")

ExecuteOutcome: TypeAlias = Done | ApprovalNeeded | Aborted

NOT_AGAIN: Final = "It is not known whether this call took effect; it is not run again."
DONE: Final = Done()
NO_GATE: Final = "Not run: no gate has let this call through."


@dataclass(frozen=True)
class Execute(FrozenFields):
    """Run every call whose verdict is `run`; each other call gets a result that states its verdict.

    Client tools start first. With `hold`, no other call starts until their results are here, so a
    run that parks for them has caused no other effect. A call of an agent is a child run, which
    gets a share of the remaining budget. Of the agents that take over the conversation, the first
    in request order waits for all other results; further ones never run.

    Args:
        max_tool_concurrency: the most tools that run at once.
        hold: whether other calls wait for the results of client tools.

    Raises:
        ConfigError: `max_tool_concurrency` is not a whole number of at least 1.
    """

    name: str = "execute"
    max_tool_concurrency: int = 5
    hold: bool = True
    kind: Literal["execute"] = "execute"
    outcomes = outcomes_of(ExecuteOutcome)

    @property
    def contract(self) -> Contract:
        """Promises for the proofs: it runs tools, may ask, and leaves once a turn for approvals."""
        once = Cap(1, resets=frozenset({"turn", "close", "reply"}))
        return Contract(caps={ApprovalNeeded: once}, moves={Aborted: BROKEN}, tools=True, asks=True)

    def __post_init__(self) -> None:
        """Check that `max_tool_concurrency` is a whole number of at least 1."""
        super().__post_init__()
        whole_number("max_tool_concurrency", self.max_tool_concurrency)

    def enter(self, run: Run[S], /) -> Reaction[S, ExecuteOutcome]:
        """Give each call that must not run its refusal, and request the first other calls."""
        if effects := self._all_at_once(run):
            return Wait(run, effects)
        turn = run.turn
        # A call with a result never runs again, even if the table leads here twice.
        results = list(turn.results or (None,) * len(turn.calls))
        waiting: list[int] = []
        for place, verdict in enumerate(turn.verdicts or (None,) * len(results)):
            if results[place] is not None:
                continue
            if verdict is not None and verdict.kind == "run":
                waiting.append(place)
            else:
                results[place] = _refusal_result(turn, place, verdict)
        if waiting:
            return self._go_on(run, tuple(results), queued(turn, waiting))
        return self._issue(run, tuple(results), ())

    def _all_at_once(self, run: Run[S]) -> tuple[CallTool, ...]:
        """Return the effects of all calls if all may start now; empty if any call must wait."""
        turn = run.turn
        calls, unbound, number, first = turn.calls, turn.tools.unbound, turn.number, run.next_effect
        if turn.results or turn.waiting or run.pending:
            return ()
        if not turn.verdicts.count(RUN) == len(calls) <= self.max_tool_concurrency:
            return ()
        if run.setup.budget.tool_calls is not None:
            return ()
        effects: list[CallTool] = []
        for place, call in enumerate(calls):
            if call.name not in unbound:
                return ()
            effects.append(CallTool(first + place, call_key(number, place), call))
        return tuple(effects)

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, ExecuteOutcome]:
        """Store the result of a call, and request the next calls."""
        turn = run.turn
        if type(event) is ToolReturned and event.status != "unknown":
            assert type(answered) is CallTool, "the kernel has looked"
            call = answered.call
            told, status = event.content, event.status
            result = ToolResult(answered.key, call.id, call.name, told, status, event.data)
        else:
            reaction = about_question(run, event, answered) or self._on_unusual(
                run, event, answered
            )
            if not isinstance(reaction, ToolResult):
                return reaction
            result = reaction
        results = list(turn.results or (None,) * len(turn.calls))
        results[call_place(result.key)] = result
        return self._issue(run, tuple(results), turn.waiting)

    def _on_unusual(
        self, run: Run[S], event: Event, answered: Effect | None
    ) -> ToolResult | Reaction[S, ExecuteOutcome]:
        """Return the result that an event other than a tool's return gives, or a reaction to it."""
        match event, answered:
            case ToolReturned(status="unknown"), CallTool() if _may_ask(run, answered):
                if rule := run.watch.monitor.forbids(answered.call.name, approved=True):
                    content = f"{NOT_AGAIN} Rule: {describe_rule(rule)}."
                    result = _make_result(answered.key, answered.call, content, "unknown")
                else:
                    return _ask_again(run, answered)
            case ToolReturned(), CallTool():
                result = _make_result(answered.key, answered.call, event.content, event.status)
            case ChildEnded(), StartRun():
                call = run.turn.calls[call_place(answered.key)]
                result = _make_result(answered.key, call, event.content, event.status)
            case Decided(), AskHuman() if _is_allowed(event, answered) and has_capacity(run):
                return self._run_again(run, call_place(answered.key))
            case ((Decided() | EffectFailed()), AskHuman()):
                result = _make_result(answered.key, answered.call, NOT_AGAIN, "unknown")
            case EffectFailed(), CallTool() | StartRun():
                call = run.turn.calls[call_place(answered.key)]
                content = f"{event.failure.error}: {event.failure.message}"
                result = _make_result(answered.key, call, content, "error")
            case Steered(), _:
                return Leave(steered(run, event), Done())
            case _:
                return Leave(run, Aborted())
        return result

    def _run_again(self, run: Run[S], place: int) -> Reaction[S, ExecuteOutcome]:
        """Run a call again that may have run already; a person has allowed this second run."""
        turn = run.turn
        verdicts = list(turn.verdicts)
        verdict = verdicts[place]
        assert verdict is not None, "a call without a verdict was never let through"
        verdicts[place] = evolve(verdict, asked=False)
        run = evolve(run, turn=evolve(turn, verdicts=tuple(verdicts), again=turn.again | {place}))
        waiting = sorted([*places_of(turn.waiting), place])
        results = turn.results or (None,) * len(turn.calls)
        return self._issue(run, results, queued(turn, waiting))

    def _issue(
        self, run: Run[S], results: tuple[ToolResult | None, ...], queues: tuple[Queue, ...]
    ) -> Reaction[S, ExecuteOutcome]:
        """Store the results; then request further calls, wait for pending ones, or leave."""
        if queues:
            return self._go_on(run, results, queues)
        run = evolve(run, turn=evolve(run.turn, results=results, waiting=()))
        if run.pending:
            return Wait(run)
        if None in results:
            return Leave(run, ApprovalNeeded())
        return hand_over(run, tools_ran=True) if run.setup.attended else Leave(run, DONE)

    def _go_on(
        self, run: Run[S], results: tuple[ToolResult | None, ...], queues: tuple[Queue, ...]
    ) -> Reaction[S, ExecuteOutcome]:
        if refused := refusals(run, queues):
            slots = list(results)
            for place, one in refused.items():
                slots[place] = one.result
            left = [place for place in places_of(queues) if place not in refused]
            run = evolve(run, turn=note_limits(run.turn, refused.values()))
            return self._issue(run, tuple(slots), queued(run.turn, left))
        ready = self._next_calls(run, queues)
        if not ready and not run.pending:
            handoffs = places_of(queues)
            if results.count(None) == len(handoffs):
                return _hand_off(run, results, handoffs)
        turn = evolve(run.turn, results=results, waiting=_drop_started(queues, ready))
        run = evolve(run, turn=turn)
        if ready or run.pending:
            return Wait(run, _effects_of(run, ready, queues))
        return Leave(run, ApprovalNeeded())

    def _next_calls(self, run: Run[S], queues: tuple[Queue, ...]) -> Mapping[int, ToolSpec]:
        """Return the calls to start now: all client tools, then others up to the limit.

        An agent that takes over the conversation is never among them, because it starts last.
        """
        clients: list[tuple[int, ToolSpec]] = []
        others: list[Queue] = []
        for queue in queues:
            if queue.tool.kind == "client":
                clients += zip(queue.places, repeat(queue.tool))
            elif queue.tool.kind != "agent" or not queue.tool.takes_over:
                others.append(queue)
        if clients and self.hold:
            return dict(sorted(clients))
        holders: list[Effect] = []
        for one in run.pending.values():
            if not (isinstance(one, CallTool) and one.client):
                holders.append(one)
            elif self.hold:
                return {}
        taken = _held_locks(run.turn, holders, others) if holders else set[str]()
        fitting = _startable_calls(others, self.max_tool_concurrency - len(holders), taken)
        return {**dict(sorted(clients)), **fitting} if clients else fitting


def _startable_calls(queues: Sequence[Queue], room: int, taken: set[str]) -> dict[int, ToolSpec]:
    """Return up to `room` calls, the first in request order whose locks are free."""
    offered: list[tuple[int, ToolSpec]] = []
    for queue in queues:
        # Only the first call of a queue with a lock can start, so the others are not considered.
        offered += zip(queue.places[: 1 if queue.tool.lock else max(0, room)], repeat(queue.tool))
    fitting: dict[int, ToolSpec] = {}
    for place, tool in sorted(offered):
        if len(fitting) < room and not (tool.lock and tool.lock in taken):
            fitting[place] = tool
            taken.add(tool.lock)
    return fitting


def _drop_started(queues: tuple[Queue, ...], ready: Mapping[int, ToolSpec]) -> tuple[Queue, ...]:
    """Return the queues without the calls that start now; these are first in their queues."""
    left: list[Queue] = []
    if len(queues) == 1 and len(ready) == len(queues[0].places):
        return ()
    for queue in queues:
        size = len(ready.keys() & queue.places[: len(ready)])
        if size < len(queue.places):
            left.append(Queue(queue.tool, queue.places[size:]) if size else queue)
    return tuple(left)


def _may_ask(run: Run[S], effect: CallTool) -> bool:
    """Whether a person approved this call that may have run, and the budget allows another one."""
    verdict = run.turn.verdicts[call_place(effect.key)]
    return verdict is not None and verdict.asked and has_capacity(run)


def _ask_again(run: Run[S], effect: CallTool) -> Wait[S]:
    """Wait for a person to decide whether a call that may have run already runs again."""
    ttl_s = run.setup.approval_ttl_s
    expires_at = None if ttl_s is None else run.at + ttl_s
    again = AskHuman(run.next_effect, effect.key, effect.call, expires_at, unknown=True)
    return Wait(run, (again,))


def _is_allowed(decided: Decided, asked: AskHuman) -> bool:
    """Whether a person approved a second run of the call, in time and with unchanged arguments."""
    given_at = decided.at if decided.given_at is None else decided.given_at
    in_time = asked.expires_at is None or given_at < asked.expires_at
    # No gate would check edited arguments here. An approver's edit is refused earlier
    # (`refuse_edit`); this check is for an answer that did not pass there.
    return decided.approved and in_time and not decided.arguments


def _held_locks(turn: Turn, holders: Sequence[Effect], queues: Sequence[Queue]) -> set[str]:
    """Return the locks that these effects hold; empty if no waiting call needs a lock."""
    if not any(queue.tool.lock for queue in queues):
        return set()
    calls = [one for one in holders if isinstance(one, CallTool | StartRun)]
    return {queue.tool.lock for queue in queued(turn, [call_place(one.key) for one in calls])}


def _effects_of(
    run: Run[S], ready: Mapping[int, ToolSpec], queues: tuple[Queue, ...]
) -> tuple[CallTool | StartRun, ...]:
    """Return the effects that start these calls; agents share the budget that tools leave."""
    turn, left = run.turn, run.setup.budget
    agents = [queue.places for queue in queues if queue.tool.kind == "agent"]
    if agents:
        left = budget_remaining(run, tools_waiting(run, queues), starts(queues))
    effects: list[CallTool | StartRun] = []
    for effect_id, (place, tool) in enumerate(ready.items(), run.next_effect):
        call, key = turn.call_at(place), call_key(turn.number, place)
        if tool.kind != "agent":
            effects.append(CallTool(effect_id, key, call, tool.kind == "client"))
            continue
        share = left.share(
            sum(map(len, agents)), sum([bisect_left(places, place) for places in agents])
        )
        effects.append(StartRun(effect_id, key, call.name, call.arguments, run.messages, share))
    return tuple(effects)


def _hand_off(
    run: Run[S], results: tuple[ToolResult | None, ...], handoffs: Sequence[int]
) -> Wait[S]:
    """Start the first agent that takes over, with the whole remaining budget; refuse the others."""
    turn, place = run.turn, handoffs[0]
    call, key = turn.call_at(place), call_key(turn.number, place)
    messages = _conversation_with(run, results)
    problem = f"Not run: {call.name!r} takes the conversation over, and only one agent can."
    slots = list(results)
    for other in handoffs[1:]:
        slots[other] = answer(turn, other, problem, "error")
    run = evolve(run, turn=evolve(turn, results=tuple(slots), waiting=()))
    budget = budget_remaining(run, 0, 1)
    start = StartRun(run.next_effect, key, call.name, call.arguments, messages, budget)
    return Wait(run, (start,))


def _conversation_with(run: Run[S], results: tuple[ToolResult | None, ...]) -> Sequence[Message]:
    """Return the messages for an agent that takes over: the history and this turn's results.

    Calls of agents that would take over are left out, because each call in a history needs a
    result.
    """
    reply, given = run.turn.reply, [one for one in results if one is not None]
    if reply is None or not given:
        return run.messages
    slots, parts = iter(results), reply.message.parts
    kept = [one for one in parts if not isinstance(one, ToolCall) or next(slots) is not None]
    return run.messages.append(evolve(reply.message, parts=tuple(kept)), *given)


def _refusal_result(turn: Turn, index: int, verdict: CallVerdict | None) -> ToolResult | None:
    if verdict is None:
        # No gate gave a verdict, so the call is denied. A checked graph cannot come here (GL2).
        return answer(turn, index, NO_GATE, "denied")
    match verdict.kind:
        case "run" | "held":
            return None
        case "deny":
            return answer(turn, index, verdict.reason, "denied")
        case "invalid":
            return answer(turn, index, verdict.reason, "invalid")
        case "unknown":
            return answer(turn, index, verdict.reason, "unknown_tool")
        case "answered":
            # The verdict says that a result exists, but none does, so the call is denied.
            return answer(turn, index, NO_GATE, "denied")
        case _:
            assert_never(verdict.kind)


def _make_result(
    key: str, call: ToolCall, content: str | tuple[UserPart, ...], status: ResultStatus
) -> ToolResult:
    return ToolResult(key, call.id, call.name, content, status)
