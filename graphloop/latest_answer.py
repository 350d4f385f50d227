"""The latest answer of a run, and the two ways on from it: further, or back to its author.

Every reader of a run's answer asks `latest_answer`, so what a person has put in place of the
model's words is read everywhere.

The run that appended an answer is about to end by it. A table that leads on from there says that
the answer was not the last one.
"""

from __future__ import annotations

from typing import TypeVar

from .run import EndReason, Run, ended_by, evolve
from .values import AssistantMessage, UserMessage

__all__ = [
    "answer_at_hand",
    "approved_answer",
    "latest_answer",
    "said_after_calls",
    "sent_back",
    "taken_further",
]

S = TypeVar("S")


def latest_answer(run: Run[S]) -> str:
    """Return the run's answer: a person's text, or else the text of the latest turn.

    An agent that took the conversation over has spoken last. The text is empty before any answer.
    """
    if (approved := approved_answer(run)) is not None:
        return approved
    if run.turn.reply is not None:
        return run.turn.reply.message.text
    if not run.record.steps:
        return ""
    last = run.record.steps[-1]
    said = last.messages[-1] if last.messages else None
    return said.text if isinstance(said, AssistantMessage) else last.text


def said_after_calls(run: Run[S]) -> bool:
    """Whether a person, or an agent that took over, has spoken after the calls of the last turn."""
    if approved_answer(run) is not None:
        return True
    last = run.record.steps[-1]
    return bool(last.tool_results) and isinstance(last.messages[-1], AssistantMessage)


def approved_answer(run: Run[S]) -> str | None:
    """Return the text that a person has approved, until a later turn has answered."""
    if run.record.approved is None:
        return None
    turn, text = run.record.approved
    steps = run.record.steps
    answered = run.turn.number if run.turn.reply else steps[-1].index if steps else -1
    return text if answered <= turn else None


def answer_at_hand(run: Run[S]) -> str:
    """Return the run's answer, or the last one of the conversation that it was given."""
    if run.record.steps or run.turn.reply or run.record.approved:
        return latest_answer(run)
    said = (one.text for one in reversed(run.messages) if isinstance(one, AssistantMessage))
    return next(said, "")


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
