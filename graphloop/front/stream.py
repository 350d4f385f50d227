"""RunStream: one run, watched while it goes on.

Nothing happens until somebody looks: the first look starts the run, and every further look drives
it. All lookers see all parts, in the same order; a buffered result is the drained stream.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar, cast, final

from ..drivers.aio import DELTAS, AsyncDriver, Nested
from ..drivers.perform import cancelled_inside
from ..effects import HandOver
from ..errors import ConfigError, RunFailed
from ..events import Event
from ..providers.base import TextDelta
from ..run import EndReason, Run
from ..step import Step
from ..values import UserMessage
from ..views.objects import ObjectView
from ..views.parts import ErrorPart, Finish, ObjectDelta, Part, PartView, RunStart, Warned
from .opened import Opened
from .result import RunResult, unseen_costs

__all__ = ["RunStream"]

S = TypeVar("S")
T = TypeVar("T")

LEFT = "the stream was left before the run ended; a run with a store can be resumed by its id"


@final
class RunStream(Generic[S]):
    """The live view of one run.

    Who stops looking early stops driving, and may look again or ask for the `result` later; to give
    the run up and free its connection at once, `abort` it, or `aclose` the stream. A looker that is
    cancelled while it drives ends the stream for the others too.

    Args:
        open_run: prepares the run; called on the first look. What it raises becomes the
            stream's error part and the error of `result`.
        keep: whether parts are kept for everybody who looks (a buffered call needs none).
        has_objects: whether the answer has an `output_type`.

    `on_over` is awaited once, when the stream is over: to close what was opened for it.
    """

    def __init__(
        self,
        open_run: Callable[[], Awaitable[Opened[S]]],
        *,
        keep: bool = True,
        has_objects: bool = False,
    ) -> None:
        self.on_over: Callable[[], Awaitable[None]] | None = None
        self._open_run = open_run
        self._keep = keep
        self._has_objects = has_objects
        self._parts: list[Part] = []
        self._opened: Opened[S] | None = None
        self._view: PartView[S] | None = None
        self._objects: ObjectView | None = None
        self._talking = False
        self._reported = 0
        self._driving = False
        self._lookers: list[asyncio.Event] = []
        self._over = False
        self._closed = False
        self._waits = False
        self._asides: list[Callable[[AsyncDriver[S]], None]] = []
        self._warnings: list[str] = []
        self._error: Exception | None = None
        self._result: RunResult[S] | None = None

    @property
    def full_stream(self) -> AsyncIterator[Part]:
        """All parts from the first on; ends after `finish` or `error`, and never raises."""
        return self._look()

    @property
    def text_stream(self) -> AsyncIterator[str]:
        """The text deltas of all turns.

        Raises:
            Exception: what `result` raises, after the last delta that came.
        """
        return self._texts()

    @property
    def object_stream(self) -> AsyncIterator[object]:
        """The answer of an agent with an `output_type`: growing JSON and, last, its value.

        Only the last one is checked. An answer that is sent back is followed by another from its
        beginning; a run that does not complete has no last one.

        Raises:
            ConfigError: the agent has no `output_type`; nothing has begun.
            Exception: what `result` raises, after the last that came.
        """
        if not self._has_objects:
            raise ConfigError("`object_stream` shows an answer with an `output_type`: give one")
        return self._answers()

    @property
    def run(self) -> Run[S] | None:
        """The run as it stands now; None before it has started."""
        return self._opened.driver.run if self._opened is not None else None

    @property
    def over(self) -> bool:
        """Whether nothing more will happen here: there is a result, or an error."""
        return self._over

    async def result(self) -> RunResult[S]:
        """Drive the run to its end and return what it came to.

        Raises:
            ConfigError: the call was wrong; nothing has been sent.
            ProviderError: a model could not be asked, or did not answer completely.
            Exception: what a `prepare_step` function or a stop predicate raised.
        """
        while not self._over:
            await self._pull(len(self._parts))
        if self._error is not None:
            raise self._error
        assert self._result is not None, "a stream that is over has a result or an error"
        return self._result

    async def consume(self) -> None:
        """Drive the run to its end, whatever that is; never raises an `Exception`."""
        while not self._over:
            await self._pull(len(self._parts))

    def abort(self, reason: str = "", *, after_step: bool = False) -> None:
        """Stop the run: it ends as `aborted`, with a history in which every call is answered.

        A stream that is over has nothing to stop; a run that parked is aborted by aborting what
        `agent.resume_stream` returns.

        Args:
            reason: why, for the record.
            after_step: whether the turn under way comes to its end first.
        """
        self._tell(lambda driver: driver.abort(str(reason), after_step=after_step))

    def steer(self, message: str) -> None:
        """Say something that the model reads in its next turn, whatever it does now.

        It outweighs stop conditions, never a bound; a run that is at its end goes on for it.

        Raises:
            ConfigError: the stream is over, so nobody would read it.
        """
        self._refuse_late("steer")
        said = UserMessage(message, origin="steering")
        self._tell(lambda driver: driver.queue(said, follow_up=False))

    def follow_up(self, message: str) -> None:
        """Say something that the model reads once it would be done; one at a time, in order.

        Raises:
            ConfigError: the stream is over, so nobody would read it.
        """
        self._refuse_late("follow_up")
        said = UserMessage(message, origin="follow_up")
        self._tell(lambda driver: driver.queue(said, follow_up=True))

    async def go_on(
        self, answer: Event | None, on_part: Callable[[Part], object] | None = None
    ) -> None:
        """Drive the run until it ends, or waits for the caller who iterates it.

        Args:
            answer: answers what the run waits for; None where it has not begun, or is to stop.
            on_part: told of each part as it comes; what it raises becomes a warning.
        """
        while self._driving:
            await self._other_looker()
        if self._opened is not None and not self._over:
            driver, run = self._opened.driver, self._opened.driver.run
            assert run is not None, "what is answered has started"
            seen = driver.resume(run, () if answer is None else (answer,), at_once=True)
            self._opened = replace(self._opened, seen=seen)
        self._waits = False
        while not (self._over or self._waits):
            known = len(self._parts)
            await self._pull(known)
            if on_part is not None:
                for part in self._parts[known:]:
                    await self._inform("on_part", on_part, part)

    def _refuse_late(self, name: str) -> None:
        if self._over:
            raise ConfigError(
                f"`{name}` comes too late: the stream is over. Go on with a parked run by `resume` "
                "and with an ended one by `messages=[*result.messages, …]`"
            )

    def _tell(self, tell: Callable[[AsyncDriver[S]], None]) -> None:
        """Tell the driver, or keep it until there is one."""
        if self._opened is None:
            self._asides.append(tell)
        else:
            tell(self._opened.driver)

    async def aclose(self) -> None:
        """Stop watching: the run stays where its journal is, and can be resumed."""
        self._closed = True
        while self._driving:
            if self._opened is not None:
                self._opened.driver.leave()
            await self._other_looker()
        if self._opened is not None:
            await self._opened.seen.aclose()
        if self._result is None and self._error is None:
            self._fail(RunFailed(LEFT))
        await self._end()

    async def _look(self) -> AsyncGenerator[Part, None]:
        at = 0
        while True:
            while at < len(self._parts):
                yield self._parts[at]
                at += 1
            if self._over:
                return
            await self._pull(at)

    async def _texts(self) -> AsyncGenerator[str, None]:
        at = 0
        while True:
            while at < len(self._parts):
                part = self._parts[at]
                at += 1
                if isinstance(part, TextDelta):
                    yield part.text
                elif isinstance(part, ErrorPart):
                    raise part.error
            if self._over:
                return
            await self._pull(at)

    async def _answers(self) -> AsyncGenerator[object, None]:
        async for part in self._look():
            if isinstance(part, ObjectDelta):
                yield part.object
        result = await self.result()
        if result.end_reason is EndReason.COMPLETED:
            yield result.output

    async def _pull(self, known: int) -> None:
        """Drive the run until there is more than `known` parts, or let another looker do it."""
        if self._driving:
            await self._other_looker()
            return
        self._driving = True
        try:
            opened = self._opened or await self._open()
            await self._drive(opened, known)
        except Exception as error:  # noqa: BLE001 - it is raised again by `result`
            if self._opened is not None:
                await self._opened.seen.aclose()
            self._fail(error)
            await self._end()
        except BaseException:
            self._fail(RunFailed(LEFT))
            await self._end()
            raise
        finally:
            self._driving = False
            for looker in self._lookers:
                looker.set()
            self._lookers.clear()

    async def _other_looker(self) -> None:
        """Wait until whoever drives the run has seen something."""
        looker = asyncio.Event()
        self._lookers.append(looker)
        await looker.wait()

    async def _open(self) -> Opened[S]:
        opened = self._opened = await self._open_run()
        driver = opened.driver
        for tell in self._asides:
            tell(driver)
        for message in opened.warnings:
            self._warn(message)
        view = self._view = PartView(opened.graph, driver.run)
        self._objects = None if opened.final is None else opened.final.view()
        self._reported = opened.reported
        if driver.run is not None and self._keep:
            # A run that was left in the middle of an answer goes on with deltas, before any step.
            self._talking = view.shows_deltas(driver.run)
            self._parts.append(RunStart(driver.run.id))
        return opened

    async def _drive(self, opened: Opened[S], known: int) -> None:
        async for seen in opened.seen:
            if isinstance(seen, DELTAS):
                if not self._talking:
                    continue
                self._show(seen)
            elif isinstance(seen, Nested):
                if self._view is not None and self._keep:
                    self._parts.extend(
                        self._view.see_child(seen.key, seen.agent, seen.graph, seen.seen)
                    )
            else:
                await self._see(opened, seen)
            if len(self._parts) > known:
                return
        if _is_handed_over(opened.driver.run):
            self._waits = True
            return
        self._finish(opened)
        await self._end()

    async def _see(self, opened: Opened[S], seen: Step[S]) -> None:
        """Show a step, and report the turn it closed."""
        if self._view is not None and self._keep:
            self._talking = self._view.shows_deltas(seen.run)
            for part in self._view.see(seen):
                self._show(part)
        if len(seen.run.steps) > self._reported:
            await self._report(opened, seen)

    def _show(self, part: Part) -> None:
        """Keep a part of the run's own, and the snapshot of the answer that it makes."""
        self._parts.append(part)
        if self._objects is not None:
            self._parts.extend(self._objects.see(part))

    async def _report(self, opened: Opened[S], seen: Step[S]) -> None:
        reported, self._reported = self._reported, len(seen.run.steps)
        if opened.on_step_finish is not None:
            for result in seen.run.steps[reported:]:
                await self._inform("on_step_finish", opened.on_step_finish, result)

    async def _inform(self, name: str, listener: Callable[[T], object], told: T) -> None:
        """Tell a listener, which cannot fail the run."""
        try:
            answer = listener(told)
            if inspect.isawaitable(answer):
                await cast("Awaitable[object]", answer)
        except asyncio.CancelledError as error:
            self._warn(f"{name} was {cancelled_inside(error)}")
        except Exception as error:  # noqa: BLE001 - a listener cannot fail a run
            self._warn(f"{name} raised {type(error).__name__}: {error}")

    def _warn(self, message: str) -> None:
        self._warnings.append(message)
        if self._result is not None:
            self._result = replace(self._result, warnings=tuple(self._warnings))
        if self._keep:
            self._parts.append(Warned(message))

    def _finish(self, opened: Opened[S]) -> None:
        run = opened.driver.run
        if self._closed or run is None:
            self._fail(RunFailed(LEFT))
            return
        for message in unseen_costs(opened.graph, run):
            self._warn(message)
        result = opened.ended(run, self._warnings)
        if isinstance(result, Exception):
            self._fail(result)
            return
        self._result = result
        if self._keep:
            self._parts.append(
                Finish(
                    result.finish_reason, result.end_reason, result.stopped_by, result.total_usage
                )
            )

    async def _end(self) -> None:
        try:
            if not self._over and self.on_over is not None:
                await self.on_over()
        finally:
            self._over = True

    def _fail(self, error: Exception) -> None:
        self._error = error
        if self._keep:
            self._parts.append(ErrorPart(error))


def _is_handed_over(run: Run[Any] | None) -> bool:
    return run is not None and any(isinstance(one, HandOver) for one in run.pending.values())
