"""stop_check: every bound, every time, and the names of all that tripped."""

from __future__ import annotations

import pytest

from graphloop.effects import Invoke
from graphloop.errors import ConfigError
from graphloop.events import (
    CallbackReturned,
    Cancelled,
    Changes,
    EffectFailed,
    Failure,
    StopRequested,
)
from graphloop.limits.stop import duration_exceeds, has_tool_call
from graphloop.node_protocol import Leave, Wait
from graphloop.nodes.append import Append
from graphloop.nodes.stop_check import StopCheck
from graphloop.outcomes import Aborted, Failed, Go, Stop
from graphloop.run import Ending, EndReason, Run, evolve
from graphloop.spending import Budget, Spent
from graphloop.turn import Turn
from graphloop.values import FinishReason, Usage, UserMessage
from tests.runs import changed
from tests.strategies import SETUP, call, fresh, replied, reply, wrong

ASKING = StopCheck(callback="mine")


def after(*finishes: FinishReason) -> Run[None]:
    """Return a run with turns that finished so."""
    run = fresh()
    for finish in finishes:
        turn = replied(reply(call(), finish=finish)).turn
        run = Append().enter(evolve(run, turn=turn, ending=None)).run
    return evolve(fresh(), record=run.record, counters=run.counters)


def ending(node: StopCheck, run: Run[None]) -> Ending | None:
    """Return why the node stops the run, or None if it goes on."""
    reaction = node.enter(run)
    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Stop if reaction.run.ending else Go)
    return reaction.run.ending


@pytest.mark.parametrize(
    "limits",
    [
        {"max_steps": 0},
        {"max_steps": True},
        {"max_consecutive_tool_errors": 0},
        {"max_consecutive_denials": 0},
        {"max_pauses": -1},
    ],
    ids=str,
)
def test_a_bound_that_bounds_nothing_is_refused(limits: dict[str, int]) -> None:
    """Zero never means "no limit"."""
    with pytest.raises(ConfigError, match="whole number"):
        StopCheck(**wrong(limits))


@pytest.mark.parametrize(
    ("pauses", "allowed", "stops"), [(2, 2, False), (3, 2, True), (1, 0, True), (0, 0, False)]
)
def test_only_pauses_in_a_row_count(pauses: int, allowed: int, stops: bool) -> None:
    """A long server-side search pauses more than once, but not for ever."""
    run = after(FinishReason.PAUSE, FinishReason.STOP, *[FinishReason.PAUSE] * pauses)

    assert stops == (ending(StopCheck(max_pauses=allowed), run) is not None)


def test_a_run_of_nothing_but_pauses_is_counted_from_its_start() -> None:
    """There is no other turn to stop the counting at."""
    found = ending(StopCheck(max_pauses=1), after(FinishReason.PAUSE, FinishReason.PAUSE))

    assert Ending(EndReason.MAX_PAUSES, ("max_pauses",)) == found


def test_everything_that_tripped_is_reported_by_rank() -> None:
    """The reason is the gravest; the others are not hidden."""
    node = StopCheck(max_steps=1, conditions=(has_tool_call("read"), duration_exceeds(9)))
    run = changed(after(FinishReason.TOOL_CALLS), tool_errors={"read": 3, "write": 2})

    assert Ending(
        EndReason.TOOL_ERRORS, ("tool_errors:read", "max_steps", "has_tool_call")
    ) == ending(node, run)


def test_elapsed_time_is_the_time_that_the_run_has_worked() -> None:
    """A replay a week later stops at the same place, and a long approval does not count."""
    run = changed(after(FinishReason.STOP), started_at=5.0, at=999.0, spent=Spent(seconds=10.0))

    assert ending(StopCheck(conditions=(duration_exceeds(11),)), run) is None
    assert ending(StopCheck(conditions=(duration_exceeds(10),)), run) is not None


@pytest.mark.parametrize(("denials", "stops"), [(1, False), (2, True), (3, True)])
def test_a_run_that_is_only_denied_is_stopped(denials: int, stops: bool) -> None:
    """A model that asks for the same thing for ever wears people out (CONTRACT §9 #17)."""
    found = ending(StopCheck(max_consecutive_denials=2), changed(fresh(), denials=denials))

    assert found == (Ending(EndReason.DENIALS, ("denials",)) if stops else None)


