"""RunLog: an observer that writes a line to the logger `graphloop` for each turn and each end.

The lines have numbers and names, never prompts, arguments, results or answers. A run gets this
observer if the logger takes INFO when the run starts or resumes; else no line is computed.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from msgspec import Struct

from ..events import Resumed, Started
from ..graph import NodeGraph
from ..run import Run
from ..step import Step
from ..turn import StepResult
from ..values import evolve
from .observers import Observers

__all__ = ["LOG", "RunLog", "logged"]

LOG: Final = logging.getLogger("graphloop")


class _Told(Struct, frozen=True):
    """The part of a run that the log has told: its turns, and the time and cost of the last one."""

    turns: int
    at: float
    cost_usd: float
    unpriced: int


class RunLog(Struct, eq=False):
    """Writes the log of one run and its child runs; each run gets a log of its own.

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
            self._seen[run.id] = _told(run)
            verb = "starts" if isinstance(event, Started) else "resumes"
            LOG.info("run %s %s: %s", run.id, graph.name, verb, extra=_extra(run, graph))
        before = self._seen[run.id]
        for turn in run.record.steps[before.turns :]:
            self._turn(turn, before, run, graph)
            before = self._seen[run.id] = evolve(_told(run), turns=before.turns + 1)
        if run.ended:
            assert run.ending is not None, "a run that is over has an ending"
            failure = run.ending.failure
            why = "" if failure is None else f" ({failure.error})"
            self._ends(run, graph, run.ending.reason.value, why)

    def rest(self, run: Run[Any], /) -> None:
        """Write a line for a run that rests before its end: it is parked, or was left."""
        if run.id in self._seen:
            waits = ", ".join(type(effect).__name__ for effect in run.pending.values())
            LOG.info("run %s rests; waits for: %s", run.id, waits, extra={"run_id": run.id})
            self._seen.clear()

    def _turn(self, turn: StepResult, before: _Told, run: Run[Any], graph: NodeGraph[Any]) -> None:
        usage, seconds = turn.usage, max(0.0, run.at - before.at)
        priced = run.spent.unpriced_calls == before.unpriced
        cost_usd = run.spent.cost_usd - before.cost_usd if priced else None
        extra = _extra(run, graph) | {
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
            _counted(len(turn.tool_calls), "call"),
            extra["tokens_in"],
            usage.output_tokens,
            "cost unknown" if cost_usd is None else f"${cost_usd:.6f}",
            seconds,
            extra=extra,
        )

    def _ends(self, run: Run[Any], graph: NodeGraph[Any], reason: str, why: str) -> None:
        LOG.info(
            "run %s %s: %s%s after %s, %s, %.3f s",
            run.id,
            graph.name,
            reason,
            why,
            _counted(len(run.record.steps), "step"),
            _counted(run.spent.usage.total_tokens, "token"),
            run.spent.seconds,
            extra=_extra(run, graph) | {"end_reason": reason},
        )
        self._seen.pop(run.id, None)


def logged(observers: Observers | None) -> Observers:
    """Return the observers with a log for one run; a child run has the log of its parent."""
    each = () if observers is None else observers.each
    return Observers((RunLog(), *each))


def _told(run: Run[Any]) -> _Told:
    spent = run.spent
    return _Told(len(run.record.steps), run.at, spent.cost_usd, spent.unpriced_calls)


def _extra(run: Run[Any], graph: NodeGraph[Any]) -> dict[str, object]:
    return {"run_id": run.id, "agent": graph.name}


def _counted(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}"
