"""compact: make a conversation shorter that is outgrowing the model's context window.

The layers run in order, the cheapest first. `conversation/compaction.py` says which messages they
keep, and never parts a call from its result. Only what is sent is shortened: what the run has
added stays whole. Once a turn, so that a window that is too small ends the run and not the budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar

from ..contract import BROKEN, Cap, Contract, Moves
from ..conversation import (
    Calibration,
    Compaction,
    estimate,
    prune,
    summarized,
    summary_request,
    to_summarize,
)
from ..effects import CallModel, Effect, Invoke
from ..events import CallbackReturned, Changes, EffectFailed, Event, Failure, ModelReplied
from ..node_protocol import Leave, Reaction, Wait, outcomes_of
from ..outcomes import Aborted, Cannot, Compacted, Failed
from ..run import Ending, EndReason, Run, ended_by, evolve, with_conversation
from ..values import FinishReason, ModelRequest, Settings, Usage
from .frozen_fields import FrozenFields

__all__ = ["SUMMARY_TOKENS", "Compact", "CompactOutcome"]

S = TypeVar("S")

CompactOutcome: TypeAlias = Compacted | Cannot | Failed | Aborted

SUMMARY_TOKENS: Final = 4_096
"""How long a summary may be at least, where replies have a limit: half of one is worth nothing."""


@dataclass(frozen=True)
class Compact(FrozenFields):
    """Shorten the conversation by layers, or by the user's function.

    Args:
        compaction: which layers, and how far; None makes nothing shorter.
        callback: the name of the function that shortens instead; empty for none.
    """

    name: str = "compact"
    compaction: Compaction | None = None
    callback: str = ""
    kind: Literal["prepare"] = "prepare"
    outcomes = outcomes_of(CompactOutcome)

    @property
    def contract(self) -> Contract:
        """It compacts once, until the turn is closed; without a `compaction` never."""
        summary = self.compaction is not None and "summarize" in self.compaction.layers
        times = 0 if self.compaction is None else 1
        again: frozenset[Moves] = frozenset({"again"})
        return Contract(
            caps={Compacted: Cap(times, resets=frozenset({"close"}))},
            moves={
                **dict.fromkeys([Compacted] * times, again),
                Cannot: frozenset({"end"}),
                Failed: BROKEN,
                Aborted: BROKEN,
            },
            model_calls=int(summary and not self.callback),
            functions=(self.callback,) if self.callback else (),
        )

    def enter(self, run: Run[S], /) -> Reaction[S, CompactOutcome]:
        """Run the layers that need no model, and ask for a summary if that is not enough."""
        turn = run.turn
        if self.compaction is not None and turn.compacted and not turn.asked:
            # No model has said that there is no room: the table leads here twice in a row.
            found = f"{self.name!r} has shortened this turn, and no model was asked since"
            ending = Ending(EndReason.ERROR, failure=Failure("ConfigError", found))
            return Leave(ended_by(run, ending), Failed())
        if self.compaction is None or turn.compacted:
            return Leave(ended_by(run, Ending(EndReason.CONTEXT_WINDOW)), Cannot())
        # What a turn whose model was asked has used stays on its bill when it is opened anew.
        asked = turn.asked
        usage = turn.usage if asked else Usage()
        turn = evolve(turn.without_reply(), compacted=True, usage=usage)
        run = evolve(run, turn=turn)
        if self.callback:
            return Wait(run, (Invoke(run.next_effect, self.callback),))
        tokens, calibration = self._size(run, full=asked)
        pruned = prune(run.messages, self.compaction, calibration, tokens)
        run = with_conversation(run, pruned.messages) if pruned.layers else run
        span = to_summarize(run.messages, self.compaction.keep_recent_turns)
        if pruned.enough or span is None or "summarize" not in self.compaction.layers:
            return self._leave(run, worked=bool(pruned.layers) or not asked)
        asked_for = summary_request(run.messages, span, self.compaction)
        room = self.compaction.context_window - estimate(asked_for)
        request = ModelRequest(asked_for, settings=_as_asked(run.setup.settings, room))
        label = self.compaction.summary_model or run.setup.model
        return Wait(run, (CallModel(run.next_effect, label, request),))

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, CompactOutcome]:
        """Put the summary in place of what it stands for; without one, what is pruned must do."""
        match event:
            case ModelReplied(reply=reply) if self.compaction is not None:
                span = to_summarize(run.messages, self.compaction.keep_recent_turns)
                assert span is not None, "a summary was asked for"
                # Half a summary, or a refusal to give one, must not stand for what it leaves out.
                said = reply.message.text if reply.finish_reason is FinishReason.STOP else ""
                run = _paid(run, reply.usage)
                if reply.finish_reason is not FinishReason.STOP:
                    run = self._warned(run, f"it ended by {reply.finish_reason.value!r}")
                shorter = summarized(run.messages, span, said)
                if len(shorter) == len(run.messages):
                    return self._leave(run, worked=_is_worth_asking(run))
                return self._leave(with_conversation(run, shorter), worked=True)
            case EffectFailed() if isinstance(answered, CallModel):
                run = self._warned(_paid(run, event.spent.usage), event.failure.message)
                return self._leave(run, worked=_is_worth_asking(run))
            case CallbackReturned(answer=Changes(messages=messages)):
                changed = run if messages is None else with_conversation(run, messages)
                return self._leave(changed, worked=messages is not None or not run.turn.asked)
            case CallbackReturned(answer=answer):
                found = f"{self.callback!r} answers with Changes; found {type(answer).__name__}"
                failure = Failure("ConfigError", found)
            case EffectFailed():
                failure = event.failure
            case _:
                return Leave(run, Aborted())
        return Leave(ended_by(run, Ending(EndReason.ERROR, failure=failure)), Failed())

    def _size(self, run: Run[S], *, full: bool) -> tuple[int, Calibration]:
        """Return how long the conversation is, and how far the estimate of it was off."""
        assert self.compaction is not None, "it was looked at before"
        counted = run.measured
        known = estimate(run.messages[: counted.messages])
        calibration = Calibration.of(known, counted.tokens)
        new = calibration.corrected(estimate(run.messages[counted.messages :]))
        tokens = counted.tokens + new
        return max(tokens, self.compaction.context_window) if full else tokens, calibration

    def _warned(self, run: Run[S], found: str) -> Run[S]:
        told = f"{self.name!r} had no summary to put in place of old messages: {found}"
        return evolve(run, record=evolve(run.record, warnings=(*run.record.warnings, told)))

    def _leave(self, run: Run[S], *, worked: bool) -> Reaction[S, CompactOutcome]:
        if worked:
            return Leave(run, Compacted())
        return Leave(ended_by(run, Ending(EndReason.CONTEXT_WINDOW)), Cannot())


def _as_asked(settings: Settings, room: int) -> Settings:
    """Return the run's settings for a summary, which may be as long as there is room for."""
    limit = settings.max_tokens
    if limit is not None or room < SUMMARY_TOKENS:
        limit = min(max(limit or 0, SUMMARY_TOKENS), max(room, 1))
    return evolve(settings, max_tokens=limit, stop_sequences=(), parallel_tool_calls=None)


def _is_worth_asking(run: Run[S]) -> bool:
    """Whether a model may have room without a summary: it has not said no to what there is."""
    return not run.turn.asked or not run.counters.measured.messages


def _paid(run: Run[S], usage: Usage) -> Run[S]:
    return evolve(run, turn=evolve(run.turn, usage=run.turn.usage + usage))
