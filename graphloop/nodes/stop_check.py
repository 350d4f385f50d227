"""stop_check: the node that ends the standard loop at a limit, or lets it take another turn.

Every limit is evaluated each time, and all limits that are reached are reported. The first of them
in a fixed order names the end reason: a caller's stop, failing tools, denials, the step limit, the
budget, pauses, stop conditions. A stop condition does not end the run before a queued steering
message is read; hard limits such as `max_steps` do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from ..contract import Cap, Contract
from ..effects import Effect, Invoke
from ..events import CallbackReturned, EffectFailed, Event, StopRequested
from ..limits import CountedLimit, StopCondition, StopInfo, counted_in
from ..node_protocol import Leave, Reaction, Wait, outcomes_of, wrong_answer
from ..outcomes import Aborted, Failed, Go, Stop
from ..run import Ending, EndReason, Run, ended_by
from ..spending import whole_number
from .frozen_fields import FrozenFields

__all__ = ["StopCheck", "StopCheckOutcome"]

S = TypeVar("S")

StopCheckOutcome: TypeAlias = Go | Stop | Failed | Aborted

MAX_STEPS = 20
MAX_TOOL_ERRORS = 3
MAX_DENIALS = 5
MAX_PAUSES = 10

GO = Go()


@dataclass(frozen=True)
class StopCheck(FrozenFields):
    """End the run at a limit or by a stop condition; otherwise let the loop take another turn.

    Args:
        max_steps: the most turns of the run, at least 1; a run with a limit of its own
            (`Setup.max_steps`) has that limit instead.
        max_consecutive_tool_errors: the run ends when one tool only failed in this many turns
            since its last success.
        max_consecutive_denials: the run ends when all calls were denied in this many turns since
            the last success of a call.
        max_pauses: the most turns in a row that the server may pause.
        conditions: pure stop conditions (`graphloop.limits.stop`).
        callback: the name under which the caller's own predicates are invoked; empty for none.

    Raises:
        ConfigError: a limit is not a whole number, or is too small; 0 never means "no limit".
    """

    name: str = "stop_check"
    max_steps: int = MAX_STEPS
    max_consecutive_tool_errors: int = MAX_TOOL_ERRORS
    max_consecutive_denials: int = MAX_DENIALS
    max_pauses: int = MAX_PAUSES
    conditions: tuple[StopCondition, ...] = ()
    callback: str = ""
    kind: Literal["stop"] = "stop"
    outcomes = outcomes_of(StopCheckOutcome)

    @property
    def contract(self) -> Contract:
        """Promises for the proofs: after `max_steps` opened turns, it leaves no more by `Go`."""
        return Contract(
            caps={Go: Cap(self.max_steps - 1, counts=frozenset({"turn"}), instead=Stop)},
            moves={Stop: frozenset({"end", "perhaps"})},
            functions=(self.callback,) if self.callback else (),
        )

    @property
    def counted_limits(self) -> tuple[CountedLimit, ...]:
        """The limits on costs and tokens among the conditions."""
        return counted_in(self.conditions)

    def __post_init__(self) -> None:
        """Check that each limit is a whole number and large enough."""
        super().__post_init__()
        whole_number("max_steps", self.max_steps)
        whole_number("max_consecutive_tool_errors", self.max_consecutive_tool_errors)
        whole_number("max_consecutive_denials", self.max_consecutive_denials)
        whole_number("max_pauses", self.max_pauses, least=0)

    def enter(self, run: Run[S], /) -> Reaction[S, StopCheckOutcome]:
        """Invoke the caller's predicates if there are any; else leave by `Go` or `Stop`."""
        if run.ending is not None and run.was_stopped:
            return Leave(run, Stop())
        if self.callback:
            return Wait(run, (Invoke(run.next_effect, self.callback),))
        return self._decide(run, ())

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, StopCheckOutcome]:
        """Leave by `Go` or `Stop`, given the names of the predicates that request a stop."""
        match event:
            case CallbackReturned(answer=StopRequested(names=names)):
                return self._decide(run, names)
            case CallbackReturned(answer=answer):
                failure = wrong_answer(self.callback, StopRequested, answer)
            case EffectFailed():
                failure = event.failure
            case _:
                return Leave(run, Aborted())
        return Leave(ended_by(run, Ending(EndReason.ERROR, failure=failure)), Failed())

    def _decide(self, run: Run[S], asked: tuple[str, ...]) -> Reaction[S, StopCheckOutcome]:
        """Leave by `Stop` with all that the run has reached, limits first, in the fixed order."""
        tripped: list[tuple[EndReason, str]] = []
        counters, setup, turn = run.counters, run.setup, run.turn
        if run.inbox.stopping is not None:
            tripped.append((EndReason.ABORTED, run.inbox.stopping or "aborted"))
        if counters.tool_errors:
            failing = [
                at
                for at, n in counters.tool_errors.items()
                if n >= self.max_consecutive_tool_errors
            ]
            tripped += [(EndReason.TOOL_ERRORS, f"tool_errors:{tool}") for tool in failing]
        if counters.denials >= self.max_consecutive_denials:
            tripped.append((EndReason.DENIALS, "denials"))
        most = setup.max_steps or self.max_steps
        # A turn without a reply is not in the record, but counts. A table whose cycle opens no turn
        # never raises the number, but its record grows.
        if turn.number + 1 >= most or len(run.record.steps) >= most:
            tripped.append((EndReason.MAX_STEPS, "max_steps"))
        # A spent call budget ends the run only if a call was refused for it.
        if limits := setup.budget.tripped(run.spent) + turn.beyond_budget:
            tripped += [(EndReason.BUDGET, limit) for limit in limits]
        if counters.pauses > self.max_pauses:
            tripped.append((EndReason.MAX_PAUSES, "max_pauses"))
        names = asked
        if self.conditions and (tripped or not run.inbox.steering):
            info = StopInfo.of(run)
            names = (*[one.name for one in self.conditions if one.holds(info)], *asked)
        if not tripped and (not names or run.inbox.steering):
            return Leave(run, GO)
        reason = tripped[0][0] if tripped else EndReason.STOP_CONDITION
        ending = Ending(reason, (*[name for _, name in tripped], *names))
        return Leave(ended_by(run, ending), Stop())
