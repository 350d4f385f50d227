"""GL3: every call is answered exactly once.

Calls that are asked for have to reach an `append` before the next reply takes their place and
before the run ends; and what has its result, or was cut, must not come to a node that runs tools.
Calls are told apart by the number of their turn, so a model has to be asked in a turn of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TypeAlias, TypeVar

from .calls import OWED, CallWalk, Place
from .ground import END, Trail, Way
from .report import Finding, Unknown
from .walker import Barred

__all__ = ["misanswered", "wronged"]

S = TypeVar("S")

_Wrong: TypeAlias = tuple[str, str, str]
"""What is wrong at a place: what it is, in words, and the fix."""


def misanswered(walk: CallWalk[S]) -> Iterator[Finding | Unknown]:
    """Yield every place where calls are lost, run again, or run though they were cut."""
    for node, wrong in wronged(walk):
        found = partial(_misanswered, walk, node, wrong)
        yield walk.ground.told(found, partial(_told, walk, wrong))


def wronged(walk: CallWalk[S]) -> Iterable[tuple[str, _Wrong]]:
    """Return the nodes where something is wrong, and what, the nearest first."""
    found: dict[tuple[str, _Wrong], None] = {}
    for place, come in walk.found.items():
        wrong = _wrong(walk, place)
        if wrong is not None:
            found[_at(place, None if come is None else come[0]), wrong] = None
    return found


def _at(place: Place, last: Way | None) -> str:
    """Return the node that a place is told of: at END the line into it is wrong."""
    return last.source if place.node == END and last is not None else place.node


def _misanswered(walk: CallWalk[S], node: str, wrong: _Wrong, barred: Barred) -> Trail | None:
    return walk.led_to(lambda at, last: _at(at, last) == node and _wrong(walk, at) == wrong, barred)


def _told(walk: CallWalk[S], wrong: _Wrong, walked: Trail) -> Finding:
    last = walked[-1] if walked else None
    node = walk.ground.graph.start if last is None else last.target
    line = last if last is not None and node == END else None
    return walk.ground.finding(
        "GL3",
        wrong[1],
        wrong[2],
        node=node if line is None else line.source,
        walked=walked,
        outcome="" if line is None else line.word,
        place="" if line is None else f"{line.source!r} -{line.word}-> END",
    )


def _wrong(walk: CallWalk[S], place: Place) -> _Wrong | None:
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
