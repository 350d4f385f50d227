"""Opened: a run that is ready to be driven, and what it has come to in the end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

from ..driver import AsyncDriver, DriverState, Ports, Seen
from ..effects import AwaitCaller
from ..errors import OutputInvalid, RunFailed
from ..events import Steered
from ..graph import Graph
from ..run import EndReason, Run, Spent
from ..turn import StepResult
from ..values import Message
from .final_answer import FinalAnswer
from .result import RunResult, unkept_rules, unknown_words, unseen_costs
from .standard import OUTPUT

__all__ = ["RunHandle"]

S = TypeVar("S")

ANSWERED: Final = {None, EndReason.COMPLETED, EndReason.ERROR}
"""How a run ends that has its output, or raises; None where there is nothing to lack."""


@dataclass(frozen=True)
class RunHandle(Generic[S]):
    """A run that is ready to be driven.

    Args:
        graph: what it runs through.
        ports: its world.
        driver: drives it.
        seen: what is seen of it, once somebody looks.
        before: what earlier legs have spent.
        reported: how many turns were reported before.
        on_step_finish: told of each further turn.
        warnings: what is told first.
        children: the runs below it that began in earlier legs, by their ids.
        final: how its final answer is given, where it has a form.
        opening: the conversation that it began with.
    """

    graph: Graph[S]
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
        """Whether the run waits for the caller who iterates it."""
        run = self.driver.run
        return run is not None and any(isinstance(one, AwaitCaller) for one in run.pending.values())

    @property
    def rests(self) -> bool:
        """Whether the run has ended, or waits for somebody outside: nothing is left undone."""
        return self.driver.state in {DriverState.ENDED, DriverState.PARKED}

    def has_taken(self, answer: Steered | None) -> bool:
        """Whether the run has begun, and no say in it is lost."""
        run = self.driver.run
        return run is not None and (answer is None or answer.effect not in run.pending)

    def again(self, answer: Steered | None = None, *, cut: bool = False) -> RunHandle[S]:
        """Return the same, to be driven further from where its driver has left it.

        Args:
            answer: answers what the run waits for.
            cut: whether its driver was cancelled, so that what had begun was interrupted.
        """
        run = self.driver.run
        assert run is not None, "what is driven further has started"
        answers = () if answer is None else (answer,)
        return replace(self, seen=self.driver.resume(run, answers, at_once=not cut))

    def findings(self, run: Run[S]) -> tuple[str, ...]:
        """Return what the caller must know of a run that was driven, beside its result."""
        below = {**self.children, **self.driver.children.descendants}
        of_children = [
            f"{key}: {one}"
            for key, child in below.items()
            for one in (*unkept_rules(child), *unknown_words(child))
        ]
        reason = run.ending.reason if self.final and run.ended and run.ending else None
        lacking = f"`output` is None: the run ended by `{reason}` before it had one"
        warned = run.record.warnings
        told = warned if reason in ANSWERED else (lacking, *warned)
        own = (*unseen_costs(self.graph, run), *unkept_rules(run), *unknown_words(run))
        return (*told, *own, *of_children)

    def ended(self, run: Run[S], warnings: Sequence[str]) -> RunResult[S] | Exception:
        """Return the result of the run that was driven, or the error that it ended in."""
        ports = self.ports
        result = RunResult(
            run,
            ports.store,
            self.before,
            (*warnings, *self.driver.children.busy, *ports.wrong),
            {**self.children, **self.driver.children.descendants},
            secret=ports.secret,
            added=ports.toolbox.added,
            opening=self.opening,
        )
        if result.end_reason is EndReason.ERROR:
            return self.driver.exception or self._recorded(run)
        if self.final is None or result.end_reason is not EndReason.COMPLETED:
            return result
        return replace(result, output=self.final.answer(run))

    def _recorded(self, run: Run[S]) -> Exception:
        """Return the failure that a run has on record, where no exception of this process tells."""
        failure = None if run.ending is None else run.ending.failure
        if failure is None:
            return RunFailed("unknown")
        if failure.error != OutputInvalid.__name__:
            return RunFailed(f"{failure.error}: {failure.message}")
        said = "" if self.final is None or not run.record.steps else self.final.said(run)
        times = run.counters.rejections.get(OUTPUT, 0)
        return OutputInvalid(
            f"`output_type`: expected an answer of this type, found none; it was sent back "
            f"{times} time(s). As the model reads it: {failure.message}",
            text=said,
        )
