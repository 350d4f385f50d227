"""The latest answer of a run, and functions that continue a run after its answer.

All code that reads a run's answer calls `latest_answer`, so a text that a person approved replaces
the model's text everywhere. A run that appended an answer has an ending. A later node removes the
ending to continue the run, or rejects the answer.
"""

from __future__ import annotations

from typing import TypeVar

from ..run import EndReason, Run, ended_by, evolve
from ..values import AssistantMessage, MediaPart, ToolResult, UserMessage

__all__ = [
    "answer_at_hand",
    "approved_answer",
    "clear_ending",
    "ended_answer",
    "ended_media",
    "latest_answer",
    "reject_answer",
    "said_after_calls",
]

S = TypeVar("S")


def latest_answer(run: Run[S]) -> str:
    """Return the run's answer: the text that a person approved, else the latest turn's text.

    In a turn where an agent took over the conversation, the answer is that agent's text. Before any
    answer the text is empty.
    """
    if (approved := approved_answer(run)) is not None:
        return approved
    if run.turn.reply is not None:
        return run.turn.reply.message.text
    if not run.record.steps:
        return ""
    last = run.record.steps[-1]
    message = last.messages[-1] if last.messages else None
    return message.text if isinstance(message, AssistantMessage) else last.text


def ended_answer(run: Run[S]) -> str:
    """Return an ended run's answer for another program: also that of the tools that ended it.

    A typed answer is such a result, as JSON text. Without any, it is the latest answer.
    """
    return "\n".join([result.text for result in _ending_results(run)]) or latest_answer(run)


def ended_media(run: Run[S]) -> tuple[MediaPart, ...]:
    """Return an ended run's pictures, sounds and files: its model's, then its last tools'."""
    replies = [said for said in run.record.added if isinstance(said, AssistantMessage)]
    results = [part for result in _ending_results(run) for part in result.content]
    made = [part for reply in replies for part in reply.media]
    return (*made, *[part for part in results if isinstance(part, MediaPart)])


def _ending_results(run: Run[S]) -> tuple[ToolResult, ...]:
    """Return the results of the tools that ended a run."""
    completed = run.ending is not None and run.ending.reason is EndReason.COMPLETED
    if not completed or not run.record.steps or said_after_calls(run):
        return ()
    return tuple([one for one in run.record.steps[-1].tool_results if one.status == "ok"])


def said_after_calls(run: Run[S]) -> bool:
    """Whether a person's approved text or an agent's answer follows the last turn's calls."""
    if approved_answer(run) is not None:
        return True
    last = run.record.steps[-1]
    return bool(last.tool_results) and isinstance(last.messages[-1], AssistantMessage)


def approved_answer(run: Run[S]) -> str | None:
    """Return the text that a person approved; None without one, or if a later turn answered."""
    if run.record.approved is None:
        return None
    turn, text = run.record.approved
    steps = run.record.steps
    answered = run.turn.number if run.turn.reply else steps[-1].index if steps else -1
    return text if answered <= turn else None


def answer_at_hand(run: Run[S]) -> str:
    """Return the run's answer, or else the last answer in the conversation that was passed in."""
    if run.record.steps or run.turn.reply or run.record.approved:
        return latest_answer(run)
    answers = (said.text for said in reversed(run.messages) if isinstance(said, AssistantMessage))
    return next(answers, "")


def clear_ending(run: Run[S]) -> Run[S]:
    """Return the run without its ending, if the ending's reason is `COMPLETED`.

    An ending with any other reason stays.
    """
    if run.ending is None or run.ending.reason is not EndReason.COMPLETED:
        return run
    return evolve(run, ending=None)


def reject_answer(run: Run[S], feedback: str, origin: str) -> Run[S]:
    """Return the run without its ending, and with feedback noted for the next turn.

    Args:
        run: the run whose answer is rejected.
        feedback: the text for the model.
        origin: the name of the node that gives the feedback.
    """
    note = UserMessage(feedback, origin=origin)
    turn = evolve(run.turn, notes=(*run.turn.notes, note))
    return ended_by(evolve(run, turn=turn), None)
