"""Questions: the calls for which a run waits, because a person or the caller answers them.

Owns `Pending`, which shows such a call, and the check of arguments that a person has edited.
Refuses an edit that does not fit the call's parameters. Answers themselves belong to `policy`.
Start with `pending.py`.
"""

from .pending import (
    Pending,
    ask_key,
    asked_by_tool,
    bad_answer,
    bad_edit,
    bad_yes,
    capability_of,
    needed_answer,
    pending_of,
    question_in,
    question_of,
    unfit,
    with_valid_edit,
    with_valid_token,
)

__all__ = [
    "Pending",
    "ask_key",
    "asked_by_tool",
    "bad_answer",
    "bad_edit",
    "bad_yes",
    "capability_of",
    "needed_answer",
    "pending_of",
    "question_in",
    "question_of",
    "unfit",
    "with_valid_edit",
    "with_valid_token",
]
