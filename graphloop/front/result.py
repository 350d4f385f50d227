"""RunResult: what a run came to, as a reading of its last state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar, final

from ..effects import AskHuman, CallTool
from ..graph import Graph
from ..nodes.stop_check import StopCheck
from ..run import EndReason, Run, Spent, StepResult
from ..stop import CostExceeds
from ..stores.base import Store
from ..values import FinishReason, Message, Usage

__all__ = ["Pending", "RunResult", "unseen_costs"]

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Pending:
    """A call that waits for somebody outside: for a decision, or for a client tool's result.

    Answer it by its `key` in `resume(approvals={key: …})` or `resume(tool_results={key: …})`.
    """

    kind: Literal["approval", "client_tool"]
    key: str
    call_id: str
    name: str
    arguments: str


@final
@dataclass(frozen=True)
class RunResult(Generic[S]):
    """The result of a run that ended or parked.

    `run` is the whole last state; everything else is read from it. `store` holds the journal.
    `before` is what earlier legs had spent when this leg began.
    """

    run: Run[S]
    store: Store = field(repr=False, compare=False)
    before: Spent = Spent()
    warnings: tuple[str, ...] = ()

    @property
    def run_id(self) -> str:
        """The run's id, for stores and `resume`."""
        return self.run.id

    @property
    def state(self) -> S:
        """The user's state."""
        return self.run.state

    @property
    def steps(self) -> tuple[StepResult, ...]:
        """All turns, in order, the last one included."""
        return tuple(self.run.steps)

    @property
    def text(self) -> str:
        """The text of the last turn."""
        return self.run.steps[-1].text if self.run.steps else ""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages this run added, and only those: `history += result.messages`."""
        return tuple(self.run.added)

    @property
    def total_usage(self) -> Usage:
        """Tokens of the whole run: retries and critics included."""
        return self.run.spent.usage

    @property
    def usage(self) -> Usage:
        """Tokens of this leg: since the start, or since the run was resumed."""
        total, before = self.run.spent.usage, self.before.usage
        return Usage(
            total.input_tokens - before.input_tokens,
            total.output_tokens - before.output_tokens,
            total.cache_read_tokens - before.cache_read_tokens,
            total.cache_write_tokens - before.cache_write_tokens,
            total.reasoning_tokens - before.reasoning_tokens,
        )

    @property
    def cost_usd(self) -> float | None:
        """The cost of the whole run in US dollars; None if no price was known for a call."""
        spent = self.run.spent
        return None if spent.unpriced_calls else spent.cost_usd

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the model stopped in its last turn; None if it never answered."""
        return self.run.steps[-1].finish_reason if self.run.steps else None

    @property
    def end_reason(self) -> EndReason:
        """Why the run ended; `parked` if it waits for an answer from outside."""
        return self.run.ending.reason if self.run.ending and self.run.ended else EndReason.PARKED

    @property
    def stopped_by(self) -> tuple[str, ...]:
        """Every bound and condition that tripped, by name."""
        return self.run.ending.stopped_by if self.run.ending else ()

    @property
    def pending(self) -> tuple[Pending, ...]:
        """What a parked run waits for, in request order."""
        waiting = [one for one in self.run.pending.values() if isinstance(one, AskHuman | CallTool)]
        return tuple(
            Pending(
                "approval" if isinstance(one, AskHuman) else "client_tool",
                one.key,
                one.call.id,
                one.call.name,
                one.call.arguments,
            )
            for one in waiting
        )

    @property
    def provider_metadata(self) -> str:
        """What the provider said beside the last message, as JSON text; empty if nothing."""
        return self.run.steps[-1].metadata if self.run.steps else ""


def unseen_costs(graph: Graph[S], run: Run[S]) -> tuple[str, ...]:
    """Return a warning for each bound on the cost of a run that could not see all of it."""
    unseen, calls = run.spent.unpriced_calls, run.spent.model_calls
    if not unseen:
        return ()
    checks = [node for node in graph.nodes.values() if isinstance(node, StopCheck)]
    bounds = [one for check in checks for one in check.conditions if isinstance(one, CostExceeds)]
    return tuple(
        f"stop.cost_exceeds({one.usd_max:g}) did not count {unseen} of {calls} model calls: their "
        "price is not known. Give `price=`, or bound the run by stop.total_tokens_exceed"
        for one in bounds
    )
