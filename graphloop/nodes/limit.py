"""limit: the bound of a cycle in a graph of your own.

It counts in the run itself, so a process that comes after a crash counts on. Like every node that
re-opens a loop, it heeds the budget, and a stop of the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from ..contract import Cap, Contract
from ..conversation import clear_ending
from ..effects import Effect
from ..events import Event
from ..node_protocol import Leave, Reaction, outcomes_of
from ..outcomes import Go, Stop
from ..run import Ending, EndReason, Run, ended_by, with_count
from ..spending import whole_number
from .frozen_fields import FrozenFields

__all__ = ["Limit", "LimitOutcome"]

S = TypeVar("S")

LimitOutcome: TypeAlias = Go | Stop


@dataclass(frozen=True)
class Limit(FrozenFields):
    """Leave by `Go` at most `times` times in a run, then by `Stop`.

    Once it stops, the run's `stopped_by` has the node's name: an answer that was taken because the
    bound was reached says so.

    Args:
        times: how often a run may leave by `Go`.
        name: the node's name; two limits of one graph count apart.

    Raises:
        ConfigError: `times` is not a whole number of at least 1.
    """

    times: int
    name: str = "limit"
    kind: Literal["stop"] = "stop"
    outcomes = outcomes_of(LimitOutcome)

    def __post_init__(self) -> None:
        """Refuse a bound that bounds nothing."""
        super().__post_init__()
        whole_number(f"times of {self.name}", self.times)

    @property
    def contract(self) -> Contract:
        """It goes on so many times a run."""
        return Contract(caps={Go: Cap(self.times)}, moves={Stop: frozenset({"end", "perhaps"})})

    @property
    def _counter(self) -> str:
        # Other nodes count as well, under names that this one might have.
        return f"limit:{self.name}"

    def enter(self, run: Run[S], /) -> Reaction[S, LimitOutcome]:
        """Count, and go on or stop."""
        if run.was_stopped:
            return Leave(run, Stop())
        count, ending = run.counters.by_node.get(self._counter, 0), self._ending(run)
        if ending is not None:
            return Leave(ended_by(run, ending), Stop())
        return Leave(clear_ending(with_count(run, self._counter, count + 1)), Go())

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, LimitOutcome]:
        """Never happens: this node asks for nothing."""
        raise AssertionError(f"{self.name!r} waits for nothing, got {type(event).__name__}")

    def _ending(self, run: Run[S]) -> Ending | None:
        """Return how the run ends if it must not go on."""
        if run.inbox.stopping is not None:
            return Ending(EndReason.ABORTED, (run.inbox.stopping or "aborted",))
        if spent := run.setup.budget.tripped(run.spent):
            return Ending(EndReason.BUDGET, spent)
        if run.counters.by_node.get(self._counter, 0) >= self.times:
            return Ending(EndReason.STOP_CONDITION, (self.name,))
        return None
