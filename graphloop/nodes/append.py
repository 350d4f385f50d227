"""append: the only node that adds a turn's reply and tool results to the history.

Each call gets exactly one result, in request order, however the turn ended. The result of a call
that did not run states the reason. A reply without parts is not added. Turn -1 is the conversation
that the caller passed in: its open calls get results, and its old messages are not reported again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from ..contract import Contract, Moves
from ..conversation import adopt_open_calls
from ..effects import Effect
from ..events import Event
from ..limits import answer
from ..node_protocol import Leave, Reaction, outcomes_of
from ..outcomes import Aborted, AnsweredCalls, Final, Refused, Resend
from ..run import NO_COUNTS, Counters, Ending, EndReason, Measured, Run, ended_by, evolve
from ..turn import SCREEN, StepResult, Turn
from ..values import (
    AssistantMessage,
    FinishReason,
    Message,
    Reply,
    TextPart,
    ToolResult,
    ToolSpec,
)
from .frozen_fields import FrozenFields

__all__ = ["Append", "AppendOutcome"]

S = TypeVar("S")

AppendOutcome: TypeAlias = AnsweredCalls | Resend | Final | Refused | Aborted

NOT_RUN = {
    FinishReason.LENGTH: "Not run: the reply was cut off at its token limit inside this call.",
    FinishReason.OTHER: "Not run: the server did not say that the reply is whole.",
    FinishReason.CONTEXT_WINDOW: "Not run: the context window was full.",
    FinishReason.REFUSAL: "Not run: the model refused to go on.",
    FinishReason.CONTENT_FILTER: "Not run: a content filter stopped the reply.",
}
FAILURES = {"error", "invalid", "unknown_tool", "timeout"}
CANCELLED = "Not run: the run was cancelled."

ANSWERED_CALLS = AnsweredCalls()

PAUSE = FinishReason.PAUSE

REFUSED = {FinishReason.REFUSAL, FinishReason.CONTENT_FILTER}

BROKEN_OFF = {EndReason.ABORTED, EndReason.TIMEOUT, EndReason.ERROR}

NO_PLACES = frozenset[int]()

ENDS = {
    FinishReason.LENGTH: EndReason.LENGTH,
    FinishReason.CONTEXT_WINDOW: EndReason.CONTEXT_WINDOW,
    FinishReason.REFUSAL: EndReason.REFUSAL,
    FinishReason.CONTENT_FILTER: EndReason.CONTENT_FILTER,
}


@dataclass(frozen=True)
class Append(FrozenFields):
    """Add the turn's reply, tool results and notes to the history, and record the turn."""

    name: str = "append"
    kind: Literal["append"] = "append"
    outcomes = outcomes_of(AppendOutcome)

    @property
    def contract(self) -> Contract:
        """Promises for the proofs: the node closes the turn, whichever outcome it leaves by."""
        closed: frozenset[Moves] = frozenset({"close"})
        return Contract(moves=dict.fromkeys(self.outcomes, closed))

    def enter(self, run: Run[S], /) -> Reaction[S, AppendOutcome]:
        """Append the turn's messages, record the turn, and leave by the outcome for its reply."""
        turn, reply = run.turn, run.turn.reply
        if reply is None or turn.dropped:
            return self._append_notes(run)
        message, record = reply.message, run.record
        results: tuple[ToolResult, ...] = turn.results  # type: ignore[assignment]  # The next line finds a None.
        if len(results) < len(turn.calls) or None in turn.results:
            results = _pair_results(turn, reply)
        answer: tuple[AssistantMessage, ...] = ()
        ending, ends = turn.tools.ending, False
        if ending:
            answer = _handed_off(ending, results)
            ends = bool(answer) or _ends_run(ending, results)
        kept = (message, *results, *answer, *turn.notes) if message.parts else turn.notes
        if turn.number < 0:
            new, steps = _new_messages(turn, results, kept), record.steps
        else:
            ended = StepResult(turn.number, reply, turn.calls, results, turn.usage, kept)
            new, steps = kept, record.steps.extend((ended,))
        counters, is_usual = run.counters, reply.finish_reason is not PAUSE
        for result in results:
            is_usual = is_usual and result.status == "ok"
        if not is_usual or counters is not NO_COUNTS:
            counters = _count_turn(counters, reply, results)
        measured, tokens = record.measured, reply.usage.total_tokens
        if tokens:
            measured = Measured(len(run.messages) + 1, tokens)
        added = record.added.extend(new)
        run = evolve(
            run,
            messages=run.messages.extend(kept),
            turn=_close_turn(turn, recorded=turn.number >= 0),
            counters=counters,
            record=evolve(record, added=added, steps=steps, measured=measured),
        )
        return self._leave(run, turn, reply, ends=ends)

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, AppendOutcome]:
        """Raise AssertionError: this node requests no effects, so no event is for it."""
        raise AssertionError(f"{self.name!r} waits for nothing, got {type(event).__name__}")

    def _append_notes(self, run: Run[S]) -> Reaction[S, AppendOutcome]:
        """Append only the notes of a turn that has no reply, or whose reply the caller dropped."""
        turn = run.turn
        dropped = turn.reply if turn.dropped and turn.number >= 0 else None
        # The record keeps the results of calls that ran, although the conversation lost them.
        ran = tuple([one for one in turn.results if one is not None]) if turn.dropped else ()
        record, steps = run.record, run.record.steps
        if dropped is not None:
            ended = StepResult(turn.number, dropped, turn.calls, ran, turn.usage, turn.notes)
            steps = steps.append(ended)
        run = evolve(
            run,
            messages=run.messages.extend(turn.notes),
            turn=_close_turn(turn, recorded=dropped is not None),
            counters=_count_turn(run.counters, dropped, ran),
            record=evolve(record, added=record.added.extend(turn.notes), steps=steps),
        )
        if turn.dropped:
            # Open calls of the caller's conversation go into the turn, not into the history: each
            # call of the history has a result, wherever the run stops.
            run = adopt_open_calls(run, run.messages) or run
        if run.ending is not None:
            return Leave(run, _end_outcome(run.ending))
        if turn.notes or turn.dropped or run.inbox.steering:
            return Leave(run, Resend())
        # The context window is full and no message is new: asking the model again is useless.
        return Leave(ended_by(run, Ending(EndReason.CONTEXT_WINDOW)), Final())

    def _leave(
        self, run: Run[S], turn: Turn, reply: Reply, *, ends: bool
    ) -> Reaction[S, AppendOutcome]:
        finish = reply.finish_reason
        if run.ending is not None:
            return Leave(run, _end_outcome(run.ending))
        if finish in REFUSED:
            # The raw finish reason of a screen's reply is the screen's name.
            by = (reply.raw_finish_reason,) if reply.model == SCREEN else ()
            return Leave(ended_by(run, Ending(ENDS[finish], by)), Refused())
        waiting = turn.notes or run.inbox.steering
        if turn.verdicts and (waiting or not ends):
            return Leave(run, ANSWERED_CALLS)
        if waiting or (finish is PAUSE and not turn.calls):
            return Leave(run, Resend())
        reason = ENDS.get(finish, EndReason.COMPLETED)
        if reason is EndReason.COMPLETED and reply.message.is_blank:
            reason = EndReason.EMPTY_RESPONSE
        elif reason is EndReason.COMPLETED and turn.calls and not turn.verdicts:
            reason = EndReason.INCOMPLETE
        return Leave(ended_by(run, Ending(reason)), Final())


