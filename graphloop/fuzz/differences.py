"""Differences: where two tellings of one run part: some node decides by more than its run.

A journal is replayed to resume a run, so whatever a node decides has to follow from the run and the
event alone. What it reads elsewhere (a clock, a die, a global, a file) it has to ask for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import Final, final

from ..node_protocol import Leave, Wait
from ..outcomes import outcome_name
from .watching import Deed

__all__ = ["Difference", "between_runs", "within_run"]

SHORT: Final = 100


@final
@dataclass(frozen=True, slots=True)
class Difference:
    """The first decision that is not the same: after which event, whose, and both of it."""

    event: int
    node: str
    first: str
    second: str

    def __str__(self) -> str:
        return (
            f"at event {self.event} node {self.node!r} {self.first}; "
            f"asked the same again, it {self.second}"
        )


def between_runs(first: Sequence[Deed], second: Sequence[Deed]) -> Difference | None:
    """Return where two runs part that were made by the same choices."""
    return next(
        (
            _difference(one, other)
            for one, other in zip_longest(first, second)
            if one is None or other is None or not _same(one, other)
        ),
        None,
    )


def within_run(
    lived: Sequence[Deed], told: Sequence[Deed], crashes: Collection[int]
) -> Difference | None:
    """Return where a run parts from the replay of its own journal.

    Args:
        lived: what its nodes decided; after a crash, all of it again.
        told: what they decided in the replay.
        crashes: the events after which the process died, before the event was taken.
    """
    replayed = {event: list(group) for event, group in groupby(told, lambda one: one.event)}
    for event, group in groupby(lived, lambda one: one.event):
        expected = replayed.get(event, [])
        if event in crashes:
            # The process came to life again, and took everything up from the start.
            again = [one for one in told if one.event <= event]
            expected = [*expected, *again] if event == 1 else again
        found = between_runs(list(group), expected)
        if found is not None:
            return found
    return None


def _same(one: Deed, other: Deed) -> bool:
    first, second = one.decision, other.decision
    if isinstance(first, Exception) or isinstance(second, Exception):
        return (one.node, type(first), str(first)) == (other.node, type(second), str(second))
    return (one.node, first) == (other.node, second)


def _difference(one: Deed | None, other: Deed | None) -> Difference:
    known = one or other
    assert known is not None, "there is one where the other lacks"
    if one is not None and other is not None and one.node != other.node:
        # The table leads from equal outcomes to equal nodes: a run was begun or taken up otherwise.
        return Difference(one.event, one.node, _said(one), f"was {other.node!r}: {_said(other)}")
    first, second = _said(one), _said(other)
    if first == second:
        second = f"{second} and left another run behind"
    event = min(each.event for each in (one, other) if each is not None)
    return Difference(event, known.node, first, second)


def _said(deed: Deed | None) -> str:
    match decision := None if deed is None else deed.decision:
        case None:
            return "was not asked"
        case Leave(outcome=outcome):
            return f"left by {outcome_name(type(outcome))!r}"
        case Wait(effects=effects):
            wishes = ", ".join(type(one).__name__ for one in effects) or "nothing more"
            return f"wished for {wishes}"
        case Exception():
            found = f"raised {type(decision).__name__}: {decision}"
            return found if len(found) <= SHORT else f"{found[: SHORT - 1]}…"
        case _:
            return f"answered {type(decision).__name__}"
