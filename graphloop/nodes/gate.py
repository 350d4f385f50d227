"""gate: the only way to a tool. Every call leaves with a verdict; only `run` is ever executed.

The order is fixed: known and offered, then valid, then approved (CONTRACT §9 #15), so nobody is
asked about a call that could not run. Everything fails closed: a call no check has cleared and
no decision has approved does not run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from ..effects import AskHuman, CheckCalls, Effect
from ..errors import IllegalEvent
from ..events import CallCheck, CallsChecked, Decided, EffectFailed, Event
from ..node import Kind, Leave, Reaction, Wait, outcomes_of
from ..outcomes import Aborted, Settled
from ..run import Run, Turn, Verdict, evolve
from ..values import ToolCall, call_key

__all__ = ["Gate", "GateOutcome"]

S = TypeVar("S")

GateOutcome: TypeAlias = Settled | Aborted

RUN = Verdict("run")


@dataclass(frozen=True)
class Gate:
    """Check every call of the batch, and ask a human about those that need it."""

    name: str = "gate"
    kind: Kind = "gate"
    outcomes = outcomes_of(GateOutcome)

    def enter(self, run: Run[S], /) -> Reaction[S, GateOutcome]:
        """Refuse what is not on offer, and have the rest checked."""
        turn = run.turn
        offered = _callable(turn)
        known = tuple([call for call in turn.calls if call.name in offered])
        if len(known) < len(turn.calls):
            verdicts = [
                None if call.name in offered else _unknown(call, offered) for call in turn.calls
            ]
            run = evolve(run, turn=evolve(turn, verdicts=tuple(verdicts)))
        if not known:
            return Leave(run, Settled())
        return Wait(run, (CheckCalls(run.next_effect, turn.number, known),))

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, GateOutcome]:
        """Turn checks into verdicts or questions, and decisions into verdicts."""
        match event, answered:
            case CallsChecked(), CheckCalls():
                found, expected = len(event.checks), len(answered.calls)
                if found != expected:
                    raise IllegalEvent(f"{expected} call(s) were to be checked; found {found}")
                return self._checked(run, event.checks)
            case Decided(), AskHuman():
                return _settled(_decide(run, answered.key, _verdict(event)))
            case EffectFailed(), AskHuman():
                denied = Verdict("deny", f"{DENIED} The approver failed: {event.failure.message}")
                return _settled(_decide(run, answered.key, denied))
            case EffectFailed(), _:
                problem = f"Not run: checking the call failed ({event.failure.message})."
                return self._checked(run, (CallCheck(problem),) * len(run.turn.calls))
            case _:
                return Leave(run, Aborted())

    def _checked(self, run: Run[S], checks: tuple[CallCheck, ...]) -> Reaction[S, GateOutcome]:
        turn = run.turn
        remaining = iter(checks)
        verdicts: list[Verdict | None] = []
        asks: list[AskHuman] = []
        decided = turn.verdicts or (None,) * len(turn.calls)
        for index, (call, verdict) in enumerate(zip(turn.calls, decided, strict=True)):
            if verdict is not None:
                verdicts.append(verdict)
                continue
            check = next(remaining)
            if check.problem:
                verdicts.append(Verdict("invalid", check.problem))
            elif check.needs_approval:
                verdicts.append(None)
                effect_id = run.next_effect + len(asks)
                asks.append(AskHuman(effect_id, call_key(turn.number, index), call))
            else:
                verdicts.append(RUN)
        run = evolve(run, turn=evolve(turn, verdicts=tuple(verdicts)))
        return Wait(run, tuple(asks)) if asks else Leave(run, Settled())


DENIED = "Tool call denied."


def _callable(turn: Turn) -> tuple[str, ...]:
    """Return the tools that this turn may call; not every server honours a tool choice."""
    offered = tuple([tool.name for tool in turn.tools])
    match turn.tool_choice.mode:
        case "none":
            return ()
        case "tool":
            return tuple([name for name in offered if name == turn.tool_choice.name])
        case _:
            return offered


def _unknown(call: ToolCall, offered: tuple[str, ...]) -> Verdict:
    names = ", ".join(offered) or "none"
    return Verdict("unknown", f'No such tool: "{call.name}". Available tools: {names}.')


def _verdict(decided: Decided) -> Verdict:
    if decided.approved:
        return Verdict("run", decided.reason, decided.arguments)
    return Verdict("deny", f"{DENIED} Reason: {decided.reason}" if decided.reason else DENIED)


def _decide(run: Run[S], key: str, verdict: Verdict) -> Run[S]:
    turn = run.turn
    verdicts = tuple(
        verdict if call_key(turn.number, index) == key else one
        for index, one in enumerate(turn.verdicts)
    )
    return evolve(run, turn=evolve(turn, verdicts=verdicts))


def _settled(run: Run[S]) -> Reaction[S, GateOutcome]:
    return Wait(run) if run.pending else Leave(run, Settled())
