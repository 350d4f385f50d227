"""RunStream: one run, watched while it goes on; a buffered result is the drained stream.

The first reader starts the run, each further read drives it, and all readers see all parts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Generic, TypeVar, final

from ..driver import AsyncDriver, ChildStep
from ..errors import ConfigError, RunFailed
from ..events import Steered
from ..graph import NodeGraph
from ..outcomes import FollowUp
from ..parts import ErrorPart, Finish, ObjectDelta, ObjectView, Part, PartView, RunStart, Warned
from ..providers import Live, TextDelta
from ..run import EndReason, Run
from ..step import Step
from ..values import UserMessage
from .result import RESTING, RunHandle, RunResult, inform, log_warnings, unseen_costs

__all__ = ["RunStream"]

S = TypeVar("S")

LEFT = "the stream was left before the run ended; a run with a store can be resumed by its id"


@final
class RunStream(Generic[S]):
    """The live view of one run.

    A reader that stops early stops driving, and may read on or ask for the `result` later; `abort`
    or `aclose` gives the run up. A reader cancelled while it drives ends the stream.

    Args:
        open_run: prepares the run on the first look. Its error becomes the stream's error part and
            the error of `result`.
        graph: the graph that runs; None where the run cannot even start.
        keep: whether parts are kept for all readers (a buffered call needs none).
        has_objects: whether the answer has an `output_type`.

    `on_over` is awaited once the stream is over. `found` is the run as it was resumed, if it was.
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
        self._open_run, self._graph = open_run, graph
        self._keep, self._has_objects = keep, has_objects
        self._parts: list[Part] = []
        self.found: Run[S] | None = None
        self._opened: RunHandle[S] | None = None
        self._view: PartView[S] | None = None
        self._objects: ObjectView | None = None
        self._talking, self._reported, self._uncounted = False, 0, (False, False)
        self._rests = asyncio.Event()
        self._driven = self._over = self._closed = self._waits = self._cut = False
        self._say: Steered | None = None
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
        """The text deltas of all turns; a turn that is asked again (`step-retry`) is told again.

        Raises:
            Exception: what `result` raises, after the last delta that came.
        """
        return self._texts()

    @property
    def object_stream(self) -> AsyncIterator[object]:
        """The answer of an agent with an `output_type`: growing JSON and, last, its value.

        Only the last is checked. A rejected answer is followed by another from its beginning; a
        run that does not complete has no last one.

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
    def cut(self) -> bool:
        """Whether the caller who iterates the run was cancelled, and can go on with it."""
        return self._cut

    @property
    def failed(self) -> bool:
        """Whether it is over, and `result` raises."""
        return self._error is not None

    @property
    def over(self) -> bool:
        """Whether there is a result, or an error."""
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
        """Drive the run to its end; never raises an `Exception`."""
        while not self._over:
            await self._pull(len(self._parts))

    def abort(self, reason: str = "", *, after_step: bool = False) -> None:
        """Stop the run: it ends as `aborted`, with a history in which every call is answered.

        A run that parked is aborted by aborting what `agent.resume_stream` returns.

        Args:
            reason: why, for the record.
            after_step: whether the turn under way comes to its end first.
        """
        self._tell(lambda driver: driver.abort(str(reason), after_step=after_step))

    def steer(self, message: str) -> None:
        """Add a message that the model reads in its next turn.

        It outweighs stop conditions, never a bound; a run at its end goes on for it.

        Raises:
            ConfigError: it is no text, or the stream is over.
        """
        said = self._said("steer", message, "steering")
        self._tell(lambda driver: driver.queue(said, follow_up=False))

    def follow_up(self, message: str) -> None:
        """Add a message that the model reads once it would be done, in order.

        Each answer passes its checks before the model reads what follows. A run without a step
        left for it ends by `max_steps`: it has an answer, the follow-up has none.

        Raises:
            ConfigError: no text, or the stream is over, or no node (`Verify`) hears follow-ups.
        """
        graph = self._graph
        if graph is not None and not any(FollowUp in row for row in graph.table.values()):
            raise ConfigError(
                "`follow_up` has no effect: no node of the graph leaves by FollowUp. "
                "Lead final answers to a Verify()"
            )
        said = self._said("follow_up", message, "follow_up")
        self._tell(lambda driver: driver.queue(said, follow_up=True))

    async def go_on(
        self, answer: Steered | None, on_part: Callable[[Part], object] | None = None
    ) -> None:
        """Drive the run until it ends, or waits for the caller who iterates it.

        A cancelled caller can go on with the run where it stands.

        Args:
            answer: answers the pending effect; None before the start, and for a stop.
            on_part: called with each part as it comes; its error becomes a warning.
        """
        while self._driven:
            await self._until_rest()
        if self._opened is not None and not self._over:
            self._opened, self._cut = self._opened.again(answer, cut=self._cut), False
        self._waits, self._say = False, answer
        while not (self._over or self._waits):
            known = len(self._parts)
            await self._pull(known, iterated=True)
            if on_part is not None:
                for part in self._parts[known:]:
                    self._warn(*await inform("on_part", on_part, part))

    def _said(self, name: str, message: object, origin: str) -> UserMessage:
        if not isinstance(message, str):
            raise ConfigError(f"`{name}` says a text; found {message!r:.80}")
        if self._over or self._closed or (self._opened and self._opened.driver.ignores_messages):
            raise ConfigError(
                f"`{name}` comes too late: the stream is over. Go on with a parked run by `resume` "
                "and with an ended one by `messages=[*result.messages, …]`"
            )
        return UserMessage(message, origin=origin)

    def _tell(self, tell: Callable[[AsyncDriver[S]], None]) -> None:
        """Tell the driver, or keep it until there is one."""
        if self._opened is None:
            self._asides.append(tell)
        else:
            tell(self._opened.driver)

    async def aclose(self) -> None:
        """Stop watching; the journal has all messages and ended effects, the run can be resumed."""
        self._closed = True
        while self._driven:
            if self._opened is not None:
                self._opened.driver.leave()
            await self._until_rest()
        self._driven = True
        try:
            if self._opened is not None:
                await self._opened.seen.aclose()
            if self._result is None and self._error is None:
                self._finish(self._opened)
            await self._end()
        finally:
            self._driven = False
            self._rests.set()

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
        async for part in self._look():
            if isinstance(part, TextDelta):
                yield part.text
            elif isinstance(part, ErrorPart):
                raise part.error

    async def _answers(self) -> AsyncGenerator[object, None]:
        async for part in self._look():
            if isinstance(part, ObjectDelta):
                yield part.object
        result = await self.result()
        if result.end_reason is EndReason.COMPLETED:
            yield result.output

    async def _until_rest(self) -> None:
        self._rests.clear()
        await self._rests.wait()

    async def _pull(self, known: int, *, iterated: bool = False) -> None:
        """Drive the run until there is more than `known` parts, or let another reader do it."""
        if self._driven:
            await self._until_rest()
            return
        self._driven = True
        try:
            opened = self._opened or await self._open()
            async for seen in opened.seen:
                if isinstance(seen, Step):
                    await self._step(opened, seen)
                elif self._view is not None:
                    self._show_live(self._view, seen)
                if len(self._parts) > known:
                    return
            if opened.ports.attended and opened.waits:
                self._waits = True
                return
            self._finish(opened)
            await self._end()
        except BaseException as error:
            await self._break_off(error, iterated=iterated)
            if not isinstance(error, Exception):  # `result` raises an `Exception` again.
                raise
        finally:
            self._driven = False
            self._rests.set()

    async def _break_off(self, error: BaseException, *, iterated: bool) -> None:
        """Note what broke the run off; a cancelled caller of an iterated run can go on with it."""
        failed, run = isinstance(error, Exception), self._opened
        cancelled = isinstance(error, asyncio.CancelledError)
        self._cut = iterated and cancelled and run is not None and run.has_taken(self._say)
        if self._cut:
            return
        if run is not None and (failed or cancelled):
            await run.seen.aclose()  # Else the driver, and its lease, would stay in place.
        self._fail(error if isinstance(error, Exception) else RunFailed(LEFT))
        await self._end()

    async def _open(self) -> RunHandle[S]:
        opened = self._opened = await self._open_run()
        self.found = opened.driver.run
        for tell in self._asides:
            tell(opened.driver)
        if opened.warnings:
            self._warn(*opened.warnings)
        self._reported = opened.reported
        if not self._keep:
            return opened
        view = self._view = PartView(opened.graph, self.found)
        self._objects = None if opened.final is None else opened.final.view()
        if self.found is not None:
            # A run that is resumed in the middle of a reply yields deltas before its first step.
            self._talking = view.shows_deltas(self.found)
            self._parts.append(RunStart(self.found.id))
        return opened

    async def _step(self, opened: RunHandle[S], seen: Step[S]) -> None:
        """Show a step, and report the turns that it has closed."""
        run = seen.run
        if self._view is not None:
            self._talking = self._view.shows_deltas(run)
            self._show(self._view.see(seen))
        uncounted = (run.spent.unpriced_calls > 0, run.spent.unreported_calls > 0)
        if self._uncounted != uncounted:
            self._uncounted = uncounted
            if unseen := unseen_costs(opened.graph, run):
                self._warn(*unseen)
        listener, reported = opened.on_step_finish, self._reported
        if listener is not None:
            self._reported = len(run.record.steps)
            for result in run.record.steps[reported:]:
                self._warn(*await inform("on_step_finish", listener, result))

    def _show_live(self, view: PartView[S], seen: Live | ChildStep) -> None:
        """Keep a delta of the run's own model, or the parts of a child."""
        if isinstance(seen, ChildStep):
            self._parts += view.see_child(seen.key, seen.agent, seen.graph, seen.seen)
        elif self._talking:
            self._show((view.live(seen),))

    def _show(self, parts: Sequence[Part]) -> None:
        """Keep parts of the run's own, and the snapshots of the answer that they make."""
        if self._objects is not None:
            parts = [one for part in parts for one in (part, *self._objects.see(part))]
        self._parts += parts

    def _warn(self, *messages: str) -> None:
        log_warnings(self.run, messages)
        self._warnings += messages
        if self._result is not None:
            self._result = replace(self._result, warnings=tuple(self._warnings))
        if self._keep:
            self._parts += map(Warned, messages)

    def _finish(self, opened: RunHandle[S] | None) -> None:
        """Tell the result of the run, or that it was left."""
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
        if self._opened and self._opened.ports.observers is not None and not self._over:
            self._opened.rest()
        try:
            if not self._over and self.on_over is not None:
                await self.on_over()
        except Exception as error:  # A run that has ended keeps its result.
            if self._result is None:
                raise
            self._keep = False  # The last part has been shown.
            self._warn(f"after the run: {type(error).__name__}: {error}")
        finally:
            self._over = True

    def _fail(self, error: Exception) -> None:
        self._error = error
        if self._keep:
            self._parts.append(ErrorPart(error))
