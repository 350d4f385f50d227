"""changes: the differences between a run before a step and the run after it.

These pure functions serve views of a run. No event reports that messages left a queue, or that a
conversation became shorter. Such changes are found by comparing the two runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ..conversation import estimate
from ..events import CallbackReturned, ChildEnded, Event, Started, Steered
from ..node_protocol import Node
from ..nodes import Compact
from ..outcomes import Outcome
from ..run import EndReason, History, Inbox, Record, Run
from ..turn import RUN, SCREEN, StepResult, Turn
from ..values import Message, ToolCall, ToolResult, call_key, call_place, evolve
from .kinds import BudgetExceeded

__all__ = [
    "AnyNode",
    "Shortened",
    "answer_of",
    "before_first",
    "calls_of",
    "closed_turn",
    "compacted",
    "cost_of",
    "edit_of",
    "exceeded",
    "latest_turn",
    "let_pass",
    "new_messages",
    "new_notes",
    "new_results",
    "still_judging",
    "turn_record",
]

S = TypeVar("S")

AnyNode: TypeAlias = Node[Any, Outcome]

SETTLED = call_key(-1, 0).removesuffix("0")
"""The prefix of the keys of calls that had no result in the initial conversation."""


class Shortened(NamedTuple):
    """The size of a conversation before and after compaction; tokens are estimates."""

    tokens_before: int
    tokens_after: int
    messages_before: int
    messages_after: int


def before_first(event: Event, run: Run[S]) -> Run[S]:
    """Return a run as it was before its first step, with the conversation that it was given."""
    assert isinstance(event, Started), "a run's first event"
    inbox, given = Inbox(event.steering), History(event.messages)
    return evolve(run, messages=given, turn=Turn(), inbox=inbox, record=Record())


def latest_turn(node: AnyNode | None, run: Run[Any]) -> int:
    """Return the number of the latest started turn of a run at `node`; -1 before the first.

    A turn starts before its compaction, so a run that waits for the compaction counts as in the
    next turn. A run whose model has reported a full context window is still in its own turn.
    """
    turn = run.turn
    return turn.number + (not turn.asked and isinstance(node, Compact))


def turn_record(run: Run[S], turn: int) -> StepResult | None:
    """Return the record of the turn with this number if it is the latest record, else None."""
    steps = run.record.steps
    latest = steps[-1] if steps else None
    return latest if latest is not None and latest.index == turn else None


def answer_of(before: Run[S], run: Run[S], turn: int) -> str | None:
    """Return the answer text that a step added to a turn; None if it added no answer."""
    if before.turn.reply is not None:
        return None
    record = turn_record(run, turn)
    if record is not None:
        return record.text
    reply = run.turn.reply if run.turn.number == turn else None
    return None if reply is None else reply.message.text


def closed_turn(before: Run[S], run: Run[S]) -> StepResult | None:
    """Return the record of the turn that a step has closed; None if it has closed none."""
    steps = run.record.steps
    return None if before.record.steps is steps else steps[-1]


def still_judging(before: Run[S], run: Run[S]) -> bool:
    """Whether a screen beside the model call is still judging after this step."""
    return (
        before.turn.screening is not None
        and run.turn.screening is not None
        and run.turn.number == before.turn.number
    )


def let_pass(before: Run[S], event: Event, run: Run[S]) -> bool:
    """Whether a screen that judged beside a model call lets the reply through in this step."""
    if before.turn.screening is None or still_judging(before, run):
        return False
    failed = run.ending is not None and run.ending.reason is EndReason.ERROR
    verdict = isinstance(event, CallbackReturned | ChildEnded)
    closed = closed_turn(before, run)
    return verdict and not failed and (closed is None or closed.model != SCREEN)


def cost_of(event: Event) -> float | None:
    """Return the cost of the child run that this event ends; None if the cost is unknown."""
    if not isinstance(event, ChildEnded) or event.spent.unpriced_calls:
        return None
    return event.spent.cost_usd


def edit_of(run: Run[S], key: str) -> str:
    """Return the arguments that an approver has edited for a call; empty without an edit."""
    verdicts = run.turn.verdicts
    if verdicts.count(RUN) == len(verdicts):
        return ""  # In most turns, each call runs as the model wrote it.
    place = call_place(key)
    verdict = verdicts[place] if place < len(verdicts) else None
    return verdict.arguments if verdict is not None else ""


def calls_of(run: Run[S], turn: int) -> tuple[ToolCall, ...]:
    """Return the calls of a turn, from its record or from the turn in progress."""
    record = turn_record(run, turn)
    if record is not None:
        return record.tool_calls
    return run.turn.calls if run.turn.number == turn else ()


def new_results(
    run: Run[S], turn: int, closed: StepResult | None, known: Mapping[str, ToolResult | None]
) -> Sequence[ToolResult]:
    """Return the results of a turn's calls that differ from the `known` ones, in request order.

    Results that came with the initial conversation are left out: this run did not produce them.

    Args:
        run: the run.
        turn: the number of the turn.
        closed: the record of the turn that was closed last, if that is new.
        known: the results that are known already, by key; None for a call without one.
    """
    if closed is not None and closed.index == turn:
        slots: tuple[ToolResult | None, ...] = closed.tool_results
    else:
        slots = run.turn.results if run.turn.number == turn else ()
    given = run.turn.given if turn < 0 else ()
    results: list[ToolResult] = []
    for place, result in enumerate(slots):
        if result is None or place in given:
            continue
        key, is_known = result.key, result.key in known
        if (is_known and known[key] != result) or (not is_known and key == call_key(turn, place)):
            results.append(result)
    if turn < 0:
        # The initial conversation has no turn record; only results for its open calls are new.
        added = [one for one in run.record.added if isinstance(one, ToolResult)]
        settled = [result for result in added if result.key.startswith(SETTLED)]
        results += [result for result in settled if known.get(result.key) != result]
    return results


def new_notes(before: Run[S], event: Event, run: Run[S]) -> tuple[Message, ...]:
    """Return the notes of a turn that this step has moved into the conversation."""
    notes = before.turn.notes
    if isinstance(event, Steered):
        notes = (*notes, *event.append)
    return () if run.turn.notes else notes


def new_messages(before: Run[S], event: Steered) -> tuple[Message, ...]:
    """Return the messages of the caller's replacement conversation that the run did not have."""
    if event.messages is None:
        return ()
    turn = before.turn
    known = {*before.messages, *turn.results}
    if turn.reply is not None:
        known.add(turn.reply.message)
    return tuple([message for message in event.messages if message not in known])


