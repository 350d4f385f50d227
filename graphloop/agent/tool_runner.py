"""ToolRunner: iterates a run turn by turn; its caller can change each turn.

    async for turn in agent.iter("…"):
        if turn.calls:
            turn.append_messages("Keep it short.")

It works like the tool runner of Anthropic's SDKs, with three differences. The model's message is in
the history before the caller reads the turn. Appending and replacing messages are two methods. If
the iteration stops early, the history still has a result for each call.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Generic, Self, TypeAlias, final

from typing_extensions import TypeVar

from ..conversation import repaired
from ..effects import AwaitCaller
from ..errors import ConfigError
from ..events import Steered
from ..parts import Part
from ..providers import Provider
from ..run import Run
from ..values import Message, ToolCall, ToolResult
from .pending_turn import FAILED, OVER, WAITS, PendingTurn
from .result import RunResult
from .stream import RunStream
from .terms import RunTerms

__all__ = ["PartListener", "ToolRunner"]

PartListener: TypeAlias = Callable[[Part], object]
"""Called with each part of an iterated run as the part arrives."""

OutputT_co = TypeVar("OutputT_co", default=str, covariant=True)


@final
class ToolRunner(Generic[OutputT_co]):
    """Iterates a run turn by turn, once; returned by `Agent.iter` and `Agent.resume_iter`.

    `async with agent.iter(…) as runner:` closes the runner at the end.

    Args:
        terms: the terms of the run.
        stream: the stream of the run.
        is_new: whether the run is new, not resumed.
        on_part: called with each new part, as in `RunStream.full_stream`; its error becomes a
            warning.
    """

    def __init__(
        self,
        terms: RunTerms[None],
        stream: RunStream[OutputT_co],
        on_part: PartListener | None = None,
        *,
        is_new: bool = True,
    ) -> None:
        self._terms = terms
        self._stream = stream
        self._on_part = on_part
        self._is_new = is_new
        self._turn: PendingTurn | None = None
        self._iterated = False

    def __repr__(self) -> str:
        return f"<ToolRunner of {self.run or 'a run that has not started'}>"

    @property
    def run(self) -> Run[None] | None:
        """The present state of the run; None before it has started."""
        return self._stream.run

    @property
    def messages(self) -> tuple[Message, ...]:
        """The present conversation; during a turn, calls without a result get a placeholder."""
        run = self._stream.run
        if run is None:
            return ()
        reply, turn = run.turn.reply, run.turn
        if reply is None or turn.dropped or not reply.message.parts:
            return tuple(run.messages)
        effect = self._handed_over()
        begun = effect is None or effect.tools_ran
        results = turn.results or (None,) * len(turn.calls)
        given = [
            _not_run(call) if result is None else result
            for call, result in zip(turn.calls, results, strict=True)
            if result is not None or not begun
        ]
        return repaired((*run.messages, reply.message, *given)).messages

    def __aiter__(self) -> Self:
        if self._iterated:
            raise ConfigError("a ToolRunner is iterated once; `until_done` takes it to its end")
        self._iterated = True
        return self

    async def __anext__(self) -> PendingTurn:
        turn = await self._next()
        if turn is None:
            await self._stream.result()  # Raises the error of the run.
            raise StopAsyncIteration
        return turn

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def until_done(self) -> RunResult[OutputT_co]:
        """Run all remaining turns without changes, and return the result of the run.

        It can be called before, during and after the iteration, and after a cancelled one.

        Raises:
            Exception: the errors of `RunStream.result`.
        """
        while await self._next() is not None:
            pass
        return await self._stream.result()

    async def aclose(self) -> None:
        """Abort the run; its history has a result for each call.

        A parked run stays parked. So does a resumed run whose iteration has not started.
        """
        self._settle_turn()
        if self._stream.run is None and not self._is_new:
            await self._stream.aclose()
            return
        self._stream.abort("the iteration was closed")
        await self._go_on(None)

    def abort(self, reason: str = "", *, after_step: bool = False) -> None:
        """Stop the run, at once or after the present turn; it ends as `aborted`."""
        self._stream.abort(reason, after_step=after_step)

    def add_model(self, model: str | Provider) -> str:
        """Add a model that the run may use, and return its label."""
        return self._terms.resources.add_model(model)

    async def run_tools(self, turn: PendingTurn) -> tuple[ToolResult, ...] | None:
        """Run the turn's tools and return their results; None if the run ends or parks."""
        try:
            if self._stream.cut:
                await self._go_on(None)
            elif (effect := self._handed_over()) is not None:
                await self._go_on(turn.ahead(self._terms.clock(), effect))
            else:
                return None
        finally:
            if self._stream.failed:
                turn.close(FAILED)
        run = self._stream.run
        if run is None or self._handed_over() is None:
            turn.close(OVER if run is None or run.ended else WAITS)
            return None
        return tuple(result for result in run.turn.results if result is not None)

    async def _next(self) -> PendingTurn | None:
        was_cut = self._stream.cut
        if was_cut:
            await self._go_on(None)
        if self._turn is not None and (effect := self._handed_over()) is not None:
            steered = self._turn.steered(self._terms.clock(), effect)
            self._settle_turn()
            await self._go_on(steered)
        elif self._turn is None and not was_cut:
            await self._go_on(None)
        self._settle_turn()
        while (effect := self._handed_over()) is not None:
            run = self._stream.run
            assert run is not None, "a run that hands over has started"
            if not effect.tools_ran or self._was_pending(effect):
                self._turn = PendingTurn(self, run, tools_ran=effect.tools_ran)
                return self._turn
            await self._go_on(Steered(self._terms.clock(), effect.id))
        return None

    async def _go_on(self, answer: Steered | None) -> None:
        await self._stream.go_on(answer, self._on_part)

    def _settle_turn(self) -> None:
        if self._turn is not None:
            self._turn.close()
            self._turn = None

    def _was_pending(self, effect: AwaitCaller) -> bool:
        """Whether this turn, whose tools have run, was already pending when the run was resumed."""
        found = self._stream.found
        return found is not None and effect.id in found.pending

    def _handed_over(self) -> AwaitCaller | None:
        run = self._stream.run
        if run is None or self._stream.over:
            return None  # A failed stream accepts no answer, even if its run waits for one.
        pending = run.pending.values()
        return next((effect for effect in pending if isinstance(effect, AwaitCaller)), None)


def _not_run(call: ToolCall) -> ToolResult:
    return ToolResult("", call.id, call.name, "Not run: the turn is still in hand.", "not_run")
