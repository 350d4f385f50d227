"""RunStream: one run, watched while it goes on.

Nothing happens until somebody looks: the first look starts the run, and every further look drives
it. All lookers see all parts, in the same order; a buffered result is the drained stream.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast, final

from ..drivers.aio import DELTAS, AsyncDriver, Seen
from ..drivers.perform import cancelled_inside
from ..errors import RunFailed
from ..graph import Graph
from ..providers.base import TextDelta
from ..run import EndReason, Run, Spent, StepResult
from ..step import Step
from ..stores.base import Store
from ..views.parts import ErrorPart, Finish, Part, PartView, RunStart, Warned
from .result import RunResult, unseen_costs

__all__ = ["Opened", "RunStream"]

S = TypeVar("S")

LEFT = "the stream was left before the run ended; a run with a store can be resumed by its id"


@dataclass(frozen=True)
class Opened(Generic[S]):
    """A run that is ready to be driven."""

    graph: Graph[S]
    store: Store
    driver: AsyncDriver[S]
    seen: AsyncGenerator[Seen[S], None]
    before: Spent = field(default_factory=Spent)
    reported: int = 0
    on_step_finish: Callable[[StepResult], object] | None = None


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

    `on_over` is awaited once, when the stream is over: to close what was opened for it.
    """

    def __init__(self, open_run: Callable[[], Awaitable[Opened[S]]], *, keep: bool = True) -> None:
        self.on_over: Callable[[], Awaitable[None]] | None = None
        self._open_run = open_run
        self._keep = keep
        self._parts: list[Part] = []
        self._opened: Opened[S] | None = None
        self._view: PartView[S] | None = None
        self._talking = False
        self._reported = 0
        self._driving = False
        self._lookers: list[asyncio.Event] = []
        self._over = False
        self._closed = False
        self._aborted: str | None = None
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
    def run(self) -> Run[S] | None:
        """The run as it stands now; None before it has started."""
        return self._opened.driver.run if self._opened is not None else None

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

    def abort(self, reason: str = "") -> None:
        """Stop the run: it ends as `aborted`, with a history in which every call is answered."""
        reason = str(reason)
        self._aborted = reason
        if self._opened is not None:
            self._opened.driver.abort(reason)

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
        if self._aborted is not None:
            driver.abort(self._aborted)
        view = self._view = PartView(opened.graph, driver.run)
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
                self._parts.append(seen)
            else:
                await self._see(opened, seen)
            if len(self._parts) > known:
                return
        self._finish(opened)
        await self._end()

    async def _see(self, opened: Opened[S], seen: Step[S]) -> None:
        """Show a step, and report the turn it closed."""
        if self._view is not None and self._keep:
            self._talking = self._view.shows_deltas(seen.run)
            self._parts.extend(self._view.see(seen))
        if len(seen.run.steps) > self._reported:
            await self._report(opened, seen)

    async def _report(self, opened: Opened[S], seen: Step[S]) -> None:
        reported, self._reported = self._reported, len(seen.run.steps)
        if opened.on_step_finish is not None:
            for result in seen.run.steps[reported:]:
                try:
                    answer = opened.on_step_finish(result)
                    if inspect.isawaitable(answer):
                        await cast("Awaitable[object]", answer)
                except asyncio.CancelledError as error:
                    self._warn(f"on_step_finish was {cancelled_inside(error)}")
                except Exception as error:  # noqa: BLE001 - a listener cannot fail a run
                    self._warn(f"on_step_finish raised {type(error).__name__}: {error}")

    def _warn(self, message: str) -> None:
        self._warnings.append(message)
        if self._keep:
            self._parts.append(Warned(message))

    def _finish(self, opened: Opened[S]) -> None:
        run = opened.driver.run
        if self._closed or run is None:
            self._fail(RunFailed(LEFT))
            return
        for message in unseen_costs(opened.graph, run):
            self._warn(message)
        result = RunResult(run, opened.store, opened.before, tuple(self._warnings))
        if result.end_reason is EndReason.ERROR and run.ending is not None:
            failure = run.ending.failure
            recorded = RunFailed(f"{failure.error}: {failure.message}" if failure else "unknown")
            self._fail(opened.driver.exception or recorded)
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
