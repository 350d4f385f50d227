"""Telling: how a node's own words come into the conversation, and never where they break it.

A message between a turn's calls and their results would make a history that no wire takes. While a
turn is in hand its words wait, to be appended after the reply and the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from .asks import Note
from .repair import open_calls
from .run import Run, evolve, with_messages

__all__ = ["told", "unanswered"]

S = TypeVar("S")


def unanswered(run: Run[S]) -> str:
    """Return why the conversation cannot go on as it stands; empty if it can."""
    calls = open_calls(run.messages)
    if not calls:
        return ""
    names = ", ".join(repr(call.name) for _, call in calls)
    return (
        f"the conversation ends in calls without results ({names}), and no message may stand "
        "between calls and their results. Lead the run through a Gate, an Execute and an Append, "
        "which answer them, before this node"
    )


def told(run: Run[S], notes: Sequence[Note]) -> Run[S]:
    """Return the run with these notes in its conversation, or waiting for the turn in hand.

    `unanswered` has been asked before.
    """
    if not notes:
        return run
    if run.turn.reply is not None:
        return evolve(run, turn=evolve(run.turn, notes=(*run.turn.notes, *notes)))
    return with_messages(run, *notes)
