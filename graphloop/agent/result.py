"""RunResult: what a run came to, as a reading of its last state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, final

from ..conversation import latest_answer
from ..driver import Pending, pending_of
from ..effects import StartRun
from ..graph import Graph
from ..limits import CostExceeds, TotalTokensExceed, parts_of
from ..nodes import PrepareStep, StopCheck, recorded
from ..rules import TemporalRule, describe_rule
from ..run import EndReason, Run, Spent
from ..stores import Store
from ..tools import AnyTool
from ..turn import StepResult
from ..values import FinishReason, Message, Usage
from .handed_in import bind_token, conversation_digest

__all__ = ["RunResult", "spent_by", "unkept_rules", "unknown_words", "unseen_costs"]

S = TypeVar("S")


@final
@dataclass(frozen=True)
class RunResult(Generic[S]):
    """The result of a run that ended or parked.

    `run` is the whole last state; everything else is read from it. `store` holds the journal.
    `before` is what earlier legs had spent when this leg began; `children` are the runs below this
    one that this process has seen, by their ids; `output` is the answer as the agent's
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
        """What a parked run and its children wait for, in request order.

        A token is good for the run, and for `[*history, *messages]` handed in without it. What a
        child run asks is answered by `resume` only: no conversation tells that the child has begun.
        """
        if self.run.ended:
            return ()
        asked = tuple(pending_of(self.run, self.children, self.secret))
        conversation = conversation_digest((*self.opening, *self.messages)) if asked else ""
        return tuple([bind_token(one, conversation, self.secret) for one in asked])

    @property
    def provider_metadata(self) -> str:
        """What the provider said beside the last message, as JSON text; empty if nothing."""
        return self.steps[-1].metadata if self.steps else ""


def spent_by(run: Run[Any], children: Mapping[str, Run[Any]]) -> Spent:
    """Return what a run has spent, with what it has not heard of yet: parked children's."""
    spent = run.spent
    for effect in run.pending.values():
        if isinstance(effect, StartRun) and (child := children.get(f"{run.id}/{effect.key}")):
            spent += spent_by(child, children)
    return spent


def unkept_rules(run: Run[Any]) -> tuple[str, ...]:
    """Return a warning for each temporal rule that a run has broken, or has ended without."""
    monitor = run.watch.monitor
    if not monitor.automata:
        return ()
    owed = monitor.owed if run.ended else ()
    return (
        *[f"the rule {describe_rule(one)!r} was broken" for one in monitor.broken],
        *[f"the rule {describe_rule(one)!r} is still owed, and the run is over" for one in owed],
    )


def unknown_words(run: Run[Any]) -> tuple[str, ...]:
    """Return a warning for each turn whose server ended it by a word that no wire knows."""
    return tuple(
        f"turn {step.index}: expected a finish reason that the wire knows, found "
        f"{step.raw_finish_reason!r}. The answer may be cut, so its calls did not run"
        for step in run.record.steps
        if step.finish_reason is FinishReason.OTHER
    )


def unseen_costs(graph: Graph[S], run: Run[S]) -> tuple[str, ...]:
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
