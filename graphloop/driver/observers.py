"""Observers: the caller's objects that see each step of a run, and surround its effects.

The option `watch` takes observers. An observer only looks: its error becomes a warning of the run,
and the run goes on. A run without observers pays nothing for them. `RunLog` is the observer that
writes to the logger `graphloop`.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Generator, Sequence
from contextlib import AbstractContextManager, aclosing, contextmanager
from inspect import iscoroutinefunction
from typing import Any, Final, Protocol, TypeVar, cast, runtime_checkable

from msgspec import Struct

from ..effects import Effect
from ..errors import ConfigError, known_name
from ..events import Resumed, Started
from ..graph import NodeGraph
from ..run import Run
from ..step import Step
from ..turn import StepResult
from ..values import evolve

__all__ = ["Observer", "Observers", "Resting", "RunLog", "Surrounding", "logged", "observers_of"]

T = TypeVar("T")

LOG: Final = logging.getLogger("graphloop")


class Observer(Protocol):
    """An object that sees every journaled step of a run and of its child runs.

    An observer may also have the methods of `Surrounding` and `Resting`. Example:

        class Count:
            def see(self, step, graph, path):
                print(path, type(step.event).__name__, "->", step.run.node)

        agent = Agent("openai:gpt-5", watch=[Count()])
    """

    def see(self, step: Step[Any], graph: NodeGraph[Any], path: tuple[str, ...], /) -> object:
        """See a step after its event is journaled, and before its effects start.

        Args:
            step: the event, the run after the event, and the new effects.
            graph: the graph of the run.
            path: the keys of the calls that started the parent agents, outermost first; empty for
                a run without a parent.
        """
        ...


@runtime_checkable
class Surrounding(Protocol):
    """An observer that also surrounds the effects of a run, such as to set a context variable."""

    def around(self, effect: Effect, run: Run[Any], /) -> AbstractContextManager[object]:
        """Return the context in which the driver performs an effect.

        The driver enters the context once for a tool, a check, a question or a function. For a
        model call it enters a new context for each item of the reply, and leaves the context
        before the caller gets the item. A child run has no context; its own effects have theirs.
        """
        ...


@runtime_checkable
class Resting(Protocol):
    """An observer that is also told when a run rests."""

    def rest(self, run: Run[Any], /) -> object:
        """Hear that a run has ended, is parked, or was left; its child runs rest with it."""
        ...


class Observers(Struct, frozen=True):
    """The observers of a run, each called in order.

    The methods add the exception of an observer to `wrong`, the warnings of the run, which goes on.
    """

    each: tuple[Observer, ...]

    def joined(self, other: Observers | None) -> Observers:
        """Return these observers and the others, each once: a child run has its parent's too."""
        more = () if other is None else other.each
        return Observers((*self.each, *[one for one in more if one not in self.each]))

    def see(
        self,
        steps: Sequence[Step[Any]],
        graph: NodeGraph[Any],
        path: tuple[str, ...],
        wrong: dict[str, None],
    ) -> None:
        """Show journaled steps to each observer."""
        for step in steps:
            for observer in self.each:
                try:
                    observer.see(step, graph, path)
                except BaseException as error:  # noqa: BLE001 - `_note_error` raises what is not its own
                    _note_error(observer, "see", error, wrong)

    def rest(self, run: Run[Any], wrong: dict[str, None]) -> None:
        """Tell each observer that can hear it that a run rests."""
        for observer in self.each:
            if isinstance(observer, Resting):
                try:
                    observer.rest(run)
                except BaseException as error:  # noqa: BLE001 - as in `see`
                    _note_error(observer, "rest", error, wrong)

    @contextmanager
    def around(self, effect: Effect, run: Run[Any], wrong: dict[str, None]) -> Generator[None]:
        """Enter the context of each observer that has one; no context can swallow an exception."""
        entered: list[tuple[Observer, AbstractContextManager[object]]] = []
        for observer in self.each:
            if isinstance(observer, Surrounding):
                try:
                    context = observer.around(effect, run)
                    context.__enter__()
                    entered.append((observer, context))
                except BaseException as error:  # noqa: BLE001 - as in `see`
                    _note_error(observer, "around", error, wrong)
        try:
            yield
        finally:
            for observer, context in reversed(entered):
                try:
                    context.__exit__(None, None, None)
                except BaseException as error:  # noqa: BLE001 - as in `see`
                    _note_error(observer, "around", error, wrong)

    def around_each(
        self,
        items: AsyncGenerator[T, None],
        effect: Effect,
        run: Run[Any],
        wrong: dict[str, None],
    ) -> AsyncGenerator[T, None]:
        """Yield the items of a model's reply; only the wait for an item is surrounded."""
        coming: Awaitable[T] | None = anext(items)  # Now: the caller decides who may close them.

        async def surrounded() -> AsyncGenerator[T, None]:
            nonlocal coming
            async with aclosing(items):
                while True:
                    try:
                        with self.around(effect, run, wrong):
                            item = await (coming or anext(items))
                    except StopAsyncIteration:
                        return
                    coming = None
                    yield item

        return surrounded()


class _Told(Struct, frozen=True):
    """The part of a run that the log has told: its turns, and the time and cost of the last one."""

    turns: int
    at: float
    cost_usd: float
    unpriced: int


