"""InFlight: starts effects, and returns their deltas, child steps and answers one at a time.

A single effect is awaited in the driver's own task. In a run that a caller or a time limit may
stop, a user's function gets a task at its first await: if the function ignores its cancellation,
the task is left behind. If several effects run, each has a task. After `close`, every task has
ended or is left behind. A child run makes its next step only while the driver waits for items. An
effect that this process cannot finish (a parked child, a pending question) ends without an event.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import aclosing
from math import inf
from time import monotonic, time
from typing import Any, Final, Generic, TypeVar, final
from weakref import WeakSet

from msgspec import Struct
from typing_extensions import TypeIs

from ..effects import CallModel, Effect, StartRun
from ..errors import ToolError
from ..events import Answering, EffectsStarted
from ..providers import Live, is_live
from ..run import Run
from ..tools import FirstSteps, ToolProgress
from .cancellation import (
    CANCEL_AGAIN_S,
    INSIDE,
    LISTENERS,
    CancelScope,
    cancelled_inside,
    end_tasks,
)
from .models import NEEDS_DRIVER, ModelCallInFlight
from .performer import Performed, Performer
from .ports import SHOWN, ChildStep, Item, LeftOpen, Parked, Source, is_shown, is_step

__all__ = ["Arrivals", "InFlight", "ObservedPerformer"]

S = TypeVar("S")

SHARE_S: Final = 0.005
"""Seconds after which a wait yields to other tasks, since sync functions and models never do."""

INBOX_MAX: Final = 256
"""Number of unread items in the inbox at which sources wait for the driver to read them."""

LOOK_S: Final = 0.5
"""Seconds between two looks of a postponed effect whether it is alone, so that the run can park."""

IN_FLIGHT: Final[set[asyncio.Task[Any] | None]] = set()
"""Strong references to the tasks of all runs, since the event loop holds only weak ones.

Without them, the garbage collector could destroy an unread run's tasks before its driver does.
"""

ENDED: Final[WeakSet[asyncio.Task[Any]]] = WeakSet()
"""The tasks that a driver has told to end; all runs share this set."""


def _is_watched(effect: Effect) -> TypeIs[CallModel | StartRun]:
    """Whether an effect produces items before its answer: a model call or a child run."""
    return type(effect) is CallModel or type(effect) is StartRun


@final
class Arrivals:
    """The items that tasks have delivered and the driver has not read; a lean `asyncio.Queue`."""

    __slots__ = ("_wakes", "items")

    def __init__(self) -> None:
        self.items: deque[Item | BaseException] = deque()
        self._wakes: asyncio.Future[None] | None = None

    def put(self, item: Item | BaseException) -> None:
        """Add an item, and wake the driver if it waits."""
        self.items.append(item)
        if self._wakes is not None and not self._wakes.done():
            self._wakes.set_result(None)

    async def arrival(self) -> None:
        """Wait for an item if there is none."""
        if not self.items:
            self._wakes = asyncio.get_running_loop().create_future()
            await self._wakes


class ObservedPerformer(Performer[S], eq=False):
    """Performs each effect inside the contexts of the run's observers."""

    async def perform(self, effect: Performed, run: Run[S]) -> Answering:
        """Perform one effect, as `Performer.perform` does, inside the observers' contexts."""
        observers = self._ports.observers
        assert observers is not None, "the driver has looked"
        with observers.around(effect, run, self._ports.wrong):
            return await super().perform(effect, run)


