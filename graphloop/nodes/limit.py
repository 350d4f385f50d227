"""limit: a node that bounds a cycle in a user's own graph.

The count is a part of the run, so it survives a crash. Like every node that re-opens a loop, the
node also stops when the budget is spent or the caller has stopped the run.
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

    When the node stops the run at this number, the run's `stopped_by` has the node's name. So a
    caller can see that the answer was accepted only because the limit was reached.

    Args:
        times: the most times that a run leaves by `Go`.
        name: the node's name; limits with different names have different counts.

    Raises:
        ConfigError: `times` is not a whole number of at least 1.
    """

    times: int
    name: str = "limit"
    kind: Literal["stop"] = "stop"
    outcomes = outcomes_of(LimitOutcome)

    def __post_init__(self) -> None:
        """Check that `times` is a whole number of at least 1."""
        super().__post_init__()
        whole_number(f"times of {self.name}", self.times)

    @property
    def contract(self) -> Contract:
        """Promises for the proofs: the node leaves by `Go` at most `times` times in a run."""
        return Contract(
            caps={Go: Cap(self.times, instead=Stop)}, moves={Stop: frozenset({"end", "perhaps"})}
        )

    @property
    def _counter_name(self) -> str:
        # The prefix separates this counter from the counters of other nodes with the same name.
        return f"limit:{self.name}"

    def enter(self, run: Run[S], /) -> Reaction[S, LimitOutcome]:
        """Leave by `Stop` if the run must end here; else count the visit and leave by `Go`."""
        if run.was_stopped:
            return Leave(run, Stop())
        count, ending = run.counters.by_node.get(self._counter_name, 0), self._ending_of(run)
        if ending is not None:
            return Leave(ended_by(run, ending), Stop())
        return Leave(clear_ending(with_count(run, self._counter_name, count + 1)), Go())

    def on(
        self, run: Run[S], event: Event, answered: Effect | None, /
    ) -> Reaction[S, LimitOutcome]:
        """Raise AssertionError: this node requests no effects, so no event is for it."""
        raise AssertionError(f"{self.name!r} waits for nothing, got {type(event).__name__}")

    def _ending_of(self, run: Run[S]) -> Ending | None:
        """Return the ending if the run is stopped, over budget, or at `times`; else None."""
        if run.inbox.stopping is not None:
            return Ending(EndReason.ABORTED, (run.inbox.stopping or "aborted",))
        if spent := run.setup.budget.tripped(run.spent):
            return Ending(EndReason.BUDGET, spent)
        if run.counters.by_node.get(self._counter_name, 0) >= self.times:
            return Ending(EndReason.STOP_CONDITION, (self.name,))
        return None
