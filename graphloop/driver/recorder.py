"""Recorder: a run and its journal, which agree: the run stands as its journal says.

An event is stepped and held; `keep` journals all that are held in one append. The driver keeps them
before anything acts on them, waits, or is told of them. So a crash loses only what a crash a moment
earlier would have lost (docs/decisions/2026-11-23-two-commits-a-turn.md).

Where an append was cut off, the driver does not know whether the event was kept. Then the run is
torn from its journal, and a driver that goes on with it has to read that again first.

A run is read before it is claimed, so another driver may have taken it further by then. The store
refuses what does not follow; the run then stands as that driver left it.
"""

from __future__ import annotations

import asyncio
from asyncio import CancelledError
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from types import TracebackType
from typing import Any, Final, Generic, TypeVar, cast

from ..effects import CallModel
from ..errors import Fenced, IllegalEvent, ProviderError, RunBusy, StoreError, UnknownRun
from ..events import EffectFailed, EffectsStarted, Event, Started
from ..graph import NodeGraph
from ..replay import replay_steps
from ..run import EndReason, Run
from ..step import Step, begin, step
from ..stores import Ask, Leases, MemoryStore, ReleaseStatus, Store, typed_events
from .cancellation import GRACE_S, INSIDE, CancelScope, cancelled_inside
from .models import Models
from .ports import Ports

__all__ = ["Recorder", "journaled"]

S = TypeVar("S")

RELEASED_AS: Final[Mapping[EndReason, ReleaseStatus]] = {
    EndReason.ABORTED: "cancelled",
    EndReason.ERROR: "failed",
    EndReason.TIMEOUT: "failed",
}