def test_every_limit_of_the_budget_that_is_reached_is_told() -> None:
    """By its name."""
    setup = evolve(SETUP, budget=Budget(tokens=10, usd=1.0, seconds=60.0, tool_calls=3))
    spent = Spent(1, 3, Usage(5, 5), 0.5, 0, 60.0)

    turn = Turn(number=0, beyond_budget=("budget.tool_calls", "budget.agent_calls"))
    found = ending(StopCheck(), evolve(fresh(turn), setup=setup, spent=spent))

    limits = ("budget.tokens", "budget.seconds", "budget.tool_calls", "budget.agent_calls")
    assert Ending(EndReason.BUDGET, limits) == found


@pytest.mark.parametrize(("reason", "name"), [("enough", "enough"), ("", "aborted")])
def test_somebody_s_wish_to_stop_comes_first(reason: str, name: str) -> None:
    """And everything else that would have stopped the run is told with it."""
    run = changed(fresh(), stopping=reason, tool_errors={"read": 3}, denials=9)

    expected = Ending(EndReason.ABORTED, (name, "tool_errors:read", "denials"))
    assert expected == ending(StopCheck(), run)


@pytest.mark.parametrize("reason", [EndReason.ABORTED, EndReason.TIMEOUT])
def test_a_run_that_was_stopped_goes_no_further_and_keeps_its_ending(reason: EndReason) -> None:
    """Wherever the table leads what was aborted: nobody is asked once more."""
    run = evolve(fresh(), ending=Ending(reason, ("enough",)))

    for node in (StopCheck(), StopCheck(conditions=(has_tool_call("read"),), callback="mine")):
        reaction = node.enter(run)
        assert isinstance(reaction, Leave)
        assert (Stop(), run) == (reaction.outcome, reaction.run)


SAID = (UserMessage("go on"),)


def test_what_somebody_has_to_say_outweighs_conditions() -> None:
    """The user's own, and those that are invoked (CONTRACT §9 #28)."""
    node = StopCheck(conditions=(has_tool_call("read"),), callback="mine")
    run = changed(after(FinishReason.TOOL_CALLS), steering=SAID)

    reaction = node.on(run, CallbackReturned(1.0, 1, StopRequested(("enough",))), Invoke(1, "mine"))

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Go)
    assert reaction.run.ending is None


@pytest.mark.parametrize(
    "run",
    [
        changed(fresh(), stopping=""),
        changed(fresh(), tool_errors={"read": 3}),
        changed(fresh(), denials=5),
        after(FinishReason.STOP),
        evolve(
            fresh(Turn(beyond_budget=("budget.tool_calls",))),
            setup=evolve(SETUP, budget=Budget(tool_calls=1)),
        ),
    ],
    ids=["wish", "errors", "denials", "steps", "budget"],
)
def test_nothing_that_is_said_outweighs_a_bound(run: Run[None]) -> None:
    """Not even beside a condition that it does outweigh."""
    node = StopCheck(max_steps=1 if run.record.steps else 9, conditions=(duration_exceeds(1e-9),))
    run = changed(run, steering=SAID, spent=evolve(run.spent, seconds=1.0))

    found = ending(node, run)

    assert found is not None
    assert "duration_exceeds" in found.stopped_by


def test_turns_that_left_no_step_count() -> None:
    """A model without room is asked again and again, and nothing of it is recorded."""
    run = fresh(Turn(number=4))

    assert ending(StopCheck(max_steps=5), run) is not None
    assert ending(StopCheck(max_steps=6), run) is None


def test_the_user_s_predicates_are_asked_as_an_effect() -> None:
    """Their answer is a fact of the journal."""
    reaction = ASKING.enter(fresh())

    assert isinstance(reaction, Wait)
    assert (Invoke(1, "mine"),) == reaction.effects


def test_a_predicate_that_fails_ends_the_run() -> None:
    """A bound that cannot be evaluated does not bound."""
    reaction = ASKING.on(
        fresh(), EffectFailed(1.0, 1, Failure("ValueError", "bug")), Invoke(1, "mine")
    )

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Failed)


def test_an_answer_of_another_kind_ends_the_run_in_an_error() -> None:
    """A callback under the wrong name must not look like a completed run."""
    reaction = ASKING.on(fresh(), CallbackReturned(1.0, 1, Changes()), Invoke(1, "mine"))

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Failed)
    assert reaction.run.ending is not None
    assert EndReason.ERROR is reaction.run.ending.reason


def test_an_abort_is_passed_on() -> None:
    """Stopped is stopped."""
    reaction = ASKING.on(fresh(), Cancelled(1.0), None)

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Aborted)
