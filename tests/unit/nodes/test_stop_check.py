"""stop_check: every bound, every time, and the names of all that tripped."""

from __future__ import annotations

import pytest

from graphloop.effects import Invoke
from graphloop.errors import ConfigError
from graphloop.events import CallbackReturned, Cancelled, Changes, EffectFailed, Failure, Tripped
from graphloop.node import Leave, Wait
from graphloop.nodes.append import Append
from graphloop.nodes.stop_check import StopCheck
from graphloop.outcomes import Aborted, Failed, Go, Stop
from graphloop.run import Ending, EndReason, Run, evolve
from graphloop.stop import duration_exceeds, has_tool_call
from graphloop.values import FinishReason
from tests.strategies import call, fresh, replied, reply, wrong

ASKING = StopCheck(callback="mine")


def after(*finishes: FinishReason) -> Run[None]:
    """Return a run with turns that finished so."""
    steps = fresh().steps
    for finish in finishes:
        steps = steps.append(Append().enter(replied(reply(call(), finish=finish))).run.steps[0])
    return evolve(fresh(), steps=steps)


def ending(node: StopCheck, run: Run[None]) -> Ending | None:
    """Return why the node stops the run, or None if it goes on."""
    reaction = node.enter(run)
    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Stop if reaction.run.ending else Go)
    return reaction.run.ending


@pytest.mark.parametrize(
    "limits",
    [{"max_steps": 0}, {"max_steps": True}, {"max_tool_errors": 0}, {"max_pauses": -1}],
    ids=str,
)
def test_a_bound_that_bounds_nothing_is_refused(limits: dict[str, int]) -> None:
    """Zero never means "no limit"."""
    with pytest.raises(ConfigError, match="whole number"):
        StopCheck(**wrong(limits))


def test_the_step_limit_holds_from_its_number_on() -> None:
    """The last permitted turn has run its tools; there is no further one."""
    calls = FinishReason.TOOL_CALLS
    assert ending(StopCheck(max_steps=2), after(calls)) is None
    assert Ending(EndReason.MAX_STEPS, ("max_steps",)) == ending(
        StopCheck(max_steps=2), after(calls, calls)
    )


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
    run = evolve(after(FinishReason.TOOL_CALLS), tool_errors={"read": 3, "write": 2})

    assert Ending(
        EndReason.TOOL_ERRORS, ("tool_errors:read", "max_steps", "has_tool_call")
    ) == ending(node, run)


def test_elapsed_time_is_the_time_of_the_run_s_events() -> None:
    """A replay a week later stops at the same place."""
    run = evolve(after(FinishReason.STOP), started_at=5.0, at=15.0)

    assert ending(StopCheck(conditions=(duration_exceeds(11),)), run) is None
    assert ending(StopCheck(conditions=(duration_exceeds(10),)), run) is not None


def test_the_user_s_predicates_are_asked_as_an_effect() -> None:
    """Their answer is a fact of the journal."""
    reaction = ASKING.enter(fresh())

    assert isinstance(reaction, Wait)
    assert (Invoke(1, "mine"),) == reaction.effects


@pytest.mark.parametrize("names", [(), ("enough",)])
def test_what_the_predicates_said_counts_with_the_rest(names: tuple[str, ...]) -> None:
    """They can stop a run, never keep it alive."""
    reaction = ASKING.on(fresh(), CallbackReturned(1.0, 1, Tripped(names)), Invoke(1, "mine"))

    assert isinstance(reaction, Leave)
    expected = Ending(EndReason.STOP_CONDITION, names) if names else None
    assert expected == reaction.run.ending


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
