"""RunHandle: a run that is ready to be driven, and its result or error in the end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

from ..driver import AsyncDriver, Ports, Seen
from ..effects import AwaitCaller
from ..errors import OutputInvalid, RunFailed
from ..events import Steered
from ..graph import NodeGraph
from ..limits import CostExceeds, TotalTokensExceed, parts_of
from ..nodes import PrepareStep, StopCheck
from ..rules import describe_rule
from ..run import EndReason, Run, Spent
from ..turn import StepResult
from ..values import FinishReason, Message
from .final_answer import OUTPUT, FinalAnswer
from .result import RunResult

__all__ = ["RunHandle", "shortfalls", "unseen_costs"]

S = TypeVar("S")

ANSWERED: Final = {None, EndReason.COMPLETED, EndReason.ERROR}
"""Endings of a run that has its output, or raises; None for a run without an `output_type`."""


@dataclass(frozen=True)
class RunHandle(Generic[S]):
    """A run that is ready to be driven.

    Args:
        graph: its graph.
        ports: its world.
        driver: drives it.
        seen: its steps and deltas; the first read starts them.
        before: the spending of earlier legs.
        reported: how many turns were reported before.
        on_step_finish: called with each further turn.
        warnings: the first warnings.
        children: its children that started in earlier legs, by their ids.
        final: how its final answer is given, where it has a form.
        opening: the conversation that it began with.
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
        """Whether the run waits for the caller who iterates it."""
        run = self.driver.run
        return run is not None and any(isinstance(one, AwaitCaller) for one in run.pending.values())

    def has_taken(self, answer: Steered | None) -> bool:
        """Whether the run has started, and no change of the caller's is lost."""
        run = self.driver.run
        return run is not None and (answer is None or answer.effect not in run.pending)

    def again(self, answer: Steered | None = None, *, cut: bool = False) -> RunHandle[S]:
        """Return the same, to be driven further from where its driver has left it.

        Args:
            answer: answers the pending effect.
            cut: whether its driver was cancelled, so that its effects were interrupted.
        """
        run = self.driver.run
        assert run is not None, "what is driven further has started"
        answers = () if answer is None else (answer,)
        return replace(self, seen=self.driver.resume(run, answers, at_once=not cut))

    def findings(self, run: Run[S]) -> tuple[str, ...]:
        """Return the warnings about a run that was driven."""
        below = {**self.children, **self.driver.children.descendants}
        of_children = [f"{key}: {one}" for key, child in below.items() for one in shortfalls(child)]
        reason = run.ending.reason if self.final and run.ended and run.ending else None
        lacking = f"`output` is None: the run ended by `{reason}` before it had one"
        warned = run.record.warnings
        told = warned if reason in ANSWERED else (lacking, *warned)
        return (*told, *unseen_costs(self.graph, run), *shortfalls(run), *of_children)

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
        reason = run.ending.reason if run.ending is not None and run.ended else None
        if reason is EndReason.ERROR:
            return self.driver.exception or self._recorded(run)
        if self.final is None or reason is not EndReason.COMPLETED:
            return result
        return replace(result, output=self.final.answer(run))

    def _recorded(self, run: Run[S]) -> Exception:
        """Return the recorded failure of a run that ended in another process."""
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


def shortfalls(run: Run[Any]) -> tuple[str, ...]:
    """Return a warning for each rule that a run has not kept, and each answer that may be cut.

    A server that ends a turn by a word that no wire knows may have cut its answer.
    """
    monitor = run.watch.monitor
    broken = monitor.broken if monitor.automata else ()
    owed = monitor.owed if monitor.automata and run.ended else ()
    cut = [one for one in run.record.steps if one.finish_reason is FinishReason.OTHER]
    return (
        *[f"the rule {describe_rule(one)!r} was broken" for one in broken],
        *[f"the rule {describe_rule(one)!r} is still owed, and the run is over" for one in owed],
        *[
            f"turn {step.index}: expected a finish reason that the wire knows, found "
            f"{step.raw_finish_reason!r}. The answer may be cut, so its calls did not run"
            for step in cut
        ],
    )


def unseen_costs(graph: NodeGraph[S], run: Run[S]) -> tuple[str, ...]:
    """Return a warning for each bound of a run that cannot count all model calls so far."""
    spent, limit = run.spent, run.setup.budget
    unpriced, untold = spent.unpriced_calls, spent.unreported_calls
    bounds = [(f"budget(usd={limit.usd or 0:g})", limit.usd is not None and unpriced)]
    bounds += [(f"budget(tokens={limit.tokens})", limit.tokens is not None and untold)]
    for node in graph.nodes.values() if unpriced or untold else ():
        if isinstance(node, PrepareStep) and node.compaction is not None:
            bounds += [(f"Compaction(context_window={node.compaction.context_window})", untold)]
        for condition in node.conditions if isinstance(node, StopCheck) else ():
            for one in parts_of(condition):
                if isinstance(one, CostExceeds):
                    bounds += [(f"stop.cost_exceeds({one.usd_max:g})", unpriced)]
                elif isinstance(one, TotalTokensExceed):
                    bounds += [(f"stop.total_tokens_exceed({one.tokens_max})", untold)]
    why = "a server told no usage" if untold else "a price is not known"
    fix = "bound the run by steps or seconds" if untold else "give `prices=` or `price=`"
    if not limit.refuse_uncounted:
        fix += ", or end such a run by budget(refuse_uncounted=True)"
    return tuple(
        f"{bound} cannot count all model calls: {why}. Fix: {fix}"
        for bound, unseen in bounds
        if unseen
    )
