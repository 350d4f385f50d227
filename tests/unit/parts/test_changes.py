"""What a step has changed: the corners that no stream of the standard loop comes to often."""

from __future__ import annotations

from graphloop.conversation.compaction import Compaction
from graphloop.conversation.tokens import estimate
from graphloop.events import CallCheck, Started
from graphloop.loop import Standard
from graphloop.nodes import Compact, PrepareStep
from graphloop.parts.changes import (
    before_first,
    calls_of,
    compacted,
    exceeded,
    latest_turn,
    new_messages,
    new_results,
)
from graphloop.parts.kinds import BudgetExceeded
from graphloop.run import Ending, EndReason
from graphloop.spending import Budget, Spent
from graphloop.values import ToolResult, UserMessage, evolve
from tests.strategies import QUESTION, SETUP, call, fresh, loop
from tests.strategies import said as heard
from tests.unit.parts.walks import checked, returned, said, steered, walk

WINDOW = Compaction(1_000, keep_recent_turns=1, layers=("prune_tool_results", "summarize"))


def test_a_run_that_waits_for_a_summary_is_in_the_turn_it_will_open() -> None:
    """Otherwise the summary would be made before the turn that needs it begins."""
    graph = loop(Standard(PrepareStep(compaction=WINDOW), Compact(compaction=WINDOW)))
    long = "x" * 4_000
    messages = (*QUESTION, heard(long), UserMessage("more"), heard("yes"), UserMessage("and"))

    run = walk(graph, messages=messages)[-1].run

    assert "compact" == run.node
    assert (-1, 0) == (run.turn.number, latest_turn(graph.nodes[run.node], run))
    assert latest_turn(None, fresh()) == 0


def test_handed_in_messages_count_before_a_first_step_made_them_shorter() -> None:
    """The conversation of the very first step is in the event, not in a run before it."""
    graph = loop(Standard(PrepareStep(compaction=WINDOW), Compact(compaction=WINDOW)))
    old = ToolResult("", "b", "write", "x" * 4_000)
    messages = (*QUESTION, heard(call("write", "b")), old, heard("so"), UserMessage("go on"))
    first = walk(graph, messages=messages)[0]

    assert isinstance(first.event, Started)
    before = before_first(first.event, first.run)
    sizes = compacted(None, before, first.event, first.run)

    assert sizes is not None
    assert (estimate(messages), len(messages)) == (sizes.tokens_before, sizes.messages_before)
    assert sizes.tokens_after < 100


def test_calls_that_were_handed_in_count_as_messages_again_once_they_are_settled() -> None:
    """They left the conversation with their turn; nothing was made shorter by that."""
    graph = loop(Standard(PrepareStep(compaction=WINDOW), Compact(compaction=WINDOW)))
    old = ToolResult("", "z", "write", "x" * 3_000)
    given = ToolResult("", "a", "read", "known")
    earlier = (*QUESTION, heard(call("write", "z")), old)
    handed_in = (*earlier, heard(call("read", "a"), call("write", "b")), given)
    steps = walk(graph, checked(CallCheck()), returned("y" * 1_000), messages=handed_in)
    last = steps[-1]

    sizes = compacted(graph.nodes[steps[-2].run.node], steps[-2].run, last.event, last.run)

    assert sizes is not None
    assert 6 == sizes.messages_before == sizes.messages_after
    assert estimate((*handed_in, *last.run.record.added)) == sizes.tokens_before


def test_the_calls_of_another_turn_are_not_this_one_s() -> None:
    """A turn that has begun has none yet, whatever the last one had."""
    run = walk(loop(), said(call()))[-1].run

    assert (call(),) == calls_of(run, 0)
    assert () == calls_of(run, 1)
    assert [] == list(new_results(run, 1, None, {}))


def test_only_what_is_new_in_a_conversation_of_the_caller_s_was_injected() -> None:
    """Putting the same messages back says nothing."""
    run = walk(loop(), said(call()), setup=evolve(SETUP, attended=True))[-1].run
    new = UserMessage("but quickly")
    event = steered(messages=(*QUESTION, heard(call()), new))(run)

    assert (new,) == new_messages(run, event)
    assert () == new_messages(run, steered(new)(run))


def test_a_limit_that_did_not_end_the_run_is_no_excess() -> None:
    """A run may end of itself in the turn in which it has spent the last of its budget."""
    setup = evolve(SETUP, budget=Budget(tool_calls=1, seconds=2.0))
    run = evolve(fresh(), setup=setup, spent=Spent(tool_calls=3, seconds=2.5))
    stopped = evolve(run, ending=Ending(EndReason.BUDGET, ("budget.seconds", "mine")))

    assert [BudgetExceeded("budget.seconds", 2.0, 2.5)] == list(exceeded(stopped))
    assert [] == list(exceeded(evolve(run, ending=Ending(EndReason.COMPLETED))))
    calls = Ending(EndReason.BUDGET, ("budget.agent_calls",))
    called = evolve(
        run,
        setup=evolve(setup, budget=Budget(agent_calls=2)),
        spent=Spent(agent_calls=2),
        ending=calls,
    )
    assert [BudgetExceeded("budget.agent_calls", 2, 2)] == list(exceeded(called))
    assert [] == list(exceeded(run))


def test_a_conversation_of_the_caller_s_counts_as_it_was_put_there() -> None:
    """What the caller has left out, no node has shortened."""
    graph = loop(Standard(PrepareStep(compaction=WINDOW), Compact(compaction=WINDOW)))
    old = ToolResult("", "z", "write", "x" * 4_000)
    instead = (*QUESTION, heard(call("write", "z")), old, heard("so"), UserMessage("go on"))
    attended = evolve(SETUP, attended=True)
    steps = walk(graph, said("hm"), steered(messages=instead), setup=attended)
    last = steps[-1]

    sizes = compacted(graph.nodes[steps[-2].run.node], steps[-2].run, last.event, last.run)

    assert sizes is not None
    assert (estimate(instead), len(instead)) == (sizes.tokens_before, sizes.messages_before)