def _end_outcome(ending: Ending) -> Final | Aborted:
    """Return `Aborted` for a run that failed, timed out or was stopped, else `Final`."""
    return Aborted() if ending.reason in BROKEN_OFF else Final()


def _pair_results(turn: Turn, reply: Reply) -> tuple[ToolResult, ...]:
    """Return one result for each call; the result of a call that did not run states the reason."""
    # The kernel has stored results for all calls that may have run; the others did not run.
    content = NOT_RUN.get(reply.finish_reason, CANCELLED)
    results: list[ToolResult] = []
    for place, result in enumerate(turn.results or (None,) * len(turn.calls)):
        results.append(result or answer(turn, place, content, "not_run"))
    return tuple(results)


def _close_turn(turn: Turn, *, recorded: bool) -> Turn:
    return evolve(
        turn,
        reply=None,
        calls=(),
        verdicts=(),
        results=(),
        again=NO_PLACES,
        notes=(),
        asked=False,
        dropped=False,
        compacted=False,
        recorded=recorded,
    )


def _new_messages(
    turn: Turn, results: tuple[ToolResult, ...], kept: tuple[Message, ...]
) -> tuple[Message, ...]:
    """Return the messages that a run adds to a passed-in turn: missing results, later messages."""
    missing = [one for at, one in enumerate(results) if at not in turn.given]
    return (*missing, *kept[1 + len(results) :])


def _handed_off(
    ending: Sequence[ToolSpec], results: tuple[ToolResult, ...]
) -> tuple[AssistantMessage, ...]:
    """Return the final message of an agent that took over the conversation; empty without one."""
    agents = [tool.name for tool in ending if tool.takes_over]
    for result in results:
        if result.name in agents and result.status == "ok":
            return (AssistantMessage((TextPart(result.text),)),)
    return ()


def _ends_run(ending: Sequence[ToolSpec], results: tuple[ToolResult, ...]) -> bool:
    """Whether all calls except denied ones (at least one) succeeded and have run-ending tools."""
    names = [tool.name for tool in ending]
    ran = [result for result in results if result.status != "denied"]
    return bool(ran) and all(result.status == "ok" and result.name in names for result in ran)


def _count_turn(
    counters: Counters, reply: Reply | None, results: tuple[ToolResult, ...]
) -> Counters:
    """Return the counters after a turn: pauses, failed turns of each tool, all-denied turns."""
    pauses = counters.pauses
    if reply is not None:
        pauses = pauses + 1 if reply.finish_reason is PAUSE else 0
    tool_errors = _count_errors(counters.tool_errors, results)
    denials = _count_denials(counters.denials, results)
    return evolve(counters, tool_errors=tool_errors, denials=denials, pauses=pauses)


def _count_denials(count: int, results: tuple[ToolResult, ...]) -> int:
    """Return the updated count of all-denied turns; a successful call sets the count to 0."""
    statuses = {result.status for result in results}
    return count + 1 if statuses == {"denied"} else 0 if "ok" in statuses else count


def _count_errors(counts: Mapping[str, int], results: tuple[ToolResult, ...]) -> Mapping[str, int]:
    """Return, for each tool, the number of turns since its last success in which it only failed.

    A turn counts at most once for each tool. Any success of the tool in the turn removes its
    count. Calls that were denied or did not run change no count.
    """
    succeeded = {result.name for result in results if result.status == "ok"}
    # A dict, not a set: it keeps the request's order, which is the same in every process.
    failed = {
        result.name: None
        for result in results
        if result.status in FAILURES and result.name not in succeeded
    }
    if not failed and not any(name in counts for name in succeeded):
        return counts
    kept = {name: count for name, count in counts.items() if name not in succeeded}
    return kept | {name: kept.get(name, 0) + 1 for name in failed}
