"""extend: a node that has the model asked again after a cut call or an empty reply.

A call that was cut never runs, even if its arguments look complete. The model is asked again once,
with twice the token limit if the reply was cut by it; then the reply is final. If the server
refuses the larger limit, the cut reply is final: no table lists the most tokens of each model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from ..contract import Cap, Contract
from ..effects import Effect
from ..events import Event
from ..node_protocol import Leave, Reaction, outcomes_of
from ..outcomes import GiveUp, Retry
from ..run import Run, evolve
from ..values import FinishReason
from .frozen_fields import FrozenFields

__all__ = ["Extend", "ExtendOutcome"]

S = TypeVar("S")

ExtendOutcome: TypeAlias = Retry | GiveUp

RETRIES_MAX = 1
"""The most times that the model is asked again in one turn."""

TOKENS_UNSET = 4_096
"""The assumed token limit of a turn that has none: the smallest known default of a server."""


@dataclass(frozen=True)
class Extend(FrozenFields):
    """Have the model asked again in this turn, with a doubled token limit if the reply hit it."""

    name: str = "extend"
    kind: Literal["prepare"] = "prepare"
    outcomes = outcomes_of(ExtendOutcome)

    @property
    def contract(self) -> Contract:
        """Promises for the proofs: it leaves by `Retry` at most `RETRIES_MAX` times a turn."""
        return Contract(caps={Retry: Cap(RETRIES_MAX, resets=frozenset({"turn"}))})

    def enter(self, run: Run[S], /) -> Reaction[S, ExtendOutcome]:
        """Leave by `Retry` if the model may be asked again in this turn, else by `GiveUp`."""
        turn, reply = run.turn, run.turn.reply
        if reply is None or turn.retries >= RETRIES_MAX:
            return Leave(run, GiveUp())
        tokens_max, cut = turn.max_tokens or run.setup.settings.max_tokens, None
        if reply.finish_reason is FinishReason.LENGTH:
            if not (tokens_max or reply.usage.output_tokens):
                return Leave(run, GiveUp())  # Unknown limit: no number is surely larger.
            tokens_max = 2 * max(tokens_max or TOKENS_UNSET, reply.usage.output_tokens)
            cut = reply
        turn = evolve(turn, retries=turn.retries + 1, max_tokens=tokens_max, cut=cut)
        return Leave(evolve(run, turn=turn.without_reply()), Retry())

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, ExtendOutcome]:
        """Raise AssertionError: this node requests no effects, so no event is for it."""
        raise AssertionError(f"{self.name!r} waits for nothing, got {type(event).__name__}")
