"""How a run stands, as far as its events alone tell: for stores that keep journals and no status.

A journal has no last word: whether a run is over is its graph's to say, and a graph is a program.
So this is what the end of a journal looks like where the graph is the standard loop, and it is
shown as what it `seems`. Where the end looks like nothing (a tool is running, a model is being
asked, or their process was killed), nothing is said. Nor is it where a gate may ask of itself, for
its rules are the graph's: such a run is taken up to see what it waits for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..events import (
    CallbackReturned,
    CallCheck,
    CallsChecked,
    Cancelled,
    Decided,
    EffectFailed,
    Event,
    Judged,
    ModelReplied,
    Started,
)
from ..stores.base import ReleaseStatus
from ..values import FinishReason, Reply, ToolCall

__all__ = ["seems"]

ASKED_AGAIN = (FinishReason.PAUSE, FinishReason.CONTEXT_WINDOW, FinishReason.LENGTH)


def seems(events: Sequence[Event], *, child_waits: bool = False) -> ReleaseStatus | None:
    """Return how a run that nobody drives would stand; None where its end does not show it.

    Args:
        events: its journal.
        child_waits: whether an agent that it runs seems suspended.
    """
    match events[-1]:
        case Cancelled(after_step=False, timeout=timeout):
            return "failed" if timeout else "cancelled"
        case EffectFailed() if not _has_calls_under_way(events):
            return "failed"
        case CallsChecked(checks=checks) if _wait(events, checks, child_waits=child_waits):
            return "suspended"
        case ModelReplied(reply=reply) if _is_answer(reply):
            return "done"
        case CallbackReturned(answer=Judged(accepted=True)):
            return "done"
        case _:
            return None


def _wait(events: Sequence[Event], checks: Sequence[CallCheck], *, child_waits: bool) -> bool:
    """Whether each call that was checked last waits for an answer: any other one may run.

    Where gates have rules, they alone know whether a call that needs no approval is asked about.
    """
    calls: Sequence[ToolCall] = ()
    for event in reversed(events):
        if isinstance(event, Decided):
            return False  # That answer was not the last one to come, or the call runs as edited.
        if isinstance(event, ModelReplied):
            calls = event.reply.message.calls
            break
    kinds = _kinds(events[0])
    # A further gate looks at some of the calls only, and it is not told at which.
    names = [one.name for one in calls] if len(calls) == len(checks) else [""] * len(checks)
    waiting = {"client": True, "agent": child_waits}
    waits = [
        check.needs_approval or (not check.held and waiting.get(kinds.get(name, ""), False))
        for name, check in zip(names, checks, strict=True)
        if not check.problem
    ]
    return bool(waits) and all(waits)


def _kinds(begun: Event) -> Mapping[str, str]:
    """Return who runs each tool that a run was begun with."""
    return {one.name: one.kind for one in begun.setup.tools} if isinstance(begun, Started) else {}


def _has_calls_under_way(events: Sequence[Event]) -> bool:
    """Whether calls were checked since the last reply: one that fails ends no run."""
    for event in reversed(events):
        if isinstance(event, CallsChecked | ModelReplied):
            return isinstance(event, CallsChecked)
    return False


def _is_answer(reply: Reply) -> bool:
    message = reply.message
    return not (message.calls or message.is_blank or reply.finish_reason in ASKED_AGAIN)
