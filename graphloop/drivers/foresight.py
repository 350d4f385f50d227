"""What a driver knows before an event is journaled: where it will lead.

Stepping is pure, so one may look ahead: once a run's last event is on its way, nothing more that
somebody says can be heard.
"""

from __future__ import annotations

from typing import TypeVar

from ..effects import CallModel
from ..errors import IllegalEvent
from ..events import EffectFailed, Event, Started
from ..graph import Graph
from ..run import EndReason, Run
from ..step import Step, begin, step

__all__ = ["ends", "foreseen", "is_interrupted", "place_of"]

S = TypeVar("S")


def place_of(run: Run[S] | None, event: Event) -> tuple[str, int]:
    """Return the run and the number that an event will have in its journal.

    Raises:
        IllegalEvent: there is no run yet, and the event does not start one.
    """
    if isinstance(event, Started):
        return event.run_id, 1
    if run is None:
        raise IllegalEvent("a driver starts with Started, or resumes a run")
    return run.id, run.seq + 1


def foreseen(graph: Graph[S], run: Run[S] | None, event: Event, state: S) -> Step[S] | Exception:
    """Return the step that an event will be, or what it will raise once it is journaled.

    Args:
        graph: the table.
        run: the run so far; None before it has started.
        event: what is about to be journaled.
        state: the user's state to begin with.
    """
    try:
        if isinstance(event, Started):
            return begin(graph, event, state)
        assert run is not None, "a run starts with Started"
        return step(graph, run, event)
    except Exception as error:  # noqa: BLE001 - raised again by the driver
        return error


def ends(taken: Step[S] | Exception) -> bool:
    """Whether nothing can be heard after this step."""
    return isinstance(taken, Exception) or taken.run.ended


def is_interrupted(run: Run[S] | None, event: Event, ended: Run[S]) -> bool:
    """Whether a run ends in an error by a failed model call that may succeed later.

    Once the budget is spent, nothing is asked again: the failure stands.
    """
    if run is None or not isinstance(event, EffectFailed) or not event.failure.retryable:
        return False
    if ended.setup.budget.tripped(ended.spent):
        return False
    failed = ended.ended and ended.ending is not None and ended.ending.reason is EndReason.ERROR
    return failed and isinstance(run.pending.get(event.effect), CallModel)
