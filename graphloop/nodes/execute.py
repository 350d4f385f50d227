"""execute: run the calls that the gate let through, a few at a time.

Results fill one slot a call, so their order is the request's, whatever order tools end in. The
caps are kept here, by asking for no more than `concurrency` at once, for one holder of a lock, and
for no more than the budget has left: drivers need no semaphore, and no child run can spend what its
parent has not got.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar, assert_never

from ..effects import AskHuman, CallTool, Effect, StartRun
from ..events import ChildEnded, Decided, EffectFailed, Event, Steered, ToolReturned
from ..limits import whole_number
from ..node import Kind, Leave, Reaction, Wait, outcomes_of
from ..outcomes import Aborted, Done, Held
from ..run import Run, Turn, Verdict, evolve
from ..spending import Budget
from ..steering import hand_over, steered
from ..values import (
    ResultStatus,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserPart,
    call_key,
    call_place,
)

__all__ = ["Execute", "ExecuteOutcome"]

S = TypeVar("S")

ExecuteOutcome: TypeAlias = Done | Held | Aborted

NO_GATE: Final = "Not run: no gate has let this call through."
NO_TOOL: Final = ToolSpec("", "", "")


@dataclass(frozen=True)
class Execute:
    """Run every call whose verdict is `run`; the others are answered by their verdict.

    Client tools come first and hold the batch: nothing else runs until their results are here
    (CONTRACT §9 #21), so a run that parks has done nothing it could regret. A call of an agent is
    a child run, which gets its share of what the budget has left.

    Args:
        concurrency: how many tools may run at once.
        hold: whether client tools hold the batch.

    Raises:
        ConfigError: `concurrency` is not a whole number of at least 1.
    """

    name: str = "execute"
    concurrency: int = 5
    hold: bool = True
    kind: Kind = "execute"
    outcomes = outcomes_of(ExecuteOutcome)

    def __post_init__(self) -> None:
        """Refuse a cap that would let nothing run."""
        whole_number("max_tool_concurrency", self.concurrency)

    def enter(self, run: Run[S], /) -> Reaction[S, ExecuteOutcome]:
        """Answer what does not run, and ask for the first calls."""
        turn = run.turn
        results = turn.results or (None,) * len(turn.calls)
        verdicts = turn.verdicts or (None,) * len(turn.calls)
        # What has a result already is never run again, however the table leads here.
        settled = tuple(
            [
                result if result is not None else _refusal(turn, index, verdicts[index])
                for index, result in enumerate(results)
            ]
        )
        unissued = tuple([place for place in _open(settled) if not _is_held(verdicts[place])])
        return self._issue(run, settled, unissued)

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, ExecuteOutcome]:
        """Keep a result, and ask for the next call."""
        match event, answered:
            case ToolReturned(status="unknown"), CallTool() if _was_approved(run, answered):
                ttl_s = run.setup.approval_ttl_s
                expires_at = None if ttl_s is None else run.at + ttl_s
                again = AskHuman(
                    run.next_effect, answered.key, answered.call, expires_at, unknown=True
                )
                return Wait(run, (again,))
            case ToolReturned(), CallTool():
                result = _result(answered.key, answered.call, event.content, event.status)
            case ChildEnded(), StartRun():
                call = run.turn.calls[call_place(answered.key)]
                result = _result(answered.key, call, event.content, event.status)
            case Decided(), AskHuman() if _is_allowed(event, answered) and _has_room(run):
                return self._again(run, call_place(answered.key))
            case ((Decided() | EffectFailed()), AskHuman()):
                content = "It is not known whether this call took effect; it is not run again."
                result = _result(answered.key, answered.call, content, "unknown")
            case EffectFailed(), CallTool() | StartRun():
                call = run.turn.calls[call_place(answered.key)]
                content = f"{event.failure.error}: {event.failure.message}"
                result = _result(answered.key, call, content, "error")
            case Steered(), _:
                return Leave(steered(run, event), Done())
            case _:
                return Leave(run, Aborted())
        turn = run.turn
        index = call_place(result.key)
        results = (*turn.results[:index], result, *turn.results[index + 1 :])
        return self._issue(run, results, turn.unissued)

    def _again(self, run: Run[S], place: int) -> Reaction[S, ExecuteOutcome]:
        """Ask once more for a call that may have happened, when there is room for it."""
        return self._issue(run, run.turn.results, tuple(sorted((*run.turn.unissued, place))))

    def _issue(
        self, run: Run[S], results: tuple[ToolResult | None, ...], unissued: tuple[int, ...]
    ) -> Reaction[S, ExecuteOutcome]:
        """Keep the results, and ask for as many more calls as there is room for."""
        specs = {tool.name: tool for tool in run.turn.tools} if unissued else {}
        if unissued and (refused := self._refused(run, unissued, specs)):
            results = tuple([refused.get(at, result) for at, result in enumerate(results)])
            unissued = tuple([place for place in unissued if place not in refused])
        ready = self._ready(run, unissued, specs)
        left = tuple([index for index in unissued if index not in ready])
        run = evolve(run, turn=evolve(run.turn, results=results, unissued=left))
        if ready:
            return Wait(run, tuple(_wishes(run, ready, left, specs)))
        if run.pending:
            return Wait(run)
        if None in results:
            return Leave(run, Held())
        return hand_over(run, tools_ran=True) if run.setup.attended else Leave(run, Done())

    def _ready(
        self, run: Run[S], unissued: tuple[int, ...], specs: Mapping[str, ToolSpec]
    ) -> tuple[int, ...]:
        """Return the calls to ask for now: all client tools first, then no more than fit."""
        if not unissued:
            return ()
        of_calls = [specs.get(call.name, NO_TOOL) for call in run.turn.calls]
        clients = tuple([one for one in unissued if of_calls[one].kind == "client"])
        if clients and self.hold:
            return clients
        pending = run.pending.values()
        waiting = sum(isinstance(one, CallTool) and one.client for one in pending)
        if waiting and self.hold:
            return ()
        room = self.concurrency - len(pending) + waiting
        taken = {_lock(run.turn, one, specs) for one in pending} - {""}
        ready = list(clients)
        for place in unissued:
            lock = of_calls[place].lock
            if place not in clients and room > 0 and lock not in taken:
                ready.append(place)
                room -= 1
                if lock:
                    taken.add(lock)
        return tuple(ready)

    def _refused(
        self, run: Run[S], unissued: tuple[int, ...], specs: Mapping[str, ToolSpec]
    ) -> Mapping[int, ToolResult]:
        """Return results for the calls that no bound of the run has room for."""
        setup, turn = run.setup, run.turn
        agents = [one for one in unissued if specs[turn.calls[one].name].kind == "agent"]
        refused: dict[int, ToolResult] = {}
        if agents and setup.depth >= setup.depth_max:
            problem = f"Not run: agents may call agents {setup.depth_max} deep, and no deeper."
            refused |= {one: _answer(turn, one, problem, "error") for one in agents}
        elif agents and (spent := setup.budget.tripped(run.spent)):
            problem = f"Not run: {', '.join(spent)} of the run is spent."
            refused |= {one: _answer(turn, one, problem, "not_run") for one in agents}
        most = setup.budget.tool_calls
        if most is not None:
            running = sum(isinstance(one, CallTool) for one in run.pending.values())
            tools = [one for one in unissued if one not in agents]
            problem = f"Not run: the run's budget of {most} tool calls is spent."
            beyond = tools[max(0, most - run.spent.tool_calls - running) :]
            refused |= {one: _answer(turn, one, problem, "not_run") for one in beyond}
        return refused


def _open(results: tuple[ToolResult | None, ...]) -> Iterator[int]:
    return (index for index, result in enumerate(results) if result is None)


def _is_held(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.kind == "held"


def _was_approved(run: Run[S], effect: CallTool) -> bool:
    verdict = run.turn.verdicts[call_place(effect.key)]
    return verdict is not None and verdict.asked


def _is_allowed(decided: Decided, asked: AskHuman) -> bool:
    """Whether a call that may have run may run again: as it was, in time, and nobody else's."""
    given_at = decided.at if decided.given_at is None else decided.given_at
    in_time = asked.expires_at is None or given_at < asked.expires_at
    # No gate stands between here and the tool that could look at other arguments.
    return decided.approved and in_time and not decided.arguments


def _lock(turn: Turn, effect: Effect, specs: Mapping[str, ToolSpec]) -> str:
    if not isinstance(effect, CallTool | StartRun):
        return ""
    return specs.get(turn.calls[call_place(effect.key)].name, NO_TOOL).lock


def _wishes(
    run: Run[S], ready: tuple[int, ...], left: tuple[int, ...], specs: Mapping[str, ToolSpec]
) -> Iterator[CallTool | StartRun]:
    turn = run.turn
    kinds = {place: specs[turn.calls[place].name].kind for place in (*ready, *left)}
    agents = sum(kind == "agent" for kind in kinds.values())
    share = _free(run, len(kinds) - agents).share(agents) if agents else Budget()
    for effect_id, place in enumerate(ready, run.next_effect):
        call, verdict, key = turn.calls[place], turn.verdicts[place], call_key(turn.number, place)
        if verdict is not None and verdict.arguments:
            call = ToolCall(call.id, call.name, verdict.arguments, call.extra)
        if kinds[place] == "agent":
            yield StartRun(effect_id, key, call.name, call.arguments, run.messages, share)
        else:
            yield CallTool(effect_id, key, call, client=kinds[place] == "client")


def _has_room(run: Run[S]) -> bool:
    """Whether the budget has a tool call left that nobody waits for."""
    agents = {tool.name for tool in run.turn.tools if tool.kind == "agent"}
    waiting = sum(run.turn.calls[place].name not in agents for place in run.turn.unissued)
    return _free(run, waiting).tool_calls != 0


def _free(run: Run[S], tool_calls: int) -> Budget:
    """Return what the budget has left beside what is reserved for children and for these calls."""
    left = run.setup.budget.left(run.spent)
    for effect in run.pending.values():
        if isinstance(effect, StartRun):
            left = left.without(effect.budget)
        elif isinstance(effect, CallTool):
            tool_calls += 1
    return left.without(Budget(tool_calls=tool_calls))


def _refusal(turn: Turn, index: int, verdict: Verdict | None) -> ToolResult | None:
    if verdict is None:
        # No gate has spoken: fail closed. A checked graph cannot come here (GL2).
        return _answer(turn, index, NO_GATE, "denied")
    match verdict.kind:
        case "run" | "held":
            return None
        case "deny":
            return _answer(turn, index, verdict.reason, "denied")
        case "invalid":
            return _answer(turn, index, verdict.reason, "invalid")
        case "unknown":
            return _answer(turn, index, verdict.reason, "unknown_tool")
        case "answered":
            # It says that there is a result, and there is none: fail closed.
            return _answer(turn, index, NO_GATE, "denied")
        case _:
            assert_never(verdict.kind)


def _answer(turn: Turn, index: int, content: str, status: ResultStatus) -> ToolResult:
    return _result(call_key(turn.number, index), turn.calls[index], content, status)


def _result(
    key: str, call: ToolCall, content: str | tuple[UserPart, ...], status: ResultStatus
) -> ToolResult:
    return ToolResult(key, call.id, call.name, content, status)
