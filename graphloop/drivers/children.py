"""Child runs, as their parent's driver sees them: how one is taken up, and how one ended."""

from __future__ import annotations

import asyncio
from asyncio import CancelledError
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from ..events import ChildEnded, Event
from ..graph import Graph
from ..providers.base import Delta
from ..run import EndReason, Run, StepResult
from ..step import Step
from .ports import Ports

__all__ = ["Nested", "Resumption", "child_ended", "journaled"]

S = TypeVar("S")

WELL: Final = frozenset(
    {
        EndReason.COMPLETED,
        EndReason.MAX_STEPS,
        EndReason.STOP_CONDITION,
        EndReason.BUDGET,
        EndReason.LENGTH,
    }
)
"""Ends after which what the child has said last is an answer, if it has said anything."""


class Nested(Struct, frozen=True):
    """Something seen in a child run: `key` is the child's key in its parent.

    `seen` is a step, a delta, or something seen in a child of the child.
    """

    key: str
    agent: str
    graph: Graph[Any]
    seen: Step[Any] | Delta | Nested


@dataclass(frozen=True)
class Resumption(Generic[S]):
    """A run to take up: where it stands, the answers that came for it, and its own children."""

    run: Run[S]
    answers: tuple[Event, ...] = ()
    children: Mapping[str, Resumption[Any]] = field(default_factory=dict[str, "Resumption[Any]"])


def child_ended(at: float, effect: int, run: Run[Any]) -> ChildEnded:
    """Return how a child run ended, for its parent: its last words, or why there are none."""
    assert run.ending is not None, "a run that is over has an ending"
    reason, failure = run.ending.reason, run.ending.failure
    said = _answer(run.steps[-1]) if reason is EndReason.COMPLETED and run.steps else ""
    said = said or next((one.text for one in reversed(run.steps) if one.text.strip()), "")
    if reason in WELL and said:
        return ChildEnded(at, effect, said, "ok", run.spent, reason)
    if failure is not None:
        content = f"The agent failed: {failure.error}: {failure.message}"
    else:
        content = f"The agent gave no answer; it ended by {reason.value}."
        content += f" Its last words: {said}" if said else ""
    return ChildEnded(at, effect, content, "error", run.spent, reason)


def _answer(last: StepResult) -> str:
    """Return what the tools answered that ended a run; nothing if the model itself did."""
    return "\n".join([one.text for one in last.tool_results if one.status == "ok"])


async def journaled(
    ports: Ports[Any], run_id: str, seq: int, event: Event
) -> CancelledError | None:
    """Journal an event; of a child run, whoever cancels meanwhile.

    An abort from above cancels a child wherever it is, and then journals that it was: journal and
    run must be at one by then. Nobody can abort the run at the top in the middle of its journaling.

    Returns:
        The cancellation that came meanwhile, to be raised once the event has been stepped.

    Raises:
        CancelledError: it came, and the event was not kept; or it cancelled the run at the top.
        StoreError: the event was not kept.
    """
    appending = ports.store.append(run_id, seq, event)
    if not ports.path:
        await appending
        return None
    cut: CancelledError | None = None
    task = asyncio.ensure_future(appending)
    while not task.done():
        try:
            await asyncio.wait((task,))
        except CancelledError as error:
            cut = error
    if cut is not None and (task.cancelled() or task.exception() is not None):
        raise cut
    task.result()
    return cut
