"""RunHandle: a run with everything that drives it, and the warnings about the run."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import sub
from typing import Any, Final, Generic, cast, final

from msgspec.structs import astuple
from typing_extensions import TypeVar

from ..conversation import latest_answer
from ..driver import (
    AsyncDriver,
    DriverState,
    Pending,
    Ports,
    Seen,
    cancelled_inside,
    pending_of,
    unseen_costs,
)
from ..effects import AwaitCaller, StartRun
from ..events import Steered
from ..graph import NodeGraph
from ..nodes import step_result
from ..rules import TemporalRule, describe_rule
from ..run import EndReason, Run, Spent
from ..stores import Store
from ..tools import AnyTool
from ..turn import SCREEN, StepResult
from ..values import AssistantMessage, FinishReason, MediaPart, Message, Usage
from .conversation_answers import bind_token, conversation_digest
from .final_answer import FinalAnswer, answers_of, failure_of, output_from
from .journals import run_display
from .result import RunResult, spent_by

__all__ = ["RESTING", "RunHandle", "inform", "log_warnings"]

S = TypeVar("S", default=None)
T = TypeVar("T")

LOG: Final = logging.getLogger("graphloop")

RESTING: Final = {DriverState.ENDED, DriverState.PARKED}
"""The run has ended, or waits for an answer from outside: no driver has more to do."""


@dataclass(frozen=True)
class RunHandle(Generic[S]):
    """A run with everything that is needed to drive it.

    Args:
        graph: the graph of the run.
        ports: the run's ports: its store, models, tools and functions.
        driver: the driver of the run.
        seen: the steps and deltas of the run; the first read starts the driver.
        before: the spending of the run before it was last resumed.
        reported: the number of turns before the resume, which are not reported again.
        on_step_finish: called with each turn that finishes now.
        warnings: the warnings that are known before the run is driven.
        children: the child runs that existed before the resume, by run id.
        final: reads the final answer of an agent with an `output_type`.
        opening: the conversation that the run began with, without the agent's instructions.
    """

    graph: NodeGraph[S]
    ports: Ports[S]
    driver: AsyncDriver[S]
    seen: AsyncGenerator[Seen[S], None]
    before: Spent = field(default_factory=Spent)
    reported: int = 0
    on_step_finish: Callable[[StepResult], object] | None = None
    warnings: tuple[str, ...] = ()
    children: Mapping[str, Run[Any]] = field(default_factory=dict[str, Run[Any]])
    final: FinalAnswer | None = None
    opening: tuple[Message, ...] = ()

    @property
    def waits(self) -> bool:
        """Whether the run waits for the caller that iterates it to continue it."""
        run = self.driver.run
        pending = () if run is None else run.pending.values()
        return any(isinstance(effect, AwaitCaller) for effect in pending)

    def has_taken(self, answer: Steered | None) -> bool:
        """Whether the run has started, and has taken `answer` for its pending effect."""
        run = self.driver.run
        return run is not None and (answer is None or answer.effect not in run.pending)

    def again(self, answer: Steered | None = None, *, cut: bool = False) -> RunHandle[S]:
        """Return a handle that continues the same run from its current state.

        Args:
            answer: the event that answers the pending effect, or None.
            cut: whether the run's driver was cancelled, so that its effects were interrupted.
        """
        run = self.driver.run
        assert run is not None, "the run has started"
        answers = () if answer is None else (answer,)
        return replace(self, seen=self.driver.resume(run, answers, at_once=not cut))

    def rest(self) -> None:
        """Tell the observers that the run has ended or parked, or that its stream was closed."""
        run, observers = self.driver.run, self.ports.observers
        if run is not None and observers is not None:
            observers.rest(run, self.ports.wrong)

    def findings(self, run: Run[S]) -> tuple[str, ...]:
        """Return the warnings about a run that ended or parked, and about its child runs."""
        here = self.driver.children
        below = {**self.children, **here.descendants} if here.drivers else self.children
        of_children = [
            f"{key}: {warning}" for key, child in below.items() for warning in shortfalls(child)
        ]
        reason = run.ending.reason if self.final and run.ended and run.ending else None
        lacking = f"there is no `output`: the run ended by `{reason}` before it had one"
        doubts = run.record.warnings if reason in ANSWERED else (lacking, *run.record.warnings)
        return (*doubts, *unseen_costs(self.graph, run), *shortfalls(run), *of_children)

    def ended(self, run: Run[S], warnings: Sequence[str]) -> RunResult[Any, S] | Exception:
        """Return the result of a run that ended or parked, or the exception of a failed run."""
        ports, here = self.ports, self.driver.children
        refused = here.busy if here.drivers or here.refused else ()
        if refused:
            log_warnings(run, refused)
        result: RunResult[Any, S] = RunResult(
            run,
            ports.store,
            self.before,
            (*warnings, *refused, *ports.wrong),
            {**self.children, **here.descendants} if here.drivers else self.children,
            secret=ports.secret,
            added=ports.toolbox.added,
            opening=self.opening,
            graph=self.graph,
        )
        reason = run.ending.reason if run.ending is not None and run.ended else None
        if reason is EndReason.ERROR:
            return self.driver.exception or failure_of(run, self.final)
        if self.final is None:
            return result
        return replace(result, answers=answers_of(self.final, run))


def shortfalls(run: Run[Any]) -> tuple[str, ...]:
    """Return a warning for each rule that a run did not keep, and each unknown finish reason."""
    monitor = run.watch.monitor
    broken = monitor.broken if monitor.automata else ()
    owed = monitor.owed if monitor.automata and run.ended else ()
    cut = [step for step in run.record.steps if step.finish_reason is FinishReason.OTHER]
    return (
        *[f"the rule {describe_rule(rule)!r} was broken" for rule in broken],
        *[f"the rule {describe_rule(rule)!r} is still owed, and the run is over" for rule in owed],
        *[
            f"turn {step.index}: expected a finish reason that the wire knows, found "
            f"{step.raw_finish_reason!r}. The answer may be cut, so its calls did not run"
            for step in cut
        ],
    )


def log_warnings(run: Run[Any] | None, warnings: Iterable[str]) -> None:
    """Log the warnings of a run, for a developer who does not look at `RunResult.warnings`."""
    for warning in warnings:
        LOG.warning("run %s: %s", "(not started)" if run is None else run.id, warning)


async def inform(name: str, listener: Callable[[T], object], argument: T) -> tuple[str, ...]:
    """Call a listener, and return a warning if the listener raises an error.

    Args:
        name: the listener's name in warnings.
        listener: a synchronous or asynchronous function.
        argument: the argument of the listener.
    """
    try:
        answer = listener(argument)
        if inspect.isawaitable(answer):
            await cast("Awaitable[object]", answer)
    except asyncio.CancelledError as error:
        return (f"{name} was {cancelled_inside(error)}",)
    except Exception as error:  # noqa: BLE001 - a listener cannot fail a run
        return (f"{name} raised {type(error).__name__}: {error}",)
    return ()
