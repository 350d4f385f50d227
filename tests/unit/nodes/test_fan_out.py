"""fan_out: several child runs at once, within the budget, and one answer in the end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from graphloop.contract import ChildContract
from graphloop.effects import Effect, Invoke, StartRun
from graphloop.events import (
    BranchesJoined,
    CallbackReturned,
    Cancelled,
    ChildEnded,
    EffectFailed,
    Event,
    Failure,
    StopRequested,
)
from graphloop.node_protocol import Leave, Reaction, Wait
from graphloop.nodes.fan_out import LATE, FanOut, FanOutOutcome
from graphloop.nodes.joins import BranchJoin, check_join
from graphloop.outcomes import Aborted, Answered, Failed
from graphloop.run import Ending, EndReason, Run, evolve
from graphloop.spending import Budget, Spent
from graphloop.turn import BranchRun
from graphloop.values import ResultStatus, Usage, UserMessage
from tests.runs import changed
from tests.strategies import QUESTION, SETUP, fresh

SPENT = Spent(1, 2, Usage(10, 5), 0.5)
THREE = tuple(BranchRun(f"b{at}", f"agent{at}", f"do {at}") for at in range(3))


def fan(join: BranchJoin = "collect", *, callback: str = "", at_once: int = 5) -> FanOut:
    """Return a fan-out."""
    return FanOut("fan", join, check_join(join, "", callback), callback, at_once)


def waits(reaction: Reaction[None, FanOutOutcome]) -> Run[None]:
    """Return the run that waits, as the kernel would have it."""
    assert isinstance(reaction, Wait)
    run = reaction.run
    pending = {**run.pending, **{one.id: one for one in reaction.effects}}
    return evolve(run, pending=pending, next_effect=run.next_effect + len(reaction.effects))


def left(reaction: Reaction[None, FanOutOutcome]) -> tuple[Run[None], type[FanOutOutcome]]:
    """Return how the node is left."""
    assert isinstance(reaction, Leave)
    return reaction.run, type(reaction.outcome)


def told(one: FanOut, run: Run[None], event: Event) -> Reaction[None, FanOutOutcome]:
    """Have a fan-out react to an event, as the kernel would."""
    number = getattr(event, "effect", 0)
    answered: Effect | None = run.pending.get(number)
    pending = {at: effect for at, effect in run.pending.items() if at != number}
    spent = run.spent + getattr(event, "spent", Spent())
    run = changed(run, pending=pending, spent=spent)
    return one.on(run, event, answered)


def ended(
    number: int, content: str, status: ResultStatus = "ok", spent: Spent = SPENT
) -> ChildEnded:
    """Return how a child ended."""
    return ChildEnded(1.0, number, content, status, spent)


def played(one: FanOut, run: Run[None], events: Sequence[Event]) -> Reaction[None, FanOutOutcome]:
    """Return the reaction to the last of these events, the earlier ones having been waited for."""
    for event in events[:-1]:
        run = waits(told(one, run, event))
    return told(one, run, events[-1])


def test_every_branch_reads_the_conversation_and_its_own_prompt() -> None:
    """And gets an equal share of what is left; what cannot be parted is the first one's."""
    setup = evolve(SETUP, budget=Budget(tokens=315, tool_calls=9))
    begun = changed(fresh(), setup=setup, spent=SPENT, steering=(UserMessage("now"),))

    run = waits(fan().start(begun, THREE))

    effects = [one for one in run.pending.values() if isinstance(one, StartRun)]
    assert ["fan.1", "fan.2", "fan.3"] == [one.key for one in effects]
    assert ["agent0", "agent1", "agent2"] == [one.agent for one in effects]
    assert (*QUESTION, UserMessage("now"), UserMessage("do 1", "fan")) == tuple(effects[1].messages)
    first, *rest = [one.budget for one in effects]
    assert Budget(tokens=100, tool_calls=3) == first
    assert [Budget(tokens=100, tool_calls=2)] * 2 == rest
    assert (1, ()) == (run.turn.number, run.inbox.steering)


def test_later_branches_wait_and_share_the_remaining_budget() -> None:
    """What one did not use is the others'."""
    one = fan(at_once=2)
    setup = evolve(SETUP, budget=Budget(tool_calls=9))

    run = waits(one.start(evolve(fresh(), setup=setup), THREE))
    assert [1, 2] == sorted(run.pending)

    run = waits(told(one, run, ended(2, "two", spent=Spent(tool_calls=1))))
    assert [1, 3] == sorted(run.pending)
    third = run.pending[3]
    assert isinstance(third, StartRun)
    assert ("fan.3", Budget(tool_calls=5)) == (third.key, third.budget)


def test_the_first_good_answer_stops_the_others() -> None:
    """They are waited for, so that what they have spent is counted, and they have no say."""
    one = fan("first")
    run = waits(one.start(fresh(), THREE))
    run = waits(told(one, run, ended(1, "broke", "error")))

    run = waits(told(one, run, ended(3, "z")))
    assert frozenset({2}) == run.abandoned

    after, outcome = left(told(one, run, ended(2, "late")))
    assert Answered is outcome
    assert after.turn.reply is not None
    assert "z" == after.turn.reply.message.text
    assert ("not_run", LATE) == (after.turn.branches[1].status, after.turn.branches[1].content)


def test_the_first_failure_fails_fast() -> None:
    """The others are stopped, and the failure is the node's."""
    one = fan("fail_fast")
    run = waits(one.start(fresh(), THREE))
    run = waits(told(one, run, ended(1, "x")))

    run = waits(told(one, run, EffectFailed(1.0, 3, Failure("E", "m"), SPENT)))
    assert frozenset({2}) == run.abandoned

    after, outcome = left(told(one, run, ended(2, "", "not_run")))
    assert Failed is outcome
    assert Ending(EndReason.ERROR, (), Failure("RunFailed", "b2: E: m")) == after.ending


