"""extend: ask once more when a reply was cut inside a call, or was empty.

A call that was cut is never run, whatever its arguments look like. The
turn is asked again with twice the room, once; then what there is must do. So it must where the
model has no more room: no table tells the most that a model may write, but its server refuses more.
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
"""How often one turn is asked again."""

TOKENS_UNSET = 4_096
"""What a turn without a token limit is taken to have had: the smallest server default known."""


@dataclass(frozen=True)
class Extend(FrozenFields):
    """Ask the turn again, with a doubled token limit where the limit was the trouble."""

    name: str = "extend"
    kind: Literal["prepare"] = "prepare"
    outcomes = outcomes_of(ExtendOutcome)

    @property
    def contract(self) -> Contract:
        """A turn is asked again so often and no oftener."""
        return Contract(caps={Retry: Cap(RETRIES_MAX, resets=frozenset({"turn"}))})

    def enter(self, run: Run[S], /) -> Reaction[S, ExtendOutcome]:
        """Decide by how often this turn was asked already."""
        turn, reply = run.turn, run.turn.reply
        if reply is None or turn.retries >= RETRIES_MAX:
            return Leave(run, GiveUp())
        tokens_max, cut = turn.max_tokens or run.setup.settings.max_tokens, None
        if reply.finish_reason is FinishReason.LENGTH:
            if not (tokens_max or reply.usage.output_tokens):
                return Leave(run, GiveUp())  # Twice an unknown limit may be that limit, or less.
            tokens_max = 2 * max(tokens_max or TOKENS_UNSET, reply.usage.output_tokens)
            cut = reply
        turn = evolve(turn, retries=turn.retries + 1, max_tokens=tokens_max, cut=cut)
        return Leave(evolve(run, turn=turn.without_reply()), Retry())

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, ExtendOutcome]:
        """Never happens: this node asks for nothing."""
        raise AssertionError(f"{self.name!r} waits for nothing, got {type(event).__name__}")
