"""GL3: every call is answered exactly once.

Calls that are asked for have to reach an `append` before the next reply takes their place and
before the run ends; and what has its result, or was cut, must not come to a node that runs tools.
Calls are told apart by the number of their turn, so a model has to be asked in a turn of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from .calls import OWED, CallWalk, Place
from .ground import END
from .report import Finding

__all__ = ["misanswered"]

S = TypeVar("S")


def misanswered(walk: CallWalk[S]) -> Iterator[Finding]:
    """Yield every place where calls are lost, run again, or run though they were cut."""
    told: set[tuple[str, str]] = set()
    for place in walk.found:
        wrong = _wrong(walk, place)
        if wrong is None:
            continue
        walked = walk.trail(place)
        last = walked[-1] if walked else None
        what, message, fix = wrong
        # At END it is the line into it that is wrong, and there may be several.
        ends = place.node == END and last is not None
        node = last.source if ends and last is not None else place.node
        if (node, what) in told:
            continue
        told.add((node, what))
        yield walk.ground.finding(
            "GL3",
            message,
            fix,
            node=node,
            walked=walked,
            outcome=last.word if ends and last is not None else "",
            place=f"{node!r} -{last.word}-> END" if ends and last is not None else "",
        )


def _wrong(walk: CallWalk[S], place: Place) -> tuple[str, str, str] | None:
    """Return what is wrong at a place: what it is, in words, and the fix."""
    node, duty = place.node, place.duty
    if duty in OWED and (node == END or walk.loses(node)):
        if duty == "ran":
            return (
                "lost",
                "the results of calls that have run never reach the history.",
                "lead this way through an Append first: it adds the results.",
            )
        return (
            "unanswered",
            "calls that the model asked for are never answered on this way.",
            "lead this way through an Append first: it answers what has not run, with the reason.",
        )
    if not place.in_turn and walk.needs_turn(node):
        return (
            "turnless",
            "a model is asked though no turn is open: its reply would not be recorded, or its "
            "calls would be taken for those of the turn before.",
            "lead this way through a PrepareStep, which opens the next turn.",
        )
    if duty == "ran" and walk.runs_tools(node):
        return (
            "twice",
            "calls that have run, and have their results, come to run again.",
            "lead `Done` to an Append before anything runs again.",
        )
    if duty == "cut" and walk.runs_tools(node):
        return (
            "cut",
            "calls of a reply that was cut or refused come to run.",
            "lead `Truncated`, `Refused` and `ContextFull` to an Extend, a Compact or an Append.",
        )
    return None