@pytest.mark.parametrize("join", ["collect", "fail_fast", "first", "majority"])
def test_what_cannot_run_at_all_is_no_answer_of_a_branch(join: BranchJoin) -> None:
    """A mistake in the program is told as one; it must not stand in an answer as a section."""
    one = fan(join, at_once=2)
    run = waits(one.start(fresh(), (*THREE, BranchRun("b3", "agent3"))))

    mistake = EffectFailed(1.0, 1, Failure("ConfigError", "there is no 'agent0'"), SPENT)
    run = waits(told(one, run, mistake))
    assert (frozenset({2}), {2}) == (run.abandoned, {*run.pending})

    after, outcome = left(told(one, run, ended(2, "fine")))
    assert Failed is outcome
    failure = Failure("ConfigError", "b0: there is no 'agent0'")
    assert Ending(EndReason.ERROR, (), failure) == after.ending
    assert SPENT.usage + SPENT.usage == after.turn.usage


def test_one_branch_that_cannot_run_fails_at_once() -> None:
    """Nothing is waited for."""
    one = fan()
    run = waits(one.start(fresh(), THREE[:1]))

    mistake = EffectFailed(1.0, 1, Failure("ConfigError", "there is no 'agent0'"))

    assert Failed is left(told(one, run, mistake))[1]


def test_a_majority_needs_no_more_votes_than_decide() -> None:
    """Two of three agree: the third is stopped."""
    one = fan("majority")
    run = waits(one.start(fresh(), THREE))

    run = waits(played(one, run, [ended(3, "yes"), ended(1, "Yes")]))
    assert frozenset({2}) == run.abandoned
    after, _ = left(told(one, run, ended(2, "", "not_run")))

    assert after.turn.reply is not None
    assert "Yes" == after.turn.reply.message.text


def test_a_function_of_the_user_s_joins_what_it_finds_in_the_turn() -> None:
    """It is asked once all have answered, and its answer is the journal's."""
    one = fan(callback="mine")
    run = waits(one.start(fresh(), THREE[:2]))

    run = waits(played(one, run, [ended(2, "y"), ended(1, "x")]))
    assert {3: Invoke(3, "mine")} == run.pending
    assert ["x", "y"] == [branch.content for branch in run.turn.branches]

    after, outcome = left(told(one, run, CallbackReturned(1.0, 3, BranchesJoined("xy"))))
    assert Answered is outcome
    assert after.turn.reply is not None
    assert "xy" == after.turn.reply.message.text


@pytest.mark.parametrize(
    ("event", "found"),
    [
        (
            CallbackReturned(1.0, 2, StopRequested()),
            "callback 'mine': expected BranchesJoined, found StopRequested",
        ),
        (EffectFailed(1.0, 2, Failure("E", "m")), "m"),
    ],
)
def test_a_function_that_cannot_join_fails_the_node(event: Event, found: str) -> None:
    """A half answer is none."""
    one = fan(callback="mine")
    run = waits(one.start(fresh(), THREE[:1]))
    run = waits(told(one, run, ended(1, "x")))

    after, outcome = left(told(one, run, event))

    assert Failed is outcome
    assert after.ending is not None
    assert after.ending.failure is not None
    assert found == after.ending.failure.message


def test_an_abort_is_passed_on() -> None:
    """Whatever the branches would have said is void."""
    one = fan()
    run = waits(one.start(fresh(), THREE))

    assert Aborted is left(told(one, evolve(run, pending={}), Cancelled(1.0)))[1]


def test_branches_that_would_be_too_deep_are_not_started() -> None:
    """The failure names them."""
    setup = evolve(SETUP, depth=2, depth_max=2)

    after, outcome = left(fan().start(evolve(fresh(), setup=setup), THREE[:2]))

    assert Failed is outcome
    assert after.ending is not None
    assert after.ending.failure is not None
    found = "'agent0', 'agent1' would be more than 2 agents deep. Fix: max_agent_depth=3"
    assert found == after.ending.failure.message


def test_a_budget_spent_on_the_way_starts_no_more() -> None:
    """What has answered is kept, and the answer says what has not run."""
    one = fan(at_once=1)
    setup = evolve(SETUP, budget=Budget(tokens=15))
    run = waits(one.start(evolve(fresh(), setup=setup), THREE[:2]))

    after, outcome = left(told(one, run, ended(1, "x")))

    assert Answered is outcome
    assert "Not run: budget.tokens of the run is spent." == after.turn.branches[1].content
    assert 0 == after.turn.branches[1].effect


def test_a_new_visit_never_uses_the_keys_of_an_earlier_one() -> None:
    """Two children must never share a journal."""
    first = waits(fan().start(fresh(), THREE))
    second = waits(fan().start(evolve(first, pending={}), THREE))

    effects = [*first.pending.values(), *second.pending.values()]
    assert 6 == len({one.key for one in effects if isinstance(one, StartRun)})


def test_what_may_run_is_promised() -> None:
    """The proofs count with it."""
    contract = fan("first").contract({"a": 2, "b": 1})

    assert ChildContract(name="a", many=True, runs=2) == contract.children[0]
    assert ["a", "b"] == [child.name for child in contract.children]
    assert [1] == [child.needs for child in fan("first").contract({"a": 2}).children]
    assert [0, 0] == [child.needs for child in contract.children]
    failing_fast = fan("fail_fast").contract({"a": 2, "b": 1})
    assert [1, 1] == [child.needs for child in failing_fast.children]
    assert frozenset({"turn", "close"}) == contract.moved(Answered)