class RunLog(Struct, eq=False):
    """An observer that logs a line for each turn and each end; each run gets a log of its own.

    The lines have numbers and names, never prompts, arguments, results or answers. A run gets this
    observer if the logger takes INFO when the run starts or resumes; else no line is computed.

    Each line has its values as attributes of the record, too, for a formatter that writes JSON:
    `run_id`, `agent`, and for a turn `step`, `model`, `finish`, `tokens_in`, `tokens_out`,
    `cost_usd` (None if a price is not known) and `seconds`.
    """

    _seen: dict[str, _Told] = {}

    def __eq__(self, other: object) -> bool:
        # A child run is logged by the log of its parent, and needs no second one.
        return isinstance(other, RunLog)

    def __hash__(self) -> int:
        return hash(RunLog)

    def see(self, step: Step[Any], graph: NodeGraph[Any], _: tuple[str, ...], /) -> None:
        """Write a line for each turn that this step ends, and for the end of the run."""
        run, event = step.run, step.event
        if isinstance(event, Started | Resumed) or run.id not in self._seen:
            self._seen[run.id] = _told_so_far(run)
            verb = "starts" if isinstance(event, Started) else "resumes"
            LOG.info("run %s %s: %s", run.id, graph.name, verb, extra=_log_fields(run, graph))
        before = self._seen[run.id]
        for turn in run.record.steps[before.turns :]:
            self._log_turn(turn, before, run, graph)
            before = self._seen[run.id] = evolve(_told_so_far(run), turns=before.turns + 1)
        if run.ended:
            assert run.ending is not None, "a run that is over has an ending"
            failure = run.ending.failure
            why = "" if failure is None else f" ({failure.error})"
            self._log_end(run, graph, run.ending.reason.value, why)

    def rest(self, run: Run[Any], /) -> None:
        """Write a line for a run that rests before its end: it is parked, or was left."""
        if run.id in self._seen:
            waits = ", ".join(type(effect).__name__ for effect in run.pending.values())
            LOG.info("run %s rests; waits for: %s", run.id, waits, extra={"run_id": run.id})
            self._seen.clear()

    def _log_turn(
        self, turn: StepResult, before: _Told, run: Run[Any], graph: NodeGraph[Any]
    ) -> None:
        usage, seconds = turn.usage, max(0.0, run.at - before.at)
        priced = run.spent.unpriced_calls == before.unpriced
        cost_usd = run.spent.cost_usd - before.cost_usd if priced else None
        extra = _log_fields(run, graph) | {
            "step": turn.index,
            "model": turn.model,
            "finish": turn.finish_reason.value,
            "tokens_in": usage.total_tokens - usage.output_tokens,
            "tokens_out": usage.output_tokens,
            "cost_usd": cost_usd,
            "seconds": seconds,
        }
        LOG.info(
            "run %s %s: step %d by %s: %s, %s, %d + %d tokens, %s, %.3f s",
            run.id,
            graph.name,
            turn.index,
            turn.model or "no model",
            turn.finish_reason.value,
            _count_text(len(turn.tool_calls), "call"),
            extra["tokens_in"],
            usage.output_tokens,
            "cost unknown" if cost_usd is None else f"${cost_usd:.6f}",
            seconds,
            extra=extra,
        )

    def _log_end(self, run: Run[Any], graph: NodeGraph[Any], reason: str, why: str) -> None:
        LOG.info(
            "run %s %s: %s%s after %s, %s, %.3f s",
            run.id,
            graph.name,
            reason,
            why,
            _count_text(len(run.record.steps), "step"),
            _count_text(run.spent.usage.total_tokens, "token"),
            run.spent.seconds,
            extra=_log_fields(run, graph) | {"end_reason": reason},
        )
        self._seen.pop(run.id, None)


def logged(observers: Observers | None) -> Observers:
    """Return the observers with a log for one run; a child run has the log of its parent."""
    each = () if observers is None else observers.each
    return Observers((RunLog(), *each))


def observers_of(given: object) -> Observers | None:
    """Return the observers of the option `watch`; None if there are none.

    Raises:
        ConfigError: `given` is no sequence, or an item of it has no method `see`.
    """
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise ConfigError(
            f"`watch`: expected a list of observers, found {given!r:.80}. Fix: write watch=[…]."
        )
    observers = cast("Sequence[Observer]", given)  # `see` is looked for below.
    for place, observer in enumerate(observers):
        see: object = None if isinstance(observer, type) else getattr(observer, "see", None)
        if not callable(see) or iscoroutinefunction(see):
            raise ConfigError(
                f"`watch[{place}]`: expected an object with a method see(step, graph, path) that "
                f"is not async, found {observer!r:.80}. Fix: give an instance of a class that has "
                "it."
            )
    return Observers(tuple(observers)) if observers else None


def _note_error(
    observer: Observer, method: str, error: BaseException, wrong: dict[str, None]
) -> None:
    """Note an observer's error as a warning, once; an exit of the interpreter passes through."""
    if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
        raise error
    said = f"`watch`: {type(observer).__name__}.{method} raised {known_name(error)}: {error}"
    if said not in wrong:
        wrong[said] = None
        LOG.warning("%s", said, exc_info=error)


def _told_so_far(run: Run[Any]) -> _Told:
    spent = run.spent
    return _Told(len(run.record.steps), run.at, spent.cost_usd, spent.unpriced_calls)


def _log_fields(run: Run[Any], graph: NodeGraph[Any]) -> dict[str, object]:
    return {"run_id": run.id, "agent": graph.name}


def _count_text(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}"
