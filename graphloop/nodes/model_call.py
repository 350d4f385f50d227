"""model_call: a node that asks a model once, and leaves by the outcome that fits the reply.

The reply's finish reason decides first: calls of a refused, cut or paused reply never run. The
presence of calls decides next, because some servers report `stop` for a reply with calls. If a
model cannot be asked, the node asks its next fallback, for this turn only. The caller of an
iterated run can change the reply before the outcome is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar

from ..contract import BROKEN, Contract, Moves
from ..conversation import hand_over, steered
from ..effects import CallModel, Effect
from ..errors import GraphError, IllegalEvent, Problem
from ..events import EffectFailed, Event, Failure, ModelReplied, Steered
from ..node_protocol import Leave, Reaction, Wait, outcomes_of
from ..outcomes import (
    Aborted,
    Answered,
    Calls,
    ContextFull,
    Empty,
    Failed,
    Paused,
    Refused,
    Truncated,
)
from ..run import Ending, EndReason, Run, ended_by, evolve
from ..spending import NO_USAGE, Spent
from ..turn import Turn
from ..values import FinishReason, ModelRequest, Reply, ToolCall
from .frozen_fields import FrozenFields

__all__ = ["CALLS_MAX", "ModelCall", "ModelCallOutcome"]

S = TypeVar("S")

CALLS_MAX: Final = 10_000
"""The most calls of one reply; a reply with more is refused, and none of its calls runs."""

ModelCallOutcome: TypeAlias = (
    Calls | Answered | Paused | Truncated | Empty | ContextFull | Refused | Failed | Aborted
)


@dataclass(frozen=True)
class ModelCall(FrozenFields):
    """Send the whole history and the tools of this turn to a model, and store its reply.

    Args:
        model: the label of the model to ask; empty for the run's own model.
        fallbacks: the labels of the models to ask next, in order, if a model cannot be asked.
    """

    name: str = "model_call"
    model: str = ""
    fallbacks: tuple[str, ...] = ()
    kind: Literal["model"] = "model"
    outcomes = outcomes_of(ModelCallOutcome)

    @property
    def contract(self) -> Contract:
        """Promises for the proofs: a visit asks the model and each fallback at most once."""
        replied: frozenset[Moves] = frozenset({"reply"})
        moves = {**dict.fromkeys(self.outcomes, replied), Failed: BROKEN, Aborted: BROKEN}
        return Contract(moves=moves, model_calls=1 + len(self.fallbacks))

    def enter(self, run: Run[S], /) -> Reaction[S, ModelCallOutcome]:
        """Request a reply of the model, or of the current fallback.

        Raises:
            GraphError: no turn is open.
        """
        turn, setup = run.turn, run.setup
        if turn.number < 0 or turn.recorded:
            raise GraphError("", [_no_turn(self.name)])
        settings = setup.settings
        if turn.max_tokens is not None:
            settings = evolve(settings, max_tokens=turn.max_tokens)
        request = ModelRequest(run.messages, turn.tools, turn.tool_choice, settings, setup.output)
        label = turn.model or self.model or setup.model
        if turn.fallbacks and turn.fallbacks <= len(self.fallbacks):
            label = self.fallbacks[turn.fallbacks - 1]
        return Wait(run, (CallModel(run.next_effect, label, request),))

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, ModelCallOutcome]:
        """Store the reply and leave by its outcome; after a failure, ask the next fallback."""
        if type(event) is not ModelReplied:
            return self._on_unusual(run, event)
        turn, reply, checks = run.turn, event.reply, event.checks
        calls = reply.message.calls
        if checks and len(checks) != len(calls):
            raise IllegalEvent(f"{len(calls)} call(s) have {len(checks)} check(s)")
        if len(calls) > CALLS_MAX:
            found = f"`calls`: expected at most {CALLS_MAX:,} in a reply, found "
            fix = f"{len(calls):,}. Fix: ask for fewer at once; none of them has run."
            failure = Failure("BadReply", found + fix)
            spent = Spent(usage=reply.usage)
            return self._fail(run, EffectFailed(event.at, event.effect, failure, spent))
        turn = evolve(
            turn,
            reply=reply,
            asked=True,
            calls=calls,
            checked=calls if checks else (),
            checks=checks,
            # Verdicts and results of an earlier reply's calls do not apply to these calls.
            verdicts=(),
            results=(),
            waiting=(),
            gated=(),
            given=NO_PLACES,
            usage=reply.usage if turn.usage is NO_USAGE else turn.usage + reply.usage,
        )
        run, outcome = evolve(run, turn=turn), _sort(reply, calls)
        if run.setup.attended and isinstance(outcome, OFFERED):
            return hand_over(run)
        return Leave(run, outcome)

    def _on_unusual(self, run: Run[S], event: Event) -> Reaction[S, ModelCallOutcome]:
        """React to an event other than a reply."""
        if type(event) is EffectFailed:
            return self._fail(run, event)
        if type(event) is not Steered:
            return Leave(run, Aborted())
        run = steered(run, event)
        return Leave(run, _sort_again(run.turn))

    def _fail(self, run: Run[S], event: EffectFailed) -> Reaction[S, ModelCallOutcome]:
        failure, turn = event.failure, run.turn
        run = evolve(run, turn=evolve(turn, asked=True, usage=turn.usage + event.spent.usage))
        if turn.cut is not None and failure.error in TOO_LARGE:
            calls = turn.cut.message.calls
            return Leave(
                evolve(run, turn=evolve(run.turn, reply=turn.cut, calls=calls)), Truncated()
            )
        if failure.error == "ContextOverflow":
            return Leave(run, ContextFull())
        if failure.retryable and turn.fallbacks < len(self.fallbacks):
            return self.enter(evolve(run, turn=evolve(run.turn, fallbacks=turn.fallbacks + 1)))
        return Leave(ended_by(run, Ending(EndReason.ERROR, failure=failure)), Failed())


def _no_turn(name: str) -> Problem:
    return Problem(
        f"node {name!r}",
        "asks a model though no turn is open: its calls could not be told from those of another.",
        "lead the way to it through a PrepareStep, which opens the next turn.",
    )


NO_PLACES: Final = frozenset[int]()

OFFERED: Final = (Calls, Answered, Paused, Refused)
"""Outcomes whose reply the caller of an iterated run may change before the node is left."""

DECIDED: Mapping[FinishReason, ModelCallOutcome] = {
    FinishReason.REFUSAL: Refused(),
    FinishReason.CONTENT_FILTER: Refused(),
    FinishReason.CONTEXT_WINDOW: ContextFull(),
}
"""Finish reasons that decide the outcome alone, whatever the reply contains."""

TOO_LARGE: Final = frozenset({"RequestRejected", "ContextOverflow"})
"""Errors by which a server refuses a token limit that is too large for its model."""

CALLS: Final = Calls()

TOOL_CALLS: Final = FinishReason.TOOL_CALLS

CUT: Final = frozenset({FinishReason.LENGTH, FinishReason.OTHER})
"""Finish reasons of a reply that may end inside a call, even if its arguments look complete."""


def _sort_again(turn: Turn) -> ModelCallOutcome:
    """Return the outcome of a reply that the caller may have changed or dropped."""
    if turn.dropped or turn.reply is None:
        return Answered()
    return _sort(turn.reply, turn.reply.message.calls)


def _sort(reply: Reply, calls: tuple[ToolCall, ...]) -> ModelCallOutcome:
    finish = reply.finish_reason
    if finish is TOOL_CALLS and calls:
        return CALLS
    if finish in DECIDED:
        return DECIDED[finish]
    if calls:
        return Truncated() if finish in CUT else CALLS
    if finish is FinishReason.PAUSE:
        return Paused()
    return Empty() if reply.message.is_blank else Answered()
