"""Rows: what databases keep of runs, in the forms of their columns, and records from it."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

from msgspec.json import Decoder

from .base import Ask, Refusal, RunRecord
from .journals import is_within, parent_of

__all__ = [
    "NAMED_MAX",
    "family_of",
    "reason_in",
    "records_of",
    "refusals_in",
    "within_bounds",
]

ASKS: Final = Decoder(tuple[Ask, ...])
REFUSALS: Final = Decoder(tuple[Refusal, ...])
AFTER_SLASH: Final = chr(ord("/") + 1)
QUESTION: Final = re.compile(r"\.[0-9]+$")
"""The end of the id of a question of a chat, which reads the question before it: "chat.2"."""

NAMED_MAX: Final = 10
"""The maximum number of runs that a survey names of each kind."""


def within_bounds(root: str) -> tuple[str, str, str, str]:
    """Return the ids of `root` and its parent, and the range of the ids of its descendants.

    The ids from the third text up to, but without, the fourth are neighbours in an index.
    """
    return root, root.rpartition("/")[0], f"{root}/", f"{root}{AFTER_SLASH}"


def records_of(
    rows: Collection[tuple[Any, ...]], root: str | None, *, cut: bool = False
) -> tuple[RunRecord, ...]:
    """Return the records of the rows of a database, without the parent of `root`.

    A row has the run's id, graph, status, number of events, two times, questions, target, refusals,
    remaining seconds, revision, queue and ending. If the rows are `cut` out of more, the parents of
    their runs need not be among them.
    """
    known = {row[0].rpartition("/")[0] if cut else row[0] for row in rows}
    found = [row for row in rows if root is None or is_within(row[0], root)]
    return tuple([_record(row, parent_of(row[0], known)) for row in found])


def _record(row: tuple[Any, ...], parent: str) -> RunRecord:
    run_id, graph, status, events, created, updated, asks, target, *rest = row
    refusals, remaining_s, revision, queue, ending = rest
    return RunRecord(
        run_id,
        graph,
        *(status, events, created, updated),
        parent=parent,
        asks=ASKS.decode(asks),
        target=target,
        refusals=refusals_in(refusals),
        remaining_s=remaining_s,
        revision=revision,
        queue=queue,
        ending=ending,
    )


def refusals_in(data: bytes) -> tuple[Refusal, ...]:
    """Return the refusals that a database keeps for a run."""
    return REFUSALS.decode(data)


def reason_in(data: bytes) -> str:
    """Return why a run is blocked, by its last refusal; empty if it is not told."""
    return next((one.reason for one in reversed(refusals_in(data))), "")


def family_of(run_id: str) -> str:
    """Return the id of a run's root; of a question of a chat, the id of the chat."""
    return QUESTION.sub("", run_id.partition("/")[0])