def compacted(
    was_at: AnyNode | None, before: Run[S], event: Event, run: Run[S]
) -> Shortened | None:
    """Return the sizes before and after a compaction in this step, or None if nothing shrank.

    `was_at` is the node at which the run waited before the step; None before the first step.
    """
    if not (isinstance(was_at, Compact) or (run.turn.compacted and _is_first(before, run))):
        return None
    whole = _messages_before_compaction(before, event, run)
    sizes = Shortened(estimate(whole), estimate(run.messages), len(whole), len(run.messages))
    fewer = sizes.messages_after < sizes.messages_before
    return sizes if fewer or sizes.tokens_after < sizes.tokens_before else None


def exceeded(run: Run[S]) -> Iterator[BudgetExceeded]:
    """Yield the parts for the budget limits that ended a run."""
    budget, spent = run.setup.budget, run.spent
    for which, limit, value in (
        ("budget.tokens", budget.tokens, spent.usage.total_tokens),
        ("budget.usd", budget.usd, spent.cost_usd),
        ("budget.seconds", budget.seconds, spent.seconds),
        ("budget.tool_calls", budget.tool_calls, spent.tool_calls),
        ("budget.agent_calls", budget.agent_calls, spent.agent_calls),
    ):
        if run.ending is not None and limit is not None and which in run.ending.stopped_by:
            yield BudgetExceeded(which, limit, value)


def _is_first(before: Run[S], run: Run[S]) -> bool:
    """Whether this step is the first of a turn with a compacted conversation."""
    return not before.turn.compacted or len(run.record.steps) > len(before.record.steps)


def _messages_before_compaction(before: Run[S], event: Event, run: Run[S]) -> Sequence[Message]:
    """Return the conversation that this step would leave without a compaction."""
    added = run.record.added[len(before.record.added) :]
    if isinstance(event, Steered) and event.messages is not None:
        return (*event.messages, *added)
    turn = before.turn
    if turn.number < 0 and turn.reply is not None:
        # The turn of the initial calls held them and their results; the step puts them back.
        given = [result for at, result in enumerate(turn.results) if result and at in turn.given]
        return (*before.messages, turn.reply.message, *given, *added)
    return (*before.messages, *added)
