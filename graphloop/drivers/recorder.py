"""A run and its journal, which are at one: what happens is journaled first, and stepped then.

Where an append was cut off, nobody knows whether the event was kept. Then the run is torn from its
journal, and whoever goes on with it has to read that again first.

A run is read before it is claimed, so another driver may have taken it further by then. The store
refuses what does not follow; what is then known of the run is how that driver left it.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from ..codec import typed_events
from ..errors import Fenced, IllegalEvent, ProviderError, RunBusy, StoreError, UnknownRun
from ..events import Begun, EffectFailed, Event, Started
from ..graph import Graph
from ..replay import replay_steps
from ..run import Run
from ..step import Step
from .caller import Caller
from .children import journaled
from .foresight import ends, foreseen, is_interrupted, place_of
from .perform import Performer
from .ports import Ports

__all__ = ["Recorder"]

S = TypeVar("S")


class Recorder(Generic[S]):
    """Takes the events of one run.

    `run` is the run as it stands, None before it has started; `unseen` are the steps that were
    taken, or found in the journal, while nobody could be shown them.

    Args:
        graph: the table to run.
        ports: where the journal goes, and what type the user's state is of.
        state: the user's state to begin with.
        caller: who awaits the run at the top.
        performer: knows the exception behind a failure.
    """

    def __init__(
        self,
        graph: Graph[S],
        ports: Ports[S],
        state: S,
        caller: Caller,
        performer: Performer[S],
    ) -> None:
        self.run: Run[S] | None = None
        self.unseen: list[Step[S]] = []
        self._graph = graph
        self._ports = ports
        self._state = state
        self._caller = caller
        self._performer = performer
        self._is_torn = self._ends = False

    @property
    def is_torn(self) -> bool:
        """Whether nobody knows if the last event was kept."""
        return self._is_torn

    @property
    def is_ending(self) -> bool:
        """Whether the run has ended, or does with the event that is being journaled."""
        return self._ends or self.is_over

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self.run is not None and self.run.ended

    @property
    def driven(self) -> Run[S]:
        """The run, which has started.

        Raises:
            IllegalEvent: it has not.
        """
        if self.run is None:
            raise IllegalEvent("a driver starts with Started, or resumes a run")
        return self.run

    async def take(
        self, event: Event, *, going: bool = False
    ) -> tuple[Step[S], CancelledError | ProviderError | None]:
        """Journal an event, then step: the order that makes a run survive its process.

        A failure of a model call that would end the run, and may pass, is not journaled, only what
        it has used. The call stays pending, as after a crash, and a resume performs it again.

        Args:
            event: what happened.
            going: whether the caller is on their way already.

        Returns:
            The step, and what the caller raises then: a cancellation that came meanwhile, or the
            failure that interrupts the run.

        Raises:
            RunBusy: another driver has taken the run further than is known here.
            StoreError: the event was not kept, for another reason.
        """
        place = place_of(self.run, event)
        taken = foreseen(self._graph, self.run, event, self._state)
        if self._ports.kept and not (self._ports.path or isinstance(taken, Exception)):
            failed = self._interruption(event, taken.run)
            if failed is not None and isinstance(event, EffectFailed):
                begun = Begun(event.at, (event.effect,), event.spent)
                taken, cut = await self.take(begun, going=going)
                return taken, cut or failed
        self._is_torn, self._ends = True, ends(taken)
        try:
            cut = await journaled(self._ports.store, place, event, self._caller, going=going)
        except StoreError as error:
            is_new = isinstance(event, Started) and not self._ports.path
            if not (going or is_new or isinstance(error, Fenced)):
                await self.refuse_outrun(place[0], event)
            raise
        self._is_torn = False
        if isinstance(taken, Exception):
            raise taken
        self.run = taken.run
        return taken, cut

    def _interruption(self, event: Event, ended: Run[S]) -> ProviderError | None:
        """Return the failure that interrupts the run in place of ending it."""
        raised = self._performer.exception_behind(ended)
        if not (isinstance(raised, ProviderError) and is_interrupted(self.run, event, ended)):
            return None
        raised.add_note(f"run {ended.id!r} is interrupted, not over: resume it to try again")
        return raised

    async def refuse_outrun(self, run_id: str, refused: Event | None = None) -> None:
        """Refuse to go on with a run that another driver has taken further than is known here.

        Args:
            run_id: the run.
            refused: what the store has not taken, as it says; it may have kept it all the same.

        Raises:
            RunBusy: another driver has; the run is known now as that has left it.
        """
        if self.is_over:
            return
        known = 0 if self.run is None else self.run.seq
        since: Sequence[Event] = ()
        with suppress(StoreError):
            since = (await self._ports.store.load(run_id))[known:]
        if not since or (refused is not None and _is_same(since[0], refused)):
            return
        await self.read_again(run_id)
        raise RunBusy(
            f"run {run_id!r} was taken further by another driver after it was read here, from "
            f"event {known} to {known + len(since)}: resume it from there"
        )

    async def read_again(self, run_id: str) -> None:
        """Take the run to stand as its journal tells it; what is new in it is unseen.

        Raises:
            StoreError: it cannot be read.
        """
        known = 0 if self.run is None else self.run.seq
        try:
            events = await self._ports.store.load(run_id)
        except UnknownRun:
            events = ()
        for taken in replay_steps(self._graph, typed_events(self._ports.state_type, events)):
            if taken.run.seq > known:
                self.unseen.append(taken)
            self.run = taken.run
        self._is_torn = self._ends = False


def _is_same(kept: Event, refused: Event) -> bool:
    """Whether an event that is in the journal is what a store has said that it did not take."""
    return type(kept) is type(refused) and kept.at == refused.at
