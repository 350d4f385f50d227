"""Child runs, as their parent's driver sees them: how one is taken up, and how one ended."""

from __future__ import annotations

import asyncio
from asyncio import CancelledError
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from ..errors import StoreError
from ..events import ChildEnded, Event
from ..graph import Graph
from ..latest_answer import latest_answer, said_after_calls
from ..providers.base import Live
from ..run import EndReason, Run
from ..spending import Spent
from ..step import Step
from ..stores.base import Store
from ..stores.memory import MemoryStore
from .caller import INSIDE, Caller

__all__ = ["Nested", "Resumption", "child_ended", "child_unwanted", "journaled"]

S = TypeVar("S")

GRACE_S: Final = 2.0
"""How long a caller who goes away waits for a store to keep what it is being told."""

UNWANTED: Final = "Stopped: its answer was not needed any more."

WISHED: Final = frozenset({EndReason.COMPLETED, EndReason.STOP_CONDITION})
"""Ends after which what the child has said in its last turn is its answer, if it said anything.

What it said in a turn before was said before the work was done, and must not pass for a report.
"""


class Nested(Struct, frozen=True):
    """Something seen in a child run: `key` is the child's key in its parent.

    `seen` is a step, a delta, or something seen in a child of the child.
    """

    key: str
    agent: str
    graph: Graph[Any]
    seen: Step[Any] | Live | Nested


@dataclass(frozen=True)
class Resumption(Generic[S]):
    """A run to take up: where it stands, the answers that came for it, and its own children."""

    run: Run[S]
    answers: tuple[Event, ...] = ()
    children: Mapping[str, Resumption[Any]] = field(default_factory=dict[str, "Resumption[Any]"])


def child_ended(at: float, effect: int, run: Run[Any]) -> ChildEnded:
    """Return how a child run ended, for its parent: its answer, or why there is none."""
    assert run.ending is not None, "a run that is over has an ending"
    reason, failure = run.ending.reason, run.ending.failure
    answer = _answer(run, reason) if reason in WISHED else ""
    if answer.strip():
        return ChildEnded(at, effect, answer, "ok", run.spent, reason)
    if failure is not None:
        content = f"The agent failed: {failure.error}: {failure.message}"
    else:
        content = f"The agent gave no answer; it ended by {reason.value}."
        said = next((one.text for one in reversed(run.record.steps) if one.text.strip()), "")
        content += f" Its last words, which are no answer: {said}" if said else ""
    return ChildEnded(at, effect, content, "error", run.spent, reason)


def child_unwanted(at: float, effect: int, spent: Spent) -> ChildEnded:
    """Return how a child run ended that its parent no longer waits for."""
    return ChildEnded(at, effect, UNWANTED, "not_run", spent, EndReason.ABORTED)


def _answer(run: Run[Any], reason: EndReason) -> str:
    """Return what the tools answered that ended a run, or else the run's answer."""
    if reason is not EndReason.COMPLETED or not run.record.steps or said_after_calls(run):
        return latest_answer(run)
    results = [one.text for one in run.record.steps[-1].tool_results if one.status == "ok"]
    return "\n".join(results) or latest_answer(run)


async def journaled(
    store: Store, place: tuple[str, int], event: Event, caller: Caller, *, going: bool = False
) -> CancelledError | None:
    """Journal an event, whoever cancels meanwhile.

    An abort from above cancels a child wherever it is, and then journals that it was: journal and
    run must be at one by then. A caller who goes away does not want to wait for ever, be it for
    the run at the top or for a child: after a while, or if they cancel again, nobody knows whether
    the event was kept.

    Args:
        store: where the journal goes.
        place: the run, and the number of the event.
        event: the event.
        caller: who awaits the run at the top.
        going: whether the caller is on their way already.

    Returns:
        The cancellation that came meanwhile, to be raised once the event has been stepped.

    Raises:
        CancelledError: it came, and the event was not kept.
        StoreError: the event was not kept.
    """
    appending = store.append(*place, event)
    if type(store) is MemoryStore:
        await appending  # It is kept at once.
        return None
    cut: CancelledError | None = None
    task = asyncio.ensure_future(appending)
    while not task.done():
        try:
            await asyncio.wait((task,), timeout=GRACE_S if going else None)
        except CancelledError as error:
            given_up, going = going, going or caller.has_left
            cut = error
        else:
            given_up = not task.done()
        if given_up:
            task.cancel()
            break
    if cut is not None and (not task.done() or task.cancelled() or task.exception() is not None):
        raise cut
    if not task.done():
        raise StoreError(
            f"the store has not kept event {place[1]} of run {place[0]!r} within {GRACE_S} s, and "
            "nobody waits for it any more"
        )
    if task.cancelled():
        raise StoreError(f"event {place[1]} of run {place[0]!r} may not have been kept: {INSIDE}")
    task.result()
    return cut
