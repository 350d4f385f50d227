"""RunStream: the parts of one run as they are produced, and the run's result at the end.

The first read starts the run, and each further read drives it. All readers get all parts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Generic, final

from ..driver import NEEDS_DRIVER, AsyncDriver, InFlight, unseen_costs
from ..errors import ConfigError, RunFailed
from ..events import Steered
from ..graph import NodeGraph
from ..outcomes import FollowUp
from ..parts import ErrorPart, Finish, ObjectDelta, Part, PartView, RunView, Warned, texts_of
from ..providers import DELTAS, Delta, Restarted, is_delta
from ..run import EndReason, Run
from ..step import Step
from ..values import UserMessage, evolve
from .hooks import inform
from .inputs import PromptInput, asked_message
from .result import RESTING, OutputT_co, RunHandle, RunResult, S, log_warnings

__all__ = ["RunStream"]

LEFT = "the stream was left before the run ended; a run with a store can be resumed by its id"


@final
class RunStream(Generic[OutputT_co, S]):
    """A live view of one run: streams of its parts, and its result.

    The run advances only while a reader reads. A reader may stop, and read on later. `abort` ends
    the run; `aclose`, or cancelling a reader, ends the stream. A `signal_id` counts once in a run.

    Args:
        open_run: prepares the run at the first read; its error becomes the error of `result`.
        graph: the graph that runs; None if the run cannot start.
        keep: whether parts are kept for all readers (a call for the result alone needs none).
        has_objects: whether the answer has an `output_type`.

    `on_over` is awaited once the stream ends. `found` is the initial state of a resumed run. If
    `cut`, the caller who iterates the run was cancelled, and can continue the run.
    """

    def __init__(
        self,
        open_run: Callable[[], Awaitable[RunHandle[S]]],
        graph: NodeGraph[S] | None = None,
        *,
        keep: bool = True,
        has_objects: bool = False,
    ) -> None:
        self.on_over: Callable[[], Awaitable[None]] | None = None
        self.open_run, self._graph = open_run, graph
        self._keep, self._has_objects = keep, has_objects
        self._parts: list[Part] = []
        self._warnings: list[str] = []
        self.found: Run[S] | None = None
        self._opened: RunHandle[S] | None = None
        self._view: PartView[S] | RunView[S] | None = None
        self._rests: asyncio.Event | None = None  # Other readers wait for it.
        self._flight: InFlight[S] | None = None
        self._reader: object = None
        self._reported, self._uncounted = 0, (False, False)
        self._driven = self._over = self._closed = self._waits = self.cut = False
        self._say: Steered | None = None
        self._asides: list[Callable[[AsyncDriver[S]], None]] = []
        self._error: Exception | None = None
        self._result: RunResult[OutputT_co, S] | None = None

    def __repr__(self) -> str:
        return f"<RunStream of {self.run or 'a run that has not started'}>"

    @property
    def full_stream(self) -> AsyncIterator[Part]:
        """All parts from the first to `finish` or `error`; iterating it never raises."""
        return self._read_parts()

    @property
    def text_stream(self) -> AsyncIterator[str]:
        """The text deltas of all turns, then the error of `result`; a retried turn repeats it."""
        return texts_of(self._read_parts())

    @property
    def object_stream(self) -> AsyncIterator[object]:
        """Growing partial JSON values of the answer and, at the end, the checked answer.

        After a rejected answer, another follows. Only a completed run's last value has its type.

        Raises:
            ConfigError: the agent has no `output_type`; the run has not started.
            Exception: the error of `result`, after the last value.
        """
        if not self._has_objects:
            raise ConfigError("`object_stream` shows an answer with an `output_type`: give one")
        return self._final_values()

    @property
    def run(self) -> Run[S] | None:
        """The run as it is now; None before it has started."""
        return self._opened.driver.run if self._opened is not None else None

    def children(self) -> Mapping[str, Run[Any]]:
        """Return the child runs driven here, at any depth, as they are now, by run id."""
        return {} if self._opened is None else self._opened.driver.children.descendants

    @property
    def failed(self) -> bool:
        """Whether the stream has ended with an error, which `result` raises."""
        return self._error is not None

    @property
    def over(self) -> bool:
        """Whether the stream has ended, with a result or with an error."""
        return self._over

    async def result(self) -> RunResult[OutputT_co, S]:
        """Drive the run until it ends or parks, and return its result.

        Raises:
            ConfigError: the arguments of the run were wrong; no request has been sent.
            ProviderError: a model request failed, or its reply was incomplete.
            Exception: the error of a `prepare_step` function or a stop predicate.
        """
        while not self._over:
            await self._pull(len(self._parts))
        if self._error is not None:
            raise self._error
        assert self._result is not None, "a stream that is over has a result or an error"
        return self._result

    async def consume(self) -> None:
        """Drive the run until it ends or parks; never raises an `Exception`."""
        while not self._over:
            await self._pull(len(self._parts))

    def abort(self, reason: str = "", *, after_step: bool = False, timeout: bool = False) -> None:
        """Stop the run: it ends as `aborted`, and its history has a result for each call.

        To abort a parked run, call `abort` of the stream that `agent.resume_stream` returns.

        Args:
            reason: a text for the run's record.
            after_step: whether the present turn is finished first.
            timeout: whether the run ends as `timeout`, because the caller has a time limit.
        """
        self._tell(lambda told: told.abort(str(reason), after_step=after_step, timeout=timeout))

    def steer(self, message: PromptInput, *, signal_id: str = "") -> None:
        """Add a message that the model reads in its next turn.

        A stop condition or a final answer does not end the run before the message is read; hard
        limits such as `max_steps` do.

        Raises:
            ConfigError: the message is no prompt, or the stream has ended.
        """
        said = self._steering_message("steer", message, "steering")
        self._tell(lambda driver: driver.queue(said, follow_up=False, signal_id=signal_id))

    def follow_up(self, message: PromptInput, *, signal_id: str = "") -> None:
        """Add a message that the model reads after its final answer; several are read in order.

        Each answer passes its checks before the model reads the next message. A run that has no
        step left for the message ends by `max_steps`, and the message gets no answer.

        Raises:
            ConfigError: the message is no prompt, the stream ended, or the graph has no `Verify`.
        """
        if self._graph and not any(FollowUp in row for row in self._graph.table.values()):
            raise ConfigError(
                "`follow_up` has no effect: no node of the graph leaves by FollowUp. "
                "Lead final answers to a Verify()"
            )
        said = self._steering_message("follow_up", message, "follow_up")
        self._tell(lambda driver: driver.queue(said, follow_up=True, signal_id=signal_id))

    async def go_on(
        self, answer: Steered | None, on_part: Callable[[Part], object] | None = None
    ) -> None:
        """Drive the run until it ends, parks, or waits for the caller who iterates it.

        A cancelled caller can call this method again and continue the run.

        Args:
            answer: the event that answers the pending effect; None to start or to stop the run.
            on_part: called with each new part; its error becomes a warning.
        """
        while self._driven:
            await self._until_rest()
        if self._opened is not None and not self._over:
            self._opened, self.cut = self._opened.again(answer, cut=self.cut), False
        self._waits, self._say = False, answer
        while not (self._over or self._waits):
            known = len(self._parts)
            await self._pull(known, iterated=True)
            if on_part is not None:
                for part in self._parts[known:]:
                    self._warn(*await inform("on_part", on_part, part))

    def _steering_message(self, name: str, message: PromptInput, origin: str) -> UserMessage:
        said = asked_message(message, name)
        if self._over or self._closed or (self._opened and self._opened.driver.ignores_messages):
            raise ConfigError(
                f"`{name}` comes too late: the stream is over. Go on with a parked run by `resume` "
                "and with an ended one by `messages=result.conversation`"
            )
        return evolve(said, origin=origin)

    def _tell(self, tell: Callable[[AsyncDriver[S]], None]) -> None:
        """Call `tell` with the driver of the run, now or once the run has been opened."""
        if self._opened is None:
            self._asides.append(tell)
        else:
            tell(self._opened.driver)

    async def aclose(self) -> None:
        """End the stream; a run with a store can be resumed, since its journal is up to date."""
        self._closed = True
        while self._driven:
            if self._opened is not None:
                self._opened.driver.leave()
            await self._until_rest()
        self._driven = True
        try:
            if self._opened is not None:
                await self._opened.seen.aclose()
            await self._end()
        finally:
            self._driven = False
            if self._rests is not None:
                self._rests.set()

    async def _read_parts(self) -> AsyncGenerator[Part, None]:
        at, parts, me = 0, self._parts, object()
        while True:
            if at < len(parts):
                new, at = parts[at:], len(parts)
                for part in new:
                    yield part
            elif self._over:
                return
            elif self._driven or (flight := self._flight) is None or flight.next_delta is None:
                await self._pull(at)
            else:
                # Until another reader comes, this one takes deltas from the model call itself.
                self._reader = me
                while self._reader is me and (next_delta := flight.next_delta) is not None:
                    if (item := next_delta(None)) is NEEDS_DRIVER:
                        await self._pull(at)
                        break
                    if type(item) not in DELTAS:
                        item = await self._delta_after_wait(flight, item)
                        if item is None:
                            break
                    parts.append(item)
                    at += 1
                    yield item

    async def _delta_after_wait(self, flight: InFlight[S], item: object) -> Delta | None:
        """Return the delta that a model gives after a wait; None if there is no such delta."""
        self._driven = True
        try:
            delta = item if isinstance(item, Restarted) else await flight.more(item)
        except BaseException as error:
            await self._break_off(error, iterated=False)
            raise
        finally:
            self._driven = False
            if self._rests is not None:
                self._rests.set()
        if isinstance(delta, Restarted) and self._view is not None:
            self._parts += self._view.show(delta)
        return delta if is_delta(delta) else None

    async def _final_values(self) -> AsyncGenerator[object, None]:
        async for part in self._read_parts():
            if isinstance(part, ObjectDelta):
                yield part.object
        if (result := await self.result()).end_reason is EndReason.COMPLETED:
            yield result.output

    async def _until_rest(self) -> None:
        if self._rests is None or self._rests.is_set():
            self._rests = asyncio.Event()
        await self._rests.wait()

    async def _pull(self, known: int, *, iterated: bool = False) -> None:
        """Drive the run until a new part follows the first `known`; or wait for another reader."""
        if self._driven:
            await self._until_rest()
            return
        self._driven, self._reader = True, None
        try:
            opened, view = self._opened or await self._open(), self._view
            async for seen in opened.seen:
                if view is not None:
                    self._parts += view.see(seen) if isinstance(seen, Step) else view.show(seen)
                    self._flight = opened.driver.in_flight if view.is_plain else None
                if opened.reads_steps and isinstance(seen, Step):
                    await self._step(opened, seen)
                if len(self._parts) > known:
                    return
            self._waits = opened.ports.attended and opened.waits
            if not self._waits:
                await self._end()
        except BaseException as error:
            await self._break_off(error, iterated=iterated)
            if not isinstance(error, Exception):  # `result` raises an `Exception`.
                raise
        finally:
            self._driven = False
            if self._rests is not None:
                self._rests.set()

    async def _break_off(self, error: BaseException, *, iterated: bool) -> None:
        """End the stream with an error, unless a cancelled caller can continue the iterated run."""
        run, cancelled = self._opened, isinstance(error, asyncio.CancelledError)
        self.cut = iterated and cancelled and run is not None and run.has_taken(self._say)
        if self.cut:
            return
        if run is not None and (cancelled or isinstance(error, Exception)):
            await run.seen.aclose()  # Otherwise the driver would keep its lease.
        self._fail(error if isinstance(error, Exception) else RunFailed(LEFT))
        await self._end()

    async def _open(self) -> RunHandle[S]:
        opened = self._opened = await self.open_run()
        del self.open_run  # It holds the question and more, and no stream opens twice.
        self.found, self._reported = opened.driver.run, opened.reported
        for tell in self._asides:
            tell(opened.driver)
        if opened.warnings:
            self._warn(*opened.warnings)
        if self._keep:
            view = PartView(opened.graph, self.found)
            self._view = view if opened.final is None else RunView(view, opened.final.view())
            self._parts += () if self.found is None else self._view.resumed(self.found)
        return opened

    async def _step(self, opened: RunHandle[S], seen: Step[S]) -> None:
        """Warn of uncounted costs; call `on_step_finish` for each turn that the step has closed."""
        run = seen.run
        uncounted = (run.spent.unpriced_calls > 0, run.spent.unreported_calls > 0)
        if self._uncounted != uncounted:
            self._uncounted = uncounted
            self._warn(*unseen_costs(opened.limits, run))
        if (listener := opened.on_step_finish) is not None:
            reported, self._reported = self._reported, len(run.record.steps)
            for result in run.record.steps[reported:]:
                self._warn(*await inform("on_step_finish", listener, result))

    def _warn(self, *messages: str) -> None:
        log_warnings("" if self._opened is None else self._opened.run_id, messages)
        self._warnings += messages
        if self._result is not None:
            self._result = evolve(self._result, warnings=tuple(self._warnings))
        self._parts += map(Warned, messages if self._keep else ())

    def _finish(self, opened: RunHandle[S] | None) -> None:
        """Set the result of the run, or the error that the stream was left before the end."""
        run = None if opened is None else opened.driver.run
        if opened is None or run is None or opened.driver.state not in RESTING:
            self._fail(RunFailed(LEFT))
            return
        if new := [one for one in opened.findings(run) if one not in self._warnings]:
            self._warn(*new)
        result = opened.ended(run, self._warnings)
        if isinstance(result, Exception):
            self._fail(result)
            return
        self._result = result
        if self._keep:
            ends = result.finish_reason, result.end_reason, result.stopped_by
            self._parts.append(Finish(*ends, result.total_usage, result.cost_usd))

    async def _end(self) -> None:
        if self._result is None and self._error is None:
            self._finish(self._opened)
        if self._opened and self._opened.ports.observers is not None and not self._over:
            self._opened.rest()
        try:
            if not self._over and self.on_over is not None:
                await self.on_over()
        except Exception as error:  # An ended run keeps its result.
            if self._result is None:
                raise
            self._keep = False  # `finish` is the last part.
            self._warn(f"after the run: {type(error).__name__}: {error}")
        finally:
            self._over = True

    def _fail(self, error: Exception) -> None:
        self._error = error
        self._parts += (ErrorPart(error),) if self._keep else ()