class InFlight(Struct, Generic[S], eq=False):
    """Starts effects, and returns their items and answers in order of arrival.

    Args:
        performer: performs the effects other than model calls and child runs.
        listen: starts a model call or child run, and returns its items (`Source`).
        scope: the driver's cancel scope, which encloses each wait for effects.
        stoppable: whether a caller or a time limit may stop the run during an effect.
        clock: returns the time in seconds since the epoch, for `EffectsStarted`.
        todo: the effects that start with the next wait.
        source: the only effect in flight, if it is a model call or a child run; else None.
        next_delta: resumes a model call that alone is in flight, and has said something, with None
            (`ModelCallInFlight.items`); None if the caller has said something since.
        shared_at: the monotonic time at which the driver last let other tasks run.
    """

    _performer: Performer[S]
    _listen: Callable[[CallModel | StartRun], Source]
    _scope: CancelScope
    _stoppable: bool = False
    _clock: Callable[[], float] = time
    todo: list[Effect] = []
    source: Source | None = None
    next_delta: Callable[[None], Any] | None = None
    shared_at: float = 0.0
    _tasks: dict[int, asyncio.Task[None]] = {}
    # Most runs never need these three, which take two kilobytes.
    _first: FirstSteps | None = None
    _inbox: Arrivals | None = None
    _wanted: asyncio.Event | None = None
    _closing: bool = False
    _noted: tuple[int, ...] = ()
    _unheard: list[Answering] = []
    _asleep: int = 0

    def hear(self, report: ToolProgress) -> bool:
        """Take the report of a running tool, unless the driver is too far behind."""
        inbox = self._inbox = self._inbox or Arrivals()
        is_room = len(inbox.items) < INBOX_MAX
        if is_room:
            inbox.put(report)
        return is_room

    async def next(self, run: Run[S]) -> Live | ToolProgress | ChildStep | Answering | None:
        """Start the effects in `todo`, and return the first item; None if no item will come.

        The result is also None if the driver has interrupted its own wait.

        A tool may cancel this task for a time limit of its own without a call of `uncancel`
        (`async_timeout` before 4.0.3 does so). Such a cancellation looks like one by the caller,
        and counts as the caller's, as in `asyncio.timeout`.

        Raises:
            CancelledError: the caller was cancelled, even if a tool suppressed the cancellation.
        """
        is_late = monotonic() - self.shared_at > SHARE_S
        if self._tasks and not (is_late or self.todo) and (ready := self._pop_item()) is not None:
            return ready
        heard: Item | None = None
        self._scope.run, self.next_delta = run, None
        try:
            with self._scope:
                if is_late:
                    await asyncio.sleep(0)
                    self.shared_at = monotonic()
                if (effect := self._pop_lone(run)) is not None:
                    heard = await self._performer.perform(effect, run)
                elif self.source is not None:
                    heard = await self._next_of_source()
                elif self.todo or self._scope.is_interrupted or not (heard := self._pop_item()):
                    heard = await self._next_of_tasks(run)
        except LeftOpen:
            return None
        except asyncio.CancelledError as error:
            if self.source is not None:
                raise cancelled_inside(error) from error
            self._unheard += [heard] if isinstance(heard, Answering) else []
            raise
        return None if type(heard) is Parked else heard

    async def more(self, yielded: object = NEEDS_DRIVER) -> Live | Answering | None:
        """Return the next item of a model that talks alone; None if `next` has to say what comes.

        While a model talks, its reader asks nothing but the model. For what `items` has yielded,
        this method returns only the next delta: the driver asks for the answer.

        Raises:
            CancelledError: the caller was cancelled, as in `next`.
        """
        source, is_driver = self.source, yielded is NEEDS_DRIVER
        if not isinstance(source, ModelCallInFlight) or (is_driver and self.next_delta is None):
            return None
        with self._scope:
            item = source.answer or await source.__anext__(yielded)
            if is_live(item):
                return item
            if is_driver and self.next_delta is not None and not isinstance(item, Parked):
                self.next_delta = None
                await self._next_of_source(item)
                return item
        self.next_delta = self.next_delta and _need_driver
        return None

    def note_risky(self, run: Run[S]) -> EffectsStarted | None:
        """Return the event to journal before the effects in `todo` start; None if none is risky."""
        risky = self._performer.risky(self.todo, run)
        self._noted = risky or self._noted
        return EffectsStarted(self._clock(), risky) if risky else None

    def revoked(self) -> EffectsStarted | None:
        """Return an `EffectsStarted` that takes back the journaled start of effects in `todo`.

        Without such effects the result is None.
        """
        here = {effect.id for effect in self.todo}
        unstarted = tuple([effect for effect in self._noted if effect in here])
        return EffectsStarted(self._clock(), (), unstarted=unstarted) if unstarted else None

    def _pop_lone(self, run: Run[S]) -> Performed | None:
        """Return the effect to perform in the driver's own task, if it is the only one in flight.

        The answers of others come later: a model call or child run becomes the `source`, and a
        user's function that may ignore its cancellation gets a task.
        """
        if len(self.todo) != 1 or self._tasks or self.source is not None:
            return None
        effect = self.todo.pop()
        if type(effect) is CallModel or type(effect) is StartRun:
            self.source = source = self._listen(effect)
            if isinstance(source, ModelCallInFlight):
                source.share_s = SHARE_S
        elif self._stoppable and self._performer.calls_user(effect, run):
            self._start_alone(effect, run)
        else:
            return effect
        return None

    async def drop(self, effect: Effect) -> None:
        """End one of several effects, and ignore its remaining items."""
        self.todo = [other for other in self.todo if other.id != effect.id]
        task = self._tasks.get(effect.id)
        if task is not None:
            ENDED.add(task)
        while task is not None and not task.done():
            # Cancel again: a task that ignored the first time may wait for its items to be read.
            task.cancel()
            await asyncio.wait((task,), timeout=CANCEL_AGAIN_S)
        IN_FLIGHT.discard(self._tasks.pop(effect.id, None))

    async def close(self) -> list[Answering]:
        """End all effects in flight; return the answers that `next` has not returned yet."""
        source, self.source, self.next_delta = self.source, None, None
        if source is not None:
            await source.aclose()
        if self._first is not None:
            self._first.end()
        if not (self._tasks or self._unheard or self._inbox):
            return []
        tasks, self._tasks = self._tasks, {}
        inbox, self._inbox = self._inbox, None  # Tasks left behind keep the old inbox.
        if tasks:
            ENDED.update(tasks.values())
            # A task that ignores its cancellation must not wait for its items to be read.
            self._closing = True
            try:
                await end_tasks({*tasks.values()})
            finally:
                self._closing = False
                IN_FLIGHT.difference_update(tasks.values())  # Some were cancelled before they ran.
        unheard, self._unheard = self._unheard, []
        # The inbox may still have answers of dropped effects.
        for item in () if inbox is None else inbox.items:
            unheard += [item] if isinstance(item, Answering) and item.effect in tasks else []
        return unheard

    async def _next_of_source(self, answer: Answering | None = None) -> Item:
        """Return the next item of the only effect in flight; close the source after its answer.

        `answer` is the answer if it is known already. If this task is cancelled while the source
        closes, `close` returns the answer; if the driver interrupts it, the answer is void.
        """
        source = self.source
        assert source is not None, "the driver has looked"
        item = answer or await source.__anext__()
        if type(item) in SHOWN:
            if isinstance(source, ModelCallInFlight) and source.items is not None:
                # With a turn's time limit, the reader comes back to the driver for each wait.
                self.next_delta = _need_driver if self._scope.is_timed else source.items.send
            return item
        self.source = None
        try:
            await source.aclose()
        except BaseException:
            self._unheard += [item] if isinstance(item, Answering) else []
            raise
        return item

    async def _next_of_tasks(self, run: Run[S]) -> Item | None:
        """Start a task for each effect in `todo`; return the first item that any task delivers."""
        todo, self.todo = self.todo, []
        if not (todo or self._tasks):
            return None
        if self._scope.is_interrupted:
            await asyncio.sleep(0)  # Raises here if a lone function has aborted its own run.
        inbox = self._inbox = self._inbox or Arrivals()
        wanted = self._wanted = self._wanted or asyncio.Event()
        for effect in todo:
            self._keep_task(effect, asyncio.create_task(self._work_on(effect, run, inbox)))
        while (item := self._pop_item()) is None and self._tasks:
            wanted.set()
            await inbox.arrival()
        return item

    def _pop_item(self) -> Live | ToolProgress | ChildStep | Answering | None:
        """Return the next item that a task has delivered; None if there is none yet."""
        while self._tasks and self._inbox is not None and self._inbox.items:
            item = self._inbox.items.popleft()
            if isinstance(item, BaseException):
                raise item
            if is_shown(item):
                return item
            # The inbox may still have answers of dropped effects.
            task = self._tasks.pop(item.effect, None)
            IN_FLIGHT.discard(task)
            if task is not None and not isinstance(item, Parked):
                return item
        return None

    def _start_alone(self, effect: Performed, run: Run[S]) -> None:
        """Start a call of a user's function in a task; return at the function's first await."""
        if (inbox := self._inbox) is None:
            inbox = self._inbox = Arrivals()
        if (first := self._first) is None:
            first = self._first = FirstSteps()
        self._tasks[effect.id], waits = first.begin(self._work_on(effect, run, inbox))
        if waits:  # Otherwise it has ended, and the inbox has its answer.
            self._keep_task(effect, self._tasks[effect.id])

    def _keep_task(self, effect: Effect, task: asyncio.Task[None]) -> None:
        task.set_name(f"{type(effect).__name__} {effect.id}")
        self._tasks[effect.id] = task
        if _is_watched(effect):
            LISTENERS.add(task)
        IN_FLIGHT.add(task)

    async def _work_on(self, effect: Effect, run: Run[S], inbox: Arrivals) -> None:
        try:
            if _is_watched(effect):
                while await self._watch_source(self._listen(effect), inbox):
                    pass
            else:
                inbox.put(await self._performer.perform(effect, run))
        except asyncio.CancelledError:
            if asyncio.current_task() in ENDED:
                raise
            # Not the driver but awaited code has cancelled this task, as some time limits do.
            inside, watched = ToolError(INSIDE), _is_watched(effect)
            inbox.put(inside if watched else self._performer.fail(effect, inside))
        except LeftOpen:
            inbox.put(Parked(effect.id))
        except BaseException as error:  # noqa: BLE001 - raised again where the driver listens
            inbox.put(error)

    async def _watch_source(self, source: Source, inbox: Arrivals) -> bool:
        """Put the items of a source into the inbox, up to its answer; True to start it again.

        A source waits after a child's step, or while the inbox is full, until the driver has read
        all items. Without this wait, a child would start new effects before its step is yielded.
        """
        async with aclosing(source):
            is_seen = True
            while is_seen:
                item = await source.__anext__()
                if isinstance(item, Parked) and await self._is_due(item.due):
                    return True
                inbox.put(item)
                is_seen = is_shown(item)
                ahead = is_seen and (is_step(item) or len(inbox.items) >= INBOX_MAX)
                if ahead and not self._closing and (wanted := self._wanted) is not None:
                    wanted.clear()
                    await wanted.wait()
        return False

    async def _is_due(self, due: float) -> bool:
        """Wait for the time of a postponed effect; False once no other effect is at work."""
        self._asleep += due < inf
        try:
            while self._asleep < len(self._tasks) and monotonic() < due < inf:  # noqa: ASYNC110
                await asyncio.sleep(min(due - monotonic(), LOOK_S))
        finally:
            self._asleep -= due < inf
        return monotonic() >= due


def _need_driver(_: None) -> object:
    return NEEDS_DRIVER
