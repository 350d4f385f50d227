"""RunResult: readings of a run's last state."""

from __future__ import annotations

from typing import TypeGuard

import pytest

from graphloop import Agent, EndReason, FinishReason, Graph, Pending, RunResult, Usage, budget, tool
from graphloop.agent.handed_in import conversation_digest
from graphloop.agent.opened import shortfalls, unseen_costs
from graphloop.effects import AskHuman, CallTool, Effect
from graphloop.limits import stop
from graphloop.limits.stop import Condition
from graphloop.loop import Standard, standard_edges
from graphloop.nodes import StopCheck
from graphloop.policy.approvals import Capability, digest, issue
from graphloop.rules import Followed, Never, always_followed_by, never
from graphloop.rules.automata import entered, ran
from graphloop.rules.monitor import Monitor
from graphloop.run import RuleState, Run, Spent, evolve
from graphloop.stores.memory import MemoryStore
from graphloop.testing import ScriptedModel
from graphloop.values import AssistantMessage, Message, ToolResult
from tests.strategies import Adversary, call, fresh, loop, reply

DONE = Adversary((reply("done"), reply(call()))).run(loop()).run


def result(run: Run[None], before: Spent | None = None) -> RunResult[None]:
    """Return the result of a run."""
    return RunResult(run, MemoryStore(), before or Spent(), ("careful",))


def test_a_result_reads_the_last_turn_and_the_whole_run() -> None:
    """Text of the last, messages and steps of all."""
    one = result(DONE)

    assert (DONE.id, None, ("careful",)) == (one.run_id, one.state, one.warnings)
    assert one.text == one.steps[-1].text
    assert tuple(DONE.record.added) == one.messages
    assert (one.finish_reason, one.end_reason) == (FinishReason.STOP, EndReason.COMPLETED)
    assert ((), (), "") == (one.stopped_by, one.pending, one.provider_metadata)


def test_rules_that_were_broken_or_are_owed_are_told() -> None:
    """What is owed is a warning once nobody can do it any more."""
    rules = always_followed_by("tool:x", "node:b") & never("node:a")
    broken, owed = Never("node:a"), Followed("tool:x", "node:b")
    watch = RuleState(Monitor.of(rules).after(ran("x")).after(entered("a")))
    over, open_ = evolve(DONE, watch=watch), evolve(DONE, watch=watch, node="gate")

    assert ((broken,), (owed,)) == (result(over).broken_rules, result(over).owed_rules)
    said = "the rule 'never node:a' was broken"
    assert (said,) == shortfalls(open_)
    expected = "the rule 'tool:x always followed by node:b' is still owed, and the run is over"
    assert (said, expected) == shortfalls(over)
    assert () == shortfalls(DONE)


def test_usage_is_this_leg_s_and_total_usage_the_run_s() -> None:
    """Who pays per call adds up legs; who pays per run reads the total."""
    before = Spent(1, 0, Usage(10, 5))
    total = DONE.spent.usage

    one = result(DONE, before)

    assert total == one.total_usage
    assert one.usage is not None
    assert total == one.usage + before.usage
    assert total == result(DONE).usage


def test_every_kind_of_token_is_told_for_this_leg_alone() -> None:
    """One that was forgotten would be paid again with every leg."""
    before, leg = Usage(1, 2, 3, 4, 5), Usage(10, 20, 30, 40, 50)
    resumed = evolve(DONE, spent=Spent(2, 0, before + leg))

    assert leg == result(resumed, Spent(1, 0, before)).usage


@pytest.mark.parametrize(
    ("conditions", "unpriced", "warnings"),
    [
        ((stop.cost_exceeds(1.5), stop.step_count_is(3)), 2, 1),
        ((stop.cost_exceeds(1.5),), 0, 0),
        ((stop.step_count_is(3),), 2, 0),
    ],
)
def test_a_bound_on_the_cost_tells_what_it_could_not_see(
    conditions: tuple[Condition, ...], unpriced: int, warnings: int
) -> None:
    """A model without a known price would run past it in silence."""
    nodes = Standard(stop=StopCheck(conditions=conditions))
    run = evolve(DONE, spent=Spent(3, 0, Usage(), 0.5, unpriced))

    found = unseen_costs(Graph("agent", nodes.prepare, standard_edges(nodes)), run)

    assert warnings == len(found)
    assert all(one.startswith("stop.cost_exceeds(1.5) cannot count all") for one in found)


