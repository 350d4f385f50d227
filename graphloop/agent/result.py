"""RunResult: the outcome of a run, read from its last state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, final

from ..conversation import latest_answer
from ..driver import Pending, pending_of
from ..effects import StartRun
from ..nodes import recorded
from ..rules import TemporalRule
from ..run import EndReason, Run, Spent
from ..stores import Store
from ..tools import AnyTool
from ..turn import StepResult
from ..values import FinishReason, Message, Usage
from .handed_in import bind_token, conversation_digest

__all__ = ["RunResult", "spent_by"]

S = TypeVar("S")


@final
@dataclass(frozen=True)
class RunResult(Generic[S]):
    """The result of a run that ended or parked.

    `run` is the whole last state; everything else is read from it. `store` holds the journal.
    `before` is the spending of earlier legs; `children` are the children at any depth that this
    process has seen, by their ids; `output` is the answer as the agent's
    `output_type`, or None. `added` are the tools that were added to the run, `opening` is the
    conversation that it began with.
    """

    run: Run[S]
    store: Store = field(repr=False, compare=False)
    before: Spent = Spent()
    warnings: tuple[str, ...] = ()
    children: Mapping[str, Run[Any]] = field(default_factory=dict[str, Run[Any]], repr=False)
    output: object = None
    secret: bytes | None = field(default=None, repr=False, compare=False)
    added: tuple[AnyTool, ...] = field(default=(), repr=False, compare=False)
    opening: tuple[Message, ...] = field(default=(), repr=False, compare=False)

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
        """All turns, in order, the last one included: also the one in which a run is parked.

        That one has the results that are there already, and the same index once it is resumed.
        """
        return (*self.run.record.steps, *self._open)

    @property
    def text(self) -> str:
        """The run's answer: of the last turn, as a person approved it, or the other agent's."""
        return latest_answer(self.run)

    @property
    def partial_text(self) -> str:
        """The text of a reply that was cut off when the run was stopped; no message holds it."""
        return self.run.ending.said if self.run.ending is not None else ""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages this run added, and only those: `history += result.messages`.

        A parked run's end in the calls that wait, and the results that are there already.
        """
        return (*self.run.record.added, *[one for step in self._open for one in step.messages])

    @property
    def _open(self) -> tuple[StepResult, ...]:
        """The turn in which the run is parked, if it is in one."""
        turn, reply = self.run.turn, self.run.turn.reply
        if self.run.ended or reply is None or turn.dropped or turn.number < 0:
            return ()
        finished = tuple([result for result in turn.results if result is not None])
        return (recorded(turn, reply, finished, (reply.message, *finished)),)

    @property
    def total_usage(self) -> Usage | None:
        """Tokens of the whole run: retries, checks, summaries and child runs included.

        Where some servers told no usage, these are the tokens of the others; where none did, None.
        """
        return spent_by(self.run, self.children).told_usage

    @property
    def usage(self) -> Usage | None:
        """Tokens of this leg: since the start, or since the run was resumed."""
        spent, earlier = spent_by(self.run, self.children), self.before
        total, before = spent.usage, earlier.usage
        untold = spent.unreported_calls - earlier.unreported_calls
        if untold and total.total_tokens == before.total_tokens:
            return None
        return Usage(
            total.input_tokens - before.input_tokens,
            total.output_tokens - before.output_tokens,
            total.cache_read_tokens - before.cache_read_tokens,
            total.cache_write_tokens - before.cache_write_tokens,
            total.reasoning_tokens - before.reasoning_tokens,
            total.server_tool_calls - before.server_tool_calls,
            total.untold_attempts - before.untold_attempts,
        )

    @property
    def cost_usd(self) -> float | None:
        """The cost of the whole run in US dollars; None if no price was known for a call."""
        spent = spent_by(self.run, self.children)
        return None if spent.unpriced_calls else spent.cost_usd

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the model stopped in its last turn; None if it never answered."""
        return self.steps[-1].finish_reason if self.steps else None

    @property
    def end_reason(self) -> EndReason:
        """Why the run ended; `parked` if it waits for an answer from outside."""
        return self.run.ending.reason if self.run.ending and self.run.ended else EndReason.PARKED

    @property
    def stopped_by(self) -> tuple[str, ...]:
        """Every bound and condition that tripped, by name."""
        return self.run.ending.stopped_by if self.run.ending else ()

    @property
    def broken_rules(self) -> tuple[TemporalRule, ...]:
        """The temporal rules of this run that were broken: no gate can stop a node."""
        return self.run.watch.monitor.broken

    @property
    def owed_rules(self) -> tuple[TemporalRule, ...]:
        """The temporal rules that ask for something which has not happened; over, it never will."""
        return self.run.watch.monitor.owed

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The questions of a parked run and its children, in request order.

        A token is good for the run, and for `[*history, *messages]` handed in without it. Questions
        of a child run are answered by `resume` only: no conversation tells that the child started.
        """
        if self.run.ended:
            return ()
        asked = tuple(pending_of(self.run, self.children, self.secret))
        conversation = conversation_digest((*self.opening, *self.messages)) if asked else ""
        return tuple([bind_token(one, conversation, self.secret) for one in asked])

    @property
    def provider_metadata(self) -> str:
        """The provider's own fields of the last reply, as JSON text; empty if it has none."""
        return self.steps[-1].metadata if self.steps else ""


def spent_by(run: Run[Any], children: Mapping[str, Run[Any]]) -> Spent:
    """Return the spending of a run and of its parked children, which it has not counted yet."""
    spent = run.spent
    for effect in run.pending.values():
        if isinstance(effect, StartRun) and (child := children.get(f"{run.id}/{effect.key}")):
            spent += spent_by(child, children)
    return spent