class Recorder(Generic[S]):
    """Takes the events of one run.

    `run` is the run as its journal says, None before it has started; `held` are the steps since
    then, which are not journaled yet. `unseen` are the steps that were journaled, or found in the
    journal, and that no caller has seen yet. After a cut-off append the run `is_torn` from its
    journal, and nothing is held.

    As a context it is the run's lease, where the store has leases: this is the run's only driver.
    It is no generator: an event loop that ends closes all of them side by side, and a run must not
    be released before its driver has journaled what it keeps.

    Args:
        graph: the table to run.
        ports: where the journal goes, and what type the user's state is of.
        state: the user's state to begin with.
        scope: tells whether the caller has left.
        models: their calls whose event is not in the journal yet, and who words a failure.
        asks: returns the open questions of a run that is released.
    """

    def __init__(
        self,
        graph: NodeGraph[S],
        ports: Ports[S],
        state: S,
        scope: CancelScope,
        models: Models[S],
        *,
        asks: Callable[[], Sequence[Ask]] = tuple,
    ) -> None:
        self.run: Run[S] | None = None
        self.latest: Run[S] | None = None
        self.run_id = ""
        self.held: list[Step[S]] = []
        self.unseen: list[Step[S]] = []
        self.is_torn = False
        self._graph = graph
        self._ports = ports
        self._state = state
        self._scope = scope
        self._models = models
        self._asks = asks
        # `isinstance` of a protocol looks at each of its methods, in every run.
        self._leases = cast("Leases", ports.store) if _has_leases(type(ports.store)) else None
        self._ends = False

    @property
    def is_ending(self) -> bool:
        """Whether the run has ended, or does with the last event that is held or on its way."""
        return self._ends or (self.latest is not None and self.latest.ended)

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self.run is not None and self.run.ended

    @property
    def latest_started(self) -> Run[S]:
        """The run after all events that are held, which has started.

        Raises:
            IllegalEvent: it has not.
        """
        run = self.latest
        if run is None:
            raise IllegalEvent("a driver starts with Started, or resumes a run")
        return run

    async def __aenter__(self) -> None:
        """Become the only driver of the run `run_id`.

        Raises:
            RunBusy: the run has a live driver already; nothing has happened.
            StoreError: the store could not note the lease.
        """
        if self.held:
            self._drop()  # An error has broken off what came before.
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
        """Release the run as it stands now.

        Raises:
            Fenced: another driver has taken the run over meanwhile, and nothing else went wrong.
        """
        if self._leases is None:
            return
        run = self.run
        status: ReleaseStatus | None = None if run is None else "parked"
        asks: Sequence[Ask] = ()
        if run is not None and run.ending is not None and run.node == "END":
            status = RELEASED_AS.get(run.ending.reason, "done")
        else:
            asks = self._asks()
        try:
            await self._leases.release(self.run_id, status, asks)
        except CancelledError as other:
            raise self._lease_cancelled(other) from other
        except Fenced:
            # The error under way says more; if it is `Fenced` itself, that may be a child run.
            if error is None:
                raise

    def _lease_cancelled(self, error: CancelledError) -> StoreError:
        """Return the failure of a claim or release that was cancelled, though not from here."""
        return StoreError(f"the lease of run {self.run_id!r} was {cancelled_inside(error)}")

    async def take(self, event: Event) -> tuple[Step[S], ProviderError | None]:
        """Step an event, and hold it until `keep`.

        A failure of a model call that would end the run, and may pass, is not journaled, only what
        it has used. The call stays pending, as after a crash, and a resume performs it again.

        Args:
            event: what happened.

        Returns:
            The step, and the failure that interrupts the run, which the driver raises once the step
            is kept.

        Raises:
            Exception: the kernel or a node refuses the event, which is journaled all the same.
        """
        run = self.latest or (None if isinstance(event, Started) else self.latest_started)
        try:
            if run is None:
                assert isinstance(event, Started), "any other needs a run"
                taken = begin(self._graph, event, self._state)
            else:
                taken = step(self._graph, run, event)
        except Exception:
            await self.keep(refused=(event,))
            raise
        failed = self._interruption(event, taken) if isinstance(event, EffectFailed) else None
        if failed is not None:
            assert isinstance(event, EffectFailed), "nothing else interrupts"
            started = EffectsStarted(event.at, (event.effect,), event.spent)
            taken = step(self._graph, self.latest_started, started)
        self.held.append(taken)
        self.latest = taken.run
        return taken, failed

    async def keep(self, *, refused: Sequence[Event] = (), leaving: bool = False) -> None:
        """Journal the events that are held: all of them, or none.

        From then on their steps may be seen, and their effects may start. Where it fails, nothing
        is held any more.

        Args:
            refused: events that follow them, and that no node takes.
            leaving: whether the caller is leaving already.

        Raises:
            CancelledError: it came meanwhile; the run says whether the events were kept.
            RunBusy: another driver has taken the run further than is known here.
            StoreError: the events were not kept, for another reason.
        """
        held, run, store, place = self.held, self.run, self._ports.store, self.run_id
        if not (held or refused):
            return
        # The driver hears nothing more once the run's last event is on its way.
        self._ends = bool(refused) or held[-1].run.node == "END"
        events = [*[step.event for step in held], *refused]
        self.is_torn, seq, cut = True, 1 if run is None else run.seq + 1, None
        try:
            if type(store) is MemoryStore:
                store.keep(place, seq, *events)
            else:
                cut = await journaled(store, (place, seq), events, self._scope, leaving=leaving)
        except BaseException as error:
            self._drop()
            is_new = run is None and not self._ports.path
            unclear = isinstance(error, StoreError) and not isinstance(error, Fenced)
            if unclear and not (leaving or is_new):
                await self.refuse_outrun(events[0])
            raise
        self.is_torn, self.run, self.held = False, self.latest, []
        self.unseen += held
        if self._models.calls:
            self._models.are_journaled(events)
        if cut is not None:
            raise cut

    def set_run(self, run: Run[S]) -> None:
        """Take the run to stand like this, as its journal says."""
        self.run = self.latest = run

    def _drop(self) -> None:
        """Forget the events that are held."""
        self.held.clear()
        self.latest = self.run

    def _interruption(self, event: EffectFailed, taken: Step[S]) -> ProviderError | None:
        """Return the failure of a model call that interrupts the run in place of ending it.

        Once the budget is spent, no model is asked again: the failure stands.
        """
        if not self._ports.kept or self._ports.path or not event.failure.retryable:
            return None
        ended = taken.run
        raised = self._models.performer.exception_behind(ended)
        asked = isinstance(self.latest_started.pending.get(event.effect), CallModel)
        if not (isinstance(raised, ProviderError) and asked and _is_failed(ended)):
            return None
        if ended.setup.budget.tripped(ended.spent):
            return None
        raised.add_note(f"run {ended.id!r} is interrupted, not over: resume it to try again")
        return raised

    async def refuse_outrun(self, refused: Event | None = None) -> None:
        """Refuse to go on with a run that another driver has taken further than is known here.

        Args:
            refused: the event that the store says it has not taken; it may have kept it.

        Raises:
            RunBusy: another driver has; the run stands now as that driver has left it.
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
        """Take the run to stand as its journal says; what is new in it is unseen.

        Raises:
            StoreError: it cannot be read.
        """
        known = 0 if self.run is None else self.run.seq
        try:
            events = await self._ports.store.load(self.run_id)
        except UnknownRun:
            events = ()
        for taken in replay_steps(self._graph, typed_events(self._ports.state_type, events)):
            if taken.run.seq > known:
                self.unseen.append(taken)
            self.set_run(taken.run)
        self.is_torn = self._ends = False


@lru_cache(maxsize=64)
def _has_leases(kind: type[Store]) -> bool:
    return issubclass(kind, Leases)


async def journaled(
    store: Store,
    place: tuple[str, int],
    events: Sequence[Event],
    scope: CancelScope,
    *,
    leaving: bool = False,
) -> CancelledError | None:
    """Journal events, also if this task is cancelled meanwhile.

    An abort cancels a child wherever it is, and then journals that: journal and run must agree by
    then. A caller that goes away does not want to wait for ever, be it for the run at the top or
    for a child. After a while, or if it cancels again, the events may have been kept or not.

    Args:
        store: where the journal goes.
        place: the run, and the number of the first event.
        events: the events, of which the store keeps all or none.
        scope: tells whether the caller has left.
        leaving: whether the caller is leaving already.

    Returns:
        The cancellation that came meanwhile, to be raised once the run stands after the events.

    Raises:
        CancelledError: it came, and the events were not kept.
        StoreError: the events were not kept.
    """
    cut: CancelledError | None = None
    task = asyncio.ensure_future(store.append(*place, *events))
    while not task.done():
        try:
            await asyncio.wait((task,), timeout=GRACE_S if leaving else None)
        except CancelledError as error:
            given_up, leaving = leaving, leaving or scope.is_left
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
            "its driver waits no longer"
        )
    if task.cancelled():
        raise StoreError(f"event {place[1]} of run {place[0]!r} may not have been kept: {INSIDE}")
    task.result()
    return cut


def _is_failed(run: Run[Any]) -> bool:
    return run.ended and run.ending is not None and run.ending.reason is EndReason.ERROR


def _is_same(kept: Event, refused: Event) -> bool:
    """Whether an event of the journal is the one that a store says it did not take."""
    return type(kept) is type(refused) and kept.at == refused.at
