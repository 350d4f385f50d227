"""The latest answer of a conversation, and the two ways on from it: further, or back to its author.

The run that appended an answer is about to end by it. A table that leads on from there says that
the answer was not the last one.
"""

from __future__ import annotations

from typing import TypeVar

from .run import EndReason, Run, ended_by, evolve
from .values import AssistantMessage, UserMessage

__all__ = ["latest_answer", "sent_back", "taken_further"]

S = TypeVar("S")


def latest_answer(run: Run[S]) -> str:
    """Return the text of the last thing that a model said; empty if none has said anything."""
    for message in reversed(run.messages):
        if isinstance(message, AssistantMessage):
            return message.text
    return ""


def taken_further(run: Run[S]) -> Run[S]:
    """Return the run as one that goes on from an answer; an ending of any other kind stays."""
    if run.ending is None or run.ending.reason is not EndReason.COMPLETED:
        return run
    return evolve(run, ending=None)


def sent_back(run: Run[S], feedback: str, origin: str) -> Run[S]:
    """Return the run with feedback on its answer, noted for the next turn.

    Args:
        run: the run.
        feedback: what the model is to read.
        origin: the name of the node that says it.
    """
    note = UserMessage(feedback, origin=origin)
    turn = evolve(run.turn, notes=(*run.turn.notes, note))
    return ended_by(evolve(run, turn=turn), None)
