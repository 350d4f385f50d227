"""model_call: ask the model once, and sort its reply by what must happen next.

The reply's finish reason decides first (a refused, cut or paused turn never runs its tools), then
the presence of calls: some servers report `stop` while a call is pending (CONTRACT §1.5, §9 #5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from ..effects import CallModel, Effect
from ..events import EffectFailed, Event, ModelReplied
from ..node import Kind, Leave, Reaction, Wait, outcomes_of
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
from ..run import Ending, EndReason, Run, evolve
from ..values import FinishReason, ModelRequest, Reply

__all__ = ["ModelCall", "ModelCallOutcome"]

S = TypeVar("S")

ModelCallOutcome: TypeAlias = (
    Calls | Answered | Paused | Truncated | Empty | ContextFull | Refused | Failed | Aborted
)


@dataclass(frozen=True)
class ModelCall:
    """Ask a model with the whole history and the tools of this turn.

    Args:
        model: the label of the model to ask; empty for the run's own.
    """

    name: str = "model_call"
    model: str = ""
    kind: Kind = "model"
    outcomes = outcomes_of(ModelCallOutcome)

    def enter(self, run: Run[S], /) -> Reaction[S, ModelCallOutcome]:
        """Ask."""
        turn, setup = run.turn, run.setup
        settings = setup.settings
        if turn.max_tokens is not None:
            settings = evolve(settings, max_tokens=turn.max_tokens)
        request = ModelRequest(run.messages, turn.tools, turn.tool_choice, settings)
        label = turn.model or self.model or setup.model
        return Wait(run, (CallModel(run.next_effect, label, request),))

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, ModelCallOutcome]:
        """Sort the reply."""
        if isinstance(event, ModelReplied):
            reply = event.reply
            turn = run.turn
            turn = evolve(
                turn,
                reply=reply,
                calls=reply.message.calls,
                usage=turn.usage + reply.usage,
            )
            return Leave(evolve(run, turn=turn), _sort(reply))
        if isinstance(event, EffectFailed):
            if event.failure.error == "ContextOverflow":
                return Leave(run, ContextFull())
            ending = Ending(EndReason.ERROR, failure=event.failure)
            return Leave(evolve(run, ending=ending), Failed())
        return Leave(run, Aborted())


DECIDED: Mapping[FinishReason, ModelCallOutcome] = {
    FinishReason.REFUSAL: Refused(),
    FinishReason.CONTENT_FILTER: Refused(),
    FinishReason.CONTEXT_WINDOW: ContextFull(),
}
"""Finish reasons that decide alone, whatever else is in the reply."""


BROKEN_OFF: Final = frozenset({"", "error", "abort", "aborted", "insufficient_system_resource"})
"""Unknown finish reasons that say the server broke off; other unknown words decide nothing."""


def _sort(reply: Reply) -> ModelCallOutcome:
    finish = reply.finish_reason
    if finish in DECIDED:
        return DECIDED[finish]
    if reply.message.calls:
        return Truncated() if _is_cut(reply) else Calls()
    if finish is FinishReason.PAUSE:
        return Paused()
    return Empty() if reply.message.is_blank else Answered()


def _is_cut(reply: Reply) -> bool:
    """Whether the reply may end inside a call, however whole its arguments look."""
    if reply.finish_reason is FinishReason.OTHER:
        return reply.raw_finish_reason in BROKEN_OFF
    return reply.finish_reason is FinishReason.LENGTH
