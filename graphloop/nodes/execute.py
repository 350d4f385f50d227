"""execute: run the calls that the gate let through, a few at a time.

Results fill one slot a call, so their order is the request's, whatever order tools end in. The
cap is kept here, by asking for no more than `concurrency` at once: drivers need no semaphore.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, TypeVar, assert_never

from ..effects import CallTool, Effect
from ..events import EffectFailed, Event, ToolReturned
from ..limits import whole_number
from ..node import Kind, Leave, Reaction, Wait, outcomes_of
from ..outcomes import Aborted, Done
from ..run import Run, Turn, Verdict, evolve
from ..values import ResultStatus, ToolCall, ToolResult, UserPart, call_key, call_place

__all__ = ["Execute", "ExecuteOutcome"]

S = TypeVar("S")

ExecuteOutcome: TypeAlias = Done | Aborted


@dataclass(frozen=True)
class Execute:
    """Run every call whose verdict is `run`; the others are answered by their verdict.

    Client tools come first and hold the batch: nothing else runs until their results are here
    (CONTRACT §9 #21), so a run that parks has done nothing it could regret.

    Args:
        concurrency: how many tools may run at once.

    Raises:
        ConfigError: `concurrency` is not a whole number of at least 1.
    """

    name: str = "execute"
    concurrency: int = 5
    kind: Kind = "execute"
    outcomes = outcomes_of(ExecuteOutcome)

    def __post_init__(self) -> None:
        """Refuse a cap that would let nothing run."""
        whole_number("max_tool_concurrency", self.concurrency)

    def enter(self, run: Run[S], /) -> Reaction[S, ExecuteOutcome]:
        """Answer what does not run, and ask for the first calls."""
        turn = run.turn
        verdicts = turn.verdicts or (None,) * len(turn.calls)
        # What has a result already is never run again, however the table leads here.
        results = turn.results or tuple(
            [_refusal(turn, index, verdict) for index, verdict in enumerate(verdicts)]
        )
        unissued = tuple([index for index, result in enumerate(results) if result is None])
        return self._issue(run, results, unissued)

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, ExecuteOutcome]:
        """Keep a result, and ask for the next call."""
        if not isinstance(answered, CallTool):
            return Leave(run, Aborted())
        if isinstance(event, ToolReturned):
            result = _result(answered.key, answered.call, event.content, event.status)
        else:
            assert isinstance(event, EffectFailed), f"unexpected {type(event).__name__}"
            content = f"{event.failure.error}: {event.failure.message}"
            result = _result(answered.key, answered.call, content, "error")
        turn = run.turn
        index = call_place(answered.key)
        results = (*turn.results[:index], result, *turn.results[index + 1 :])
        return self._issue(run, results, turn.unissued)

    def _issue(
        self, run: Run[S], results: tuple[ToolResult | None, ...], unissued: tuple[int, ...]
    ) -> Reaction[S, ExecuteOutcome]:
        """Keep the results, and ask for as many more calls as there is room for."""
        clients = _clients(run.turn)
        ready = self._ready(run, unissued, clients)
        turn = evolve(
            run.turn,
            results=results,
            unissued=tuple([index for index in unissued if index not in ready]),
        )
        run = evolve(run, turn=turn)
        if not ready:
            return Wait(run) if run.pending else Leave(run, Done())
        effects = [
            _call(run.next_effect + place, turn, index, clients)
            for place, index in enumerate(ready)
        ]
        return Wait(run, tuple(effects))

    def _ready(self, run: Run[S], unissued: tuple[int, ...], clients: set[str]) -> tuple[int, ...]:
        """Return the calls to ask for now: all client tools first, then no more than fit."""
        if not unissued:
            return ()
        if clients:
            held = tuple([index for index in unissued if run.turn.calls[index].name in clients])
            if held:
                return held
            if any(isinstance(one, CallTool) and one.client for one in run.pending.values()):
                return ()
        return unissued[: max(0, self.concurrency - len(run.pending))]


def _clients(turn: Turn) -> set[str]:
    return {tool.name for tool in turn.tools if tool.client}


def _call(effect_id: int, turn: Turn, index: int, clients: set[str]) -> CallTool:
    call, verdict = turn.calls[index], turn.verdicts[index]
    if verdict is not None and verdict.arguments:
        call = ToolCall(call.id, call.name, verdict.arguments, call.extra)
    return CallTool(effect_id, call_key(turn.number, index), call, call.name in clients)


def _refusal(turn: Turn, index: int, verdict: Verdict | None) -> ToolResult | None:
    key, call = call_key(turn.number, index), turn.calls[index]
    if verdict is None:
        # No gate has spoken: fail closed. A checked graph cannot come here (GL2).
        return _result(key, call, "Not run: no gate has let this call through.", "denied")
    match verdict.kind:
        case "run":
            return None
        case "deny":
            return _result(key, call, verdict.reason, "denied")
        case "invalid":
            return _result(key, call, verdict.reason, "invalid")
        case "unknown":
            return _result(key, call, verdict.reason, "unknown_tool")
        case _:
            assert_never(verdict.kind)


def _result(
    key: str, call: ToolCall, content: str | tuple[UserPart, ...], status: ResultStatus
) -> ToolResult:
    return ToolResult(key, call.id, call.name, content, status)
