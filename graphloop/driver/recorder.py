"""Recorder: journals the events of one run, and keeps the run's current state.

An unsaved event has been applied to the run, but is not journaled yet. `keep` journals all unsaved
events in one append, before an effect starts, the driver waits, or a step is yielded. So a crash
loses only events that a resumed run produces again without harm
(docs/decisions/2026-11-23-two-commits-a-turn.md).

A run is torn if its last append failed or was cancelled, so that the store may or may not have kept
the events. The driver of a torn run reads the journal again before it goes on.

A run is read before its lease is claimed, so another driver may journal more events in between. The
store then rejects the next append, and the recorder reads the other driver's events.
"""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from math import inf
from operator import attrgetter
from types import TracebackType
from typing import Any, Final, Generic, TypeVar, cast

from msgspec import Struct

from ..effects import CallModel
from ..errors import Fenced, IllegalEvent, ProviderError, RunBusy, StoreError, UnknownRun
from ..events import (
    CallsChecked,
    Decided,
    EffectFailed,
    EffectsStarted,
    Event,
    ModelReplied,
    Queued,
    Resumed,
    Started,
)
from ..graph import NodeGraph
from ..replay import replay_steps
from ..run import Ending, EndReason, Run
from ..step import Step, begin, step
from ..stores import (
    RELEASED_AS,
    Ask,
    Leases,
    MemoryStore,
    ReleaseStatus,
    Store,
    typed_events,
    why_ended,
)
from ..values import evolve
from .cancellation import CancelScope, cancelled_inside, journaled
from .models import Models
from .ports import Ports

__all__ = ["HOLDABLE", "Recorder", "first_events", "not_before"]

S = TypeVar("S")
LOG: Final = logging.getLogger("graphloop")
EVENT_OF: Final = attrgetter("event")
COMPLETED: Final = Ending(EndReason.COMPLETED)

HOLDABLE: Final = frozenset({ModelReplied, CallsChecked})
"""Event types that may stay unsaved, because a resumed run can produce such events again."""


