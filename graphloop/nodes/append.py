"""append: the only node that grows the history, and the one that keeps it paired.

Whatever way a turn ended, each of its calls gets exactly one result, in request order: what did
not run is answered with the reason. A reply that says nothing is not a message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from ..effects import Effect
from ..events import Event
from ..node import Kind, Leave, Reaction, outcomes_of
from ..outcomes import Aborted, AnsweredCalls, Final, Refused, Resend
from ..run import Ending, EndReason, Run, StepResult, Turn, evolve
from ..values import FinishReason, Message, Reply, ToolResult, call_key

__all__ = ["Append", "AppendOutcome"]

S = TypeVar("S")

AppendOutcome: TypeAlias = AnsweredCalls | Resend | Final | Refused | Aborted

NOT_RUN = {
    FinishReason.LENGTH: "Not run: the reply was cut off at its token limit inside this call.",
    FinishReason.OTHER: "Not run: the server broke off, so this call may be cut.",
    FinishReason.CONTEXT_WINDOW: "Not run: the context window was full.",
    FinishReason.REFUSAL: "Not run: the model refused to go on.",
    FinishReason.CONTENT_FILTER: "Not run: a content filter stopped the reply.",
}
FAILURES = {"error", "invalid", "unknown_tool", "timeout"}
CANCELLED = "Not run, or not known to have ended: the run was cancelled."

ENDS = {
    FinishReason.LENGTH: EndReason.LENGTH,
    FinishReason.CONTEXT_WINDOW: EndReason.CONTEXT_WINDOW,
    FinishReason.REFUSAL: EndReason.REFUSAL,
    FinishReason.CONTENT_FILTER: EndReason.CONTENT_FILTER,
}


@dataclass(frozen=True)
class Append:
    """Add the turn's reply, its results and its notes to the history; record the turn."""

    name: str = "append"
    kind: Kind = "append"
    outcomes = outcomes_of(AppendOutcome)

    def enter(self, run: Run[S], /) -> Reaction[S, AppendOutcome]:
        """Append, record, and tell what the turn was."""
        turn, reply = run.turn, run.turn.reply
        if reply is None:
            return self._nothing(run)
        results = _paired(turn, reply)
        added = _added(turn, reply, results)
        run = evolve(
            run,
            messages=run.messages.append(*added),
            added=run.added.append(*added),
            steps=run.steps.append(_record(turn, reply, results, added)),
            tool_errors=_errors(run.tool_errors, results) if results else run.tool_errors,
            turn=evolve(turn, reply=None, calls=(), verdicts=(), results=(), notes=()),
        )
        return self._leave(run, reply, ran=bool(turn.verdicts), noted=bool(turn.notes))

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, AppendOutcome]:
        """Never happens: this node asks for nothing."""
        raise AssertionError(f"{self.name!r} waits for nothing, got {type(event).__name__}")

    def _nothing(self, run: Run[S]) -> Reaction[S, AppendOutcome]:
        """Handle a turn without a reply: a note to append, or a context that overflowed."""
        turn = run.turn
        if turn.notes:
            run = evolve(
                run,
                messages=run.messages.append(*turn.notes),
                added=run.added.append(*turn.notes),
                turn=evolve(turn, notes=()),
            )
            return Leave(run, Resend())
        if run.ending is not None:
            return Leave(run, Aborted())
        return Leave(evolve(run, ending=Ending(EndReason.CONTEXT_WINDOW)), Final())

    def _leave(
        self, run: Run[S], reply: Reply, *, ran: bool, noted: bool
    ) -> Reaction[S, AppendOutcome]:
        if run.ending is not None:
            return Leave(run, Aborted())
        if ran:
            return Leave(run, AnsweredCalls())
        finish = reply.finish_reason
        if noted or (finish is FinishReason.PAUSE and not reply.message.calls):
            return Leave(run, Resend())
        reason = ENDS.get(finish, EndReason.COMPLETED)
        if reason is EndReason.COMPLETED and reply.message.is_blank:
            reason = EndReason.EMPTY_RESPONSE
        elif reason is EndReason.COMPLETED and reply.message.calls:
            reason = EndReason.INCOMPLETE
        ended = evolve(run, ending=Ending(reason))
        refused = finish in {FinishReason.REFUSAL, FinishReason.CONTENT_FILTER}
        return Leave(ended, Refused() if refused else Final())


def _paired(turn: Turn, reply: Reply) -> tuple[ToolResult, ...]:
    """Return one result a call: those that came, and a reason for each that did not."""
    if turn.results and None not in turn.results:
        return tuple([result for result in turn.results if result is not None])
    content = NOT_RUN.get(reply.finish_reason, CANCELLED)
    slots = turn.results or (None,) * len(turn.calls)
    return tuple(
        ToolResult(call_key(turn.number, index), call.id, call.name, content, "not_run")
        if result is None
        else result
        for index, (call, result) in enumerate(zip(turn.calls, slots, strict=True))
    )


def _added(turn: Turn, reply: Reply, results: tuple[ToolResult, ...]) -> tuple[Message, ...]:
    if not reply.message.parts:
        return turn.notes
    return (reply.message, *results, *turn.notes)


def _record(
    turn: Turn, reply: Reply, results: tuple[ToolResult, ...], added: tuple[Message, ...]
) -> StepResult:
    return StepResult(
        index=turn.number,
        text=reply.message.text,
        reasoning=reply.message.reasoning,
        tool_calls=turn.calls,
        tool_results=results,
        finish_reason=reply.finish_reason,
        raw_finish_reason=reply.raw_finish_reason,
        usage=turn.usage,
        model=reply.model,
        messages=added,
        metadata=reply.metadata,
    )


def _errors(counts: Mapping[str, int], results: tuple[ToolResult, ...]) -> Mapping[str, int]:
    """Count consecutive failing steps by tool (CONTRACT §1.7 with §9 #1).

    A step counts at most once a tool; any success of the tool in it resets; a denial or a call
    that did not run says nothing about the tool.
    """
    if not counts and all(result.status == "ok" for result in results):
        return counts
    succeeded = {result.name for result in results if result.status == "ok"}
    # A dict, not a set: the order must be the request's, in every process.
    failed = {
        result.name: None
        for result in results
        if result.status in FAILURES and result.name not in succeeded
    }
    if not failed and not any(name in counts for name in succeeded):
        return counts
    kept = {name: count for name, count in counts.items() if name not in succeeded}
    return kept | {name: kept.get(name, 0) + 1 for name in failed}
