"""compact: a node that shortens a conversation that no longer fits the model's context window.

The layers run in order, the cheapest first. `conversation/compaction.py` decides which messages
they keep, and keeps each call with its result. Only the messages sent to the model get shorter:
the run's record stays whole. The node shortens once a turn. If the window is still too small, the
run ends at once instead of spending its budget.
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
from ..node_protocol import Leave, Reaction, Wait, outcomes_of, wrong_answer
from ..outcomes import Aborted, Cannot, Compacted, Failed
from ..run import Ending, EndReason, Run, ended_by, evolve, with_conversation
from ..values import FinishReason, ModelRequest, Settings, Usage
from .frozen_fields import FrozenFields

__all__ = ["SUMMARY_TOKENS", "Compact", "CompactOutcome"]

S = TypeVar("S")

CompactOutcome: TypeAlias = Compacted | Cannot | Failed | Aborted

SUMMARY_TOKENS: Final = 4_096
"""The least token limit of a summary; a smaller `max_tokens` of the run is raised to it."""


@dataclass(frozen=True)
class Compact(FrozenFields):
    """Shorten the conversation with the layers of `compaction`, or with the caller's own function.

    Args:
        compaction: the layers to run and the length to reach; None shortens nothing.
        callback: the name of the caller's function that shortens instead; empty for none.
    """

    name: str = "compact"
    compaction: Compaction | None = None
    callback: str = ""
    kind: Literal["prepare"] = "prepare"
    outcomes = outcomes_of(CompactOutcome)

    def __post_init__(self) -> None:
        """Freeze the fields, and refuse a compaction without a context window."""
        super().__post_init__()
        if self.compaction is not None:
            _ = self.compaction.window

    @property
    def contract(self) -> Contract:
        """Promises for the proofs: the node compacts at most once before the turn is closed.

        Without a `compaction` it never compacts.
        """
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
        """Run the layers that need no model; if the result is still too long, request a summary."""
        turn = run.turn
        if self.compaction is not None and turn.compacted and not turn.asked:
            # The table leads here twice in a row, with no model call in between.
            found = f"{self.name!r} has shortened this turn, and no model was asked since"
            ending = Ending(EndReason.ERROR, failure=Failure("ConfigError", found))
            return Leave(ended_by(run, ending), Failed())
        if self.compaction is None or turn.compacted:
            return Leave(ended_by(run, Ending(EndReason.CONTEXT_WINDOW)), Cannot())
        # A turn that is opened again keeps the usage of the model call that it has made.
        asked = turn.asked
        usage = turn.usage if asked else Usage()
        turn = evolve(turn.without_reply(), compacted=True, usage=usage)
        run = evolve(run, turn=turn)
        if self.callback:
            return Wait(run, (Invoke(run.next_effect, self.callback),))
        tokens, calibration = self._measure(run, full=asked)
        pruned = prune(run.messages, self.compaction, calibration, tokens)
        run = with_conversation(run, pruned.messages) if pruned.layers else run
        span = to_summarize(run.messages, self.compaction.keep_recent_turns)
        if pruned.enough or span is None or "summarize" not in self.compaction.layers:
            return self._leave(run, worked=bool(pruned.layers) or not asked)
        asked_for = summary_request(run.messages, span, self.compaction)
        room = self.compaction.window - estimate(asked_for)
        request = ModelRequest(asked_for, settings=_as_asked(run.setup.settings, room))
        label = self.compaction.summary_model or run.setup.model
        return Wait(run, (CallModel(run.next_effect, label, request),))

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, CompactOutcome]:
        """Replace the oldest messages with their summary, or store the callback's messages.

        Without a summary, the pruned conversation must be short enough.
        """
        match event:
            case ModelReplied(reply=reply) if self.compaction is not None:
                span = to_summarize(run.messages, self.compaction.keep_recent_turns)
                assert span is not None, "a summary was asked for"
                # A cut summary, or a refusal, must not replace messages: their content is lost.
                said = reply.message.text if reply.finish_reason is FinishReason.STOP else ""
                run = _pay_usage(run, reply.usage)
                if reply.finish_reason is not FinishReason.STOP:
                    run = self._with_warning(run, f"it ended by {reply.finish_reason.value!r}")
                shorter = summarized(run.messages, span, said)
                if len(shorter) == len(run.messages):
                    return self._leave(run, worked=_is_worth_asking(run))
                return self._leave(with_conversation(run, shorter), worked=True)
            case EffectFailed() if isinstance(answered, CallModel):
                run = self._with_warning(_pay_usage(run, event.spent.usage), event.failure.message)
                return self._leave(run, worked=_is_worth_asking(run))
            case CallbackReturned(answer=Changes(messages=messages)):
                changed = run if messages is None else with_conversation(run, messages)
                return self._leave(changed, worked=messages is not None or not run.turn.asked)
            case CallbackReturned(answer=answer):
                failure = wrong_answer(self.callback, Changes, answer)
            case EffectFailed():
                failure = event.failure
            case _:
                return Leave(run, Aborted())
        return Leave(ended_by(run, Ending(EndReason.ERROR, failure=failure)), Failed())

    def _measure(self, run: Run[S], *, full: bool) -> tuple[int, Calibration]:
        """Return the conversation's tokens, and the calibration that corrects estimates of them.

        `full`: the provider found the window full, so the tokens are at least the window's.
        """
        assert self.compaction is not None, "it was looked at before"
        counted = run.measured
        known = estimate(run.messages[: counted.messages])
        calibration = Calibration.of(known, counted.tokens)
        new = calibration.corrected(estimate(run.messages[counted.messages :]))
        tokens = counted.tokens + new
        return max(tokens, self.compaction.window) if full else tokens, calibration

    def _with_warning(self, run: Run[S], found: str) -> Run[S]:
        told = f"{self.name!r} had no summary to put in place of old messages: {found}"
        return evolve(run, record=evolve(run.record, warnings=(*run.record.warnings, told)))

    def _leave(self, run: Run[S], *, worked: bool) -> Reaction[S, CompactOutcome]:
        if worked:
            return Leave(run, Compacted())
        return Leave(ended_by(run, Ending(EndReason.CONTEXT_WINDOW)), Cannot())


def _as_asked(settings: Settings, room: int) -> Settings:
    """Return the run's settings, with a token limit for a summary that fits into `room` tokens."""
    limit = settings.max_tokens
    if limit is not None or room < SUMMARY_TOKENS:
        limit = min(max(limit or 0, SUMMARY_TOKENS), max(room, 1))
    return evolve(settings, max_tokens=limit, stop_sequences=(), parallel_tool_calls=None)


def _is_worth_asking(run: Run[S]) -> bool:
    """Whether the model may have room: it was not asked in this turn, or the messages changed."""
    return not run.turn.asked or not run.record.measured.messages


def _pay_usage(run: Run[S], usage: Usage) -> Run[S]:
    return evolve(run, turn=evolve(run.turn, usage=run.turn.usage + usage))