class Recorder(Struct, Generic[S], eq=False):
    """Applies and journals the events of one run; as a context manager, holds the run's lease.

    It is not an async generator: a closing event loop closes all generators at once. That could
    release the lease before the driver has saved its events.

    Attributes:
        run: the run after all journaled events; None before the first event.
        latest: the run after the unsaved events too; None before the first event.
        run_id: the id of the run, which is also the id of its journal.
        asides: messages and aborts from the caller, which are applied before other events.
        heard: the first events of a start or resume, and answers that wait for the `asides`.
        unsaved: the steps whose events are not journaled yet.
        unseen: the steps whose events are journaled, but that the driver has not yielded yet.
        is_due: whether to save the unsaved steps before the next event.
        is_torn: whether the last append failed, so that its events may or may not be journaled.
        is_parked: whether the run waits for answers from outside, which its release records.
        seen: how many answers were read from the run's mailbox.

    Args:
        graph: the graph that the run executes.
        ports: the store of the journal, and the type of the user's state.
        state: the user's initial state.
        scope: the driver's cancel scope, which tells whether the caller has left.
        models: the model calls whose answers are not journaled yet.
        asks: returns the pending questions of a run, which the store records on release.
    """

    _graph: NodeGraph[S]
    _ports: Ports[S]
    _state: S
    _scope: CancelScope
    _models: Models[S]
    _asks: Callable[[Run[S]], Sequence[Ask]]
    run: Run[S] | None = None
    latest: Run[S] | None = None
    run_id: str = ""
    asides: list[Event] = []
    heard: list[Event] = []
    unsaved: list[Step[S]] = []
    unseen: list[Step[S]] = []
    is_due: bool = False
    is_torn: bool = False
    is_parked: bool = False
    seen: int = 0
    _leases: Leases | None = None
    _memory: MemoryStore | None = None
    _ends: bool = False

    def __post_init__(self) -> None:
        """Look at the abilities of the store; cached by class, since `isinstance` is slow here."""
        store = self._ports.store
        self._leases = cast("Leases", store) if _has_leases(type(store)) else None
        self._memory = store if isinstance(store, MemoryStore) else None

    @property
    def is_ending(self) -> bool:
        """Whether the run has ended, or ends with an event that is not journaled yet."""
        return self._ends or (self.latest is not None and self.latest.ended)

    @property
    def is_over(self) -> bool:
        """Whether the journal has the run's end."""
        return self.run is not None and self.run.ended

    @property
    def latest_started(self) -> Run[S]:
        """The run after all unsaved events (`latest`), if the run has started.

        Raises:
            IllegalEvent: the run has not started.
        """
        run = self.latest
        if run is None:
            raise IllegalEvent("a driver starts with Started, or resumes a run")
        return run

    def pop(self, run: Run[S]) -> Event:
        """Remove and return the next known event, dated no earlier than the run's last event."""
        # Messages that were queued before a resume are journaled after its `Resumed`.
        resumes = self.heard and isinstance(self.heard[0], Resumed)
        event = (self.heard if resumes else self.asides or self.heard).pop(0)
        return event if event.at >= run.at else not_before(run, event)

    async def __aenter__(self) -> None:
        """Claim the lease of the run `run_id`, if the store has leases.

        Raises:
            RunBusy: another live driver has the lease; the run is unchanged.
            StoreError: the store could not record the lease.
        """
        self._models.due = inf
        if self.unsaved:
            # An error ended the previous drive before it journaled these steps.
            self.unsaved, self.latest = [], self.run
        if self._leases is not None:
            try:
                await self._leases.claim(self.run_id)
            except CancelledError as error:
                raise self._lease_cancelled(error) from error

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release the lease, and record the run's status and pending questions in the store.

        Raises:
            Fenced: another driver has claimed the lease since, and no other error is being raised.
        """
        if self._leases is None:
            return
        run = self.run
        status: ReleaseStatus | None = None
        asks, ending = cast("Sequence[Ask]", ()), ""
        if run is not None and run.ending is not None and run.node == "END":
            status = RELEASED_AS.get(run.ending.reason, "done")
            ending = "" if run.ending == COMPLETED else why_ended(run.ending)
        elif run is not None:
            status = "parked" if self.is_parked else "interrupted"
            asks = self._asks(run)
        wake_s = self._models.wake_s if status == "parked" else None
        try:
            await self._leases.release(
                self.run_id, status, asks, seen=self.seen, wake_s=wake_s, ending=ending
            )
        except CancelledError as other:
            raise self._lease_cancelled(other) from other
        except Fenced:
            # The error that is being raised says more, also if it is a child run's `Fenced`.
            if error is None:
                raise

    def _lease_cancelled(self, error: CancelledError) -> StoreError:
        """Return the `StoreError` for a claim or release that code inside the store cancelled."""
        return StoreError(f"the lease of run {self.run_id!r} was {cancelled_inside(error)}")

    def take(self, event: Event) -> tuple[Step[S], ProviderError | None]:
        """Step the run with an event; the step stays unsaved until `keep` journals its event.

        A store in memory journals the event at once: that costs nothing, and needs no `await`.
        A retryable failure of a model call interrupts a run that can be resumed, instead of ending
        it. Only the usage of that call is journaled; a resume performs the call again.

        Args:
            event: the event to apply.

        Returns:
            The step, and the failure that interrupts the run or None. The driver raises the failure
            after it has journaled the step.

        Raises:
            Exception: the kernel or a node raised on the event; then the step is not taken.
        """
        run, failed = self.latest, None
        if run is None and isinstance(event, Started):
            taken = begin(self._graph, event, self._state)
        else:
            taken = step(self._graph, run or self.latest_started, event)
        if type(event) is EffectFailed:
            failed = self._interruption(event, taken)
            if failed is not None:
                started = EffectsStarted(event.at, (event.effect,), event.spent)
                taken = step(self._graph, self.latest_started, started)
            elif not taken.run.ended:
                said = "run %s: an effect failed, and the run goes on at %s: %s"
                LOG.warning(said, self.run_id, taken.run.node, event.failure.error)
        self.latest = run = taken.run
        if self._memory is not None and self._memory.keep_next(self.run_id, run.seq, taken.event):
            self._are_kept([taken], [taken.event])
        else:
            self.unsaved.append(taken)
            self.is_due = type(event) not in HOLDABLE or run.turn.abandoned or run.node == "END"
        return taken, failed

    async def keep(self, *, refused: Sequence[Event] = (), leaving: bool = False) -> None:
        """Journal all unsaved events in one append, of which the store keeps all or none.

        Afterwards the driver may yield the steps and start their effects. If the append fails, the
        unsaved steps are dropped.

        Args:
            refused: events on which the kernel or a node raised, to append after the unsaved ones.
            leaving: whether the caller is leaving the run, so that the append gets a time limit.

        Raises:
            CancelledError: this task was cancelled; `run` shows whether the events were journaled.
            RunBusy: another driver has journaled events that this driver has not read.
            StoreError: the append failed for another reason.
        """
        unsaved, ports, run = self.unsaved, self._ports, self.run
        self.is_due = False
        if not (unsaved or refused):
            return
        events: list[Event] = [*map(EVENT_OF, unsaved), *refused]
        place = self.run_id, 1 if run is None else run.seq + 1
        self.is_torn, self._ends = True, self._ends or bool(refused)
        try:
            cut = await journaled(ports.store, place, events, self._scope, leaving=leaving)
        except BaseException as error:
            self._ends = self._ends or unsaved[-1].run.ended
            self.unsaved, self.latest = [], self.run
            is_new = run is None and not ports.path
            unclear = isinstance(error, StoreError) and not isinstance(error, Fenced)
            if unclear and not (leaving or is_new):
                await self.refuse_outrun(events[0])
            raise
        self.is_torn, self.unsaved = False, []
        self._are_kept(unsaved, events)
        if cut is not None:
            raise cut

    def _are_kept(self, steps: Sequence[Step[S]], events: Sequence[Event]) -> None:
        """Note that the journal has these steps and events."""
        self.run, ports = self.latest, self._ports
        if ports.shows_steps:
            self.unseen.extend(steps)
        if ports.observers is not None:
            ports.observers.see(steps, self._graph, ports.path, ports.wrong)
        if self._models.calls:
            self._models.are_journaled(events)

    def set_run(self, run: Run[S]) -> None:
        """Set the run to this state, which was read from its journal."""
        self.run = self.latest = run

    def _interruption(self, event: EffectFailed, taken: Step[S]) -> ProviderError | None:
        """Return a model call's failure if it interrupts the run instead of ending it, else None.

        If the budget is spent, the failure ends the run: a resume could not call the model again.
        """
        if not self._ports.kept or self._ports.path or not event.failure.retryable:
            return None
        ended = taken.run
        raised = self._models.performer.exception_behind(ended)
        asked = isinstance(self.latest_started.pending.get(event.effect), CallModel)
        failed = ended.ended and ended.ending is not None and ended.ending.reason is EndReason.ERROR
        if not (isinstance(raised, ProviderError) and asked and failed):
            return None
        if ended.setup.budget.tripped(ended.spent):
            return None
        raised.add_note(f"run {ended.id!r} is interrupted, not over: resume it to try again")
        return raised

    async def refuse_outrun(self, refused: Event | None = None) -> None:
        """Raise `RunBusy` if another driver has journaled events that this driver has not read.

        Args:
            refused: the first event of a failed append, which the store may have kept nevertheless.

        Raises:
            RunBusy: there are such events; the run is now set to the state after them.
        """
        if self.is_over:
            return
        known = 0 if self.run is None else self.run.seq
        since: Sequence[Event] = ()
        with suppress(StoreError):
            since = (await self._ports.store.load(self.run_id))[known:]
        if not since or (refused is not None and _is_same(since[0], refused)):
            return
        await self.read_again()
        raise RunBusy(
            f"run {self.run_id!r} was taken further by another driver after it was read here, from "
            f"event {known} to {known + len(since)}: resume it from there"
        )

    async def read_again(self) -> None:
        """Set the run to the state in its journal, and add the journal's new steps to `unseen`.

        Raises:
            StoreError: the journal cannot be read.
        """
        known = 0 if self.run is None else self.run.seq
        try:
            events = await self._ports.store.load(self.run_id)
        except UnknownRun:
            events = ()
        for taken in replay_steps(self._graph, typed_events(self._ports.state_type, events)):
            if taken.run.seq > known:
                self.unseen.append(taken)
                if (observers := self._ports.observers) is not None:
                    observers.see((taken,), self._graph, self._ports.path, self._ports.wrong)
            self.set_run(taken.run)
        self.is_torn = self._ends = False


@lru_cache(maxsize=64)
def _has_leases(kind: type[Store]) -> bool:
    return issubclass(kind, Leases)


def _is_same(kept: Event, refused: Event) -> bool:
    """Whether a journaled event has the type and time of an event whose append failed."""
    return type(kept) is type(refused) and kept.at == refused.at


def first_events(first: Iterable[Event], said: Sequence[Event]) -> Iterator[Event]:
    """Merge messages that were queued before a start or resume into its first events.

    `Started` opens a turn, so it carries the messages for that turn (`steering`). An answer may
    open a turn too, so on a resume the messages come before the first answer.
    """
    rest = said
    for event in first:
        if isinstance(event, Started):
            now = [each for each in rest if isinstance(each, Queued) and not each.follow_up]
            rest = [each for each in rest if each not in now]
            yield evolve(event, steering=tuple([each.message for each in now]))
            continue
        yield from rest
        rest = ()
        yield event
    yield from rest


def not_before(run: Run[Any] | None, event: Event) -> Event:
    """Return the event with its time raised to the run's, so that journal times never decrease.

    Answers and messages may be older than the `Resumed` event before them in the journal. A
    decision keeps its original time in `given_at`.
    """
    if run is None or event.at >= run.at:
        return event
    if isinstance(event, Decided) and event.given_at is None:
        return evolve(event, at=run.at, given_at=event.at)
    return evolve(event, at=run.at)
