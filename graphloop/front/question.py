"""Question: what a new run begins with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from .answers import Answers
from .inputs import MessageInput

__all__ = ["Question"]


@final
@dataclass(frozen=True)
class Question:
    """What a run begins with: a conversation, and answers to the calls that it ends in.

    Args:
        prompt: the question, or
        messages: the conversation so far.
        answers: who approves the calls that the conversation ends in, and what client tools
            returned; None for a conversation that waits for nothing.
        run_id: the run's id in the store; made up if not given.
        attended: whether the caller iterates the run.
    """

    prompt: str | None = None
    messages: Sequence[MessageInput] | None = None
    answers: Answers | None = None
    run_id: str | None = None
    attended: bool = False
