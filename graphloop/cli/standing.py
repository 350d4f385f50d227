"""How a run stands, as far as its events alone tell: for stores that keep journals and no status.

A journal has no last word: whether a run is over is its graph's to say, and a graph is a program.
So this is what the end of a journal looks like where the graph is the standard loop, and it is
shown as what it `seems`. Where the end looks like nothing (a tool is running, a model is being
asked, or their process was killed), nothing is said.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..events import (
    CallbackReturned,
    CallsChecked,
    Cancelled,
    EffectFailed,
    Event,
    Judged,
    ModelReplied,
)
from ..stores.base import ReleaseStatus
from ..values import FinishReason, Reply

__all__ = ["seems"]

ASKED_AGAIN = (FinishReason.PAUSE, FinishReason.CONTEXT_WINDOW, FinishReason.LENGTH)


def seems(events: Sequence[Event]) -> ReleaseStatus | None:
    """Return how a run that nobody drives would stand; None where its end does not show it."""
    match events[-1]:
        case Cancelled(after_step=False, timeout=timeout):
            return "failed" if timeout else "cancelled"
        case EffectFailed() if not _has_calls_under_way(events):
            return "failed"
        case CallsChecked():
            return "suspended"
        case ModelReplied(reply=reply) if _is_answer(reply):
            return "done"
        case CallbackReturned(answer=Judged(accepted=True)):
            return "done"
        case _:
            return None


def _has_calls_under_way(events: Sequence[Event]) -> bool:
    """Whether calls were checked since the last reply: one that fails ends no run."""
    for event in reversed(events):
        if isinstance(event, CallsChecked | ModelReplied):
            return isinstance(event, CallsChecked)
    return False


def _is_answer(reply: Reply) -> bool:
    message = reply.message
    return not (message.calls or message.is_blank or reply.finish_reason in ASKED_AGAIN)