@pytest.mark.parametrize("refused", [True, False])
def test_a_warning_does_not_advise_what_the_run_has_already(refused: bool) -> None:
    """Its last answer ended the run before the budget could."""
    nodes, limit = Standard(), budget(tokens=9, refuse_uncounted=refused)
    setup = evolve(DONE.setup, budget=limit)
    run = evolve(DONE, setup=setup, spent=Spent(1, unreported_calls=1))

    (found,) = unseen_costs(Graph("agent", nodes.prepare, standard_edges(nodes)), run)

    assert ("refuse_uncounted=True" in found) is not refused
    assert found.startswith("budget(tokens=9) cannot count all model calls: a server told no usage")


def test_a_cost_that_is_not_wholly_known_is_unknown() -> None:
    """A sum that leaves something out is no sum."""
    assert 0.0 == result(DONE).cost_usd
    assert result(evolve(DONE, spent=Spent(2, 0, Usage(), 1.0, 1))).cost_usd is None


def test_a_run_that_never_answered_has_no_text_and_no_reason() -> None:
    """And is parked, as long as it waits."""
    one = result(fresh())

    assert ("", None, EndReason.PARKED, ()) == (
        one.text,
        one.finish_reason,
        one.end_reason,
        one.stopped_by,
    )
    assert "" == one.provider_metadata


def test_what_is_pending_is_told_by_key_in_request_order() -> None:
    """The key is what it is answered by."""
    asked, theirs = call("write", "w", '{"x": 1}'), call("client", "w")
    conversation = conversation_digest(())
    capability = Capability(
        "r", "c0.0", "write", digest('{"x": 1}'), None, conversation=conversation
    )
    token = issue(capability, None)
    pending: dict[int, Effect] = {
        4: AskHuman(4, "c0.0", asked),
        5: CallTool(5, "c0.1", theirs, client=True),
    }

    assert (
        Pending("approval", "c0.0", "w", "write", '{"x": 1}', token=token),
        Pending("client_tool", "c0.1", "w", "client", "{}"),
    ) == result(evolve(fresh(), pending=pending)).pending


def test_two_results_of_one_run_are_equal_wherever_they_are_kept() -> None:
    """The store is no part of what the run came to."""
    assert result(DONE) == result(DONE)
    assert "MemoryStore" not in repr(result(DONE))


def read() -> str:
    """Read."""
    return "text"


@tool(needs_approval=True)
def pay() -> str:
    """Pay."""
    return "paid"


def test_a_parked_run_s_messages_end_in_the_calls_that_wait() -> None:
    """Whoever keeps the conversation elsewhere keeps what is asked, with what is known already."""
    turn = reply("Let me", call("read", "a"), call("pay", "b"))
    agent = Agent(ScriptedModel([turn]), tools=[read, pay], run_ungated=True)

    parked = agent.generate_sync("go")

    assert EndReason.PARKED is parked.end_reason
    said, *results = parked.messages
    assert turn.message == said
    assert [("a", "text")] == [(one.call_id, one.text) for one in results if is_result(one)]
    assert "Let me" == parked.text
    assert ["a"] == [one.call_id for one in parked.steps[0].tool_results]
    assert parked.messages == parked.steps[0].messages


def is_result(message: Message) -> TypeGuard[ToolResult]:
    """Whether a message is a tool's."""
    return isinstance(message, ToolResult)


def test_a_handed_over_conversation_ends_in_the_other_agent_s_words() -> None:
    """The caller asked a question, and does not care who has answered it."""
    expert = Agent(ScriptedModel(["the expert's answer"], label="e"), name="expert")
    first = Agent(
        ScriptedModel([reply("One moment.", call("expert", "x"))]),
        tools=[expert.as_tool(description="knows", takes_over=True)],
    )

    one = first.generate_sync("go")

    assert ("the expert's answer", EndReason.COMPLETED) == (one.text, one.end_reason)
    last = one.messages[-1]
    assert isinstance(last, AssistantMessage)
    assert "the expert's answer" == last.text
    assert "One moment." == one.steps[-1].text


def test_a_budget_in_dollars_tells_what_it_could_not_see() -> None:
    """As a stop condition does."""
    one = Agent(ScriptedModel(["hi"]), budget=budget(usd=2)).generate_sync("go")

    assert 1 == len(one.warnings)
    assert one.warnings[0].startswith("budget(usd=2) cannot count all model calls")


def test_a_result_has_the_answer_of_a_run_that_completed_and_of_no_other() -> None:
    """Half an answer is none."""
    agent = Agent(ScriptedModel([reply(call())] * 2), tools=[read], output_type=int, max_steps=1)

    assert (None, EndReason.MAX_STEPS) == (
        (one := agent.generate_sync("go")).output,
        one.end_reason,
    )
