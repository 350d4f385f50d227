"""verify: checks in their order, each with its own bound, and none that waves anything through."""

from __future__ import annotations

import pytest

from graphloop.effects import Invoke
from graphloop.errors import ConfigError
from graphloop.events import (
    AnswerChecked,
    CallbackAnswer,
    CallbackReturned,
    Cancelled,
    Changes,
    EffectFailed,
    Event,
    Failure,
)
from graphloop.loop import Standard
from graphloop.node_protocol import Leave, Wait
from graphloop.nodes.verify import AnswerCheck, Verify
from graphloop.outcomes import Aborted, Accepted, Failed, FollowUp, Outcome
from graphloop.run import Ending, EndReason, Run, evolve
from graphloop.testing.sim import World, simulate
from graphloop.tools.outcome import ToolOutcome
from graphloop.values import UserMessage
from tests.runs import changed
from tests.strategies import QUESTION, SETUP, fresh, loop, reply, wrong

DONE = Ending(EndReason.COMPLETED)
TYPED = AnswerCheck("output", 2, failure="OutputInvalid")
MINE = AnswerCheck("verify", 1, given_up="verify")
BOTH = Verify((TYPED, MINE))
BAD = AnswerChecked(False, "shorter")


def judged(
    answer: CallbackAnswer, check: str = "verify", *, sent_back: int = 0
) -> tuple[Run[None], type[Outcome] | Invoke]:
    """Return what comes after a check has answered."""
    run = changed(fresh(), ending=DONE, rejections={check: sent_back, "other": 7})
    reaction = BOTH.on(run, CallbackReturned(1.0, 1, answer), Invoke(1, check))
    if isinstance(reaction, Wait):
        (effect,) = reaction.effects
        assert isinstance(effect, Invoke)
        return reaction.run, effect
    return reaction.run, type(reaction.outcome)


@pytest.mark.parametrize("retries", [-1, 1.5, True])
def test_a_bound_that_is_none_is_refused(retries: object) -> None:
    """By the name of its check."""
    with pytest.raises(ConfigError, match="`retries of mine`"):
        AnswerCheck("mine", wrong(retries))


def test_two_checks_of_one_name_are_refused() -> None:
    """Which of them has answered could not be told, and the first would be asked for ever."""
    with pytest.raises(ConfigError, match=r"check of an answer, found \['verify', 'verify'\]"):
        Verify((MINE, MINE))


def test_without_checks_every_answer_is_good() -> None:
    """Nobody said what a bad one is."""
    reaction = Verify().enter(evolve(fresh(), ending=DONE))

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Accepted)


@pytest.mark.parametrize(
    "ending", [None, *(Ending(one) for one in EndReason if one is not EndReason.COMPLETED)]
)
def test_only_a_completed_answer_is_checked(ending: Ending | None) -> None:
    """A run that ended otherwise has none, and its reason stays."""
    reaction = BOTH.enter(evolve(fresh(), ending=ending))

    assert isinstance(reaction, Leave)
    assert (Accepted, ending) == (type(reaction.outcome), reaction.run.ending)


def test_an_answer_sent_back_often_enough_is_taken_and_said_so() -> None:
    """In `stopped_by`: a run that gave up looks different from one that succeeded."""
    run, outcome = judged(BAD, sent_back=1)

    assert (Accepted, Ending(EndReason.COMPLETED, ("verify",))) == (outcome, run.ending)


@pytest.mark.parametrize("feedback", ["shorter", ""])
def test_an_answer_that_must_fit_and_does_not_ends_in_an_error(feedback: str) -> None:
    """Of the kind that the check names."""
    run, outcome = judged(AnswerChecked(False, feedback), "output", sent_back=2)

    assert Failed is outcome
    failure = Failure("OutputInvalid", feedback)
    assert Ending(EndReason.ERROR, failure=failure) == run.ending


def test_an_answer_that_cannot_become_better_is_not_sent_back() -> None:
    """It is taken as it is, and nobody has given up; one that must fit still fails."""
    final = AnswerChecked(False, "enough", retry=False)

    taken, outcome = judged(final)
    failed, other = judged(final, "output")

    assert (Accepted, DONE) == (outcome, taken.ending)
    assert Failed is other
    assert failed.ending is not None
    assert EndReason.ERROR is failed.ending.reason


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (EffectFailed(1.0, 1, Failure("ValueError", "bug")), "bug"),
        (
            CallbackReturned(1.0, 1, Changes()),
            "callback 'verify': expected AnswerChecked, found Changes",
        ),
    ],
)
def test_a_check_that_fails_ends_the_run(event: Event, message: str) -> None:
    """An answer that nobody could check has not been accepted."""
    reaction = BOTH.on(evolve(fresh(), ending=DONE), event, Invoke(1, "verify"))

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Failed)
    assert reaction.run.ending is not None
    assert reaction.run.ending.failure is not None
    assert message == reaction.run.ending.failure.message


def test_an_abort_is_passed_on() -> None:
    """Stopped is stopped."""
    reaction = BOTH.on(fresh(), Cancelled(1.0), None)

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Aborted)


@pytest.mark.parametrize(
    ("retries", "max_steps", "asked", "reason", "stopped_by"),
    [
        (2, 9, 3, EndReason.COMPLETED, ("gave up",)),
        (0, 9, 1, EndReason.COMPLETED, ("gave up",)),
        (99, 4, 4, EndReason.MAX_STEPS, ("max_steps",)),
    ],
)
def test_a_judge_that_is_never_content_is_bounded_twice(
    retries: int, max_steps: int, asked: int, reason: EndReason, stopped_by: tuple[str, ...]
) -> None:
    """By its own retries, and by the limits of the run (CONTRACT §9 #22)."""
    verify = Verify((AnswerCheck("mine", retries, given_up="gave up"),))
    world = World(
        model=lambda _: reply("draft"),
        tool=lambda _: ToolOutcome("", "ok"),
        callback=lambda _: BAD,
    )
    graph = loop(Standard(verify=verify), max_steps=max_steps)

    run = simulate(graph, QUESTION, world, None, setup=SETUP).run

    assert asked == len(run.record.steps)
    assert Ending(reason, stopped_by) == run.ending
    assert ["draft", "shorter"] * (asked - 1) + ["draft"] == [
        getattr(one, "text", None) or getattr(one, "content", None) for one in run.record.added
    ][: 2 * asked - 1]


NEXT = (UserMessage("and then?"), UserMessage("and at last?"))


@pytest.mark.parametrize("sent_back", [0, 1])
def test_one_follow_up_is_heard_once_the_answer_is_accepted(sent_back: int) -> None:
    """The next one waits for the answer to it, which may be sent back as often as the first."""
    run = changed(fresh(), ending=DONE, follow_ups=NEXT, rejections={"verify": sent_back})

    left = BOTH.on(run, CallbackReturned(1.0, 1, AnswerChecked(True)), Invoke(1, "verify"))

    assert isinstance(left, Leave)
    assert isinstance(left.outcome, FollowUp)
    assert (NEXT[:1], NEXT[1:]) == (left.run.inbox.steering, left.run.inbox.follow_ups)
    assert (None, {}) == (left.run.ending, left.run.counters.rejections)


def test_steering_during_a_verdict_is_heard_before_any_follow_up() -> None:
    """A run that is at its end goes on for it."""
    now = (UserMessage("wait!"),)
    run = changed(fresh(), ending=DONE, steering=now, follow_ups=NEXT)

    left = BOTH.on(run, CallbackReturned(1.0, 1, AnswerChecked(True)), Invoke(1, "verify"))

    assert isinstance(left, Leave)
    assert isinstance(left.outcome, FollowUp)
    assert (now, NEXT) == (left.run.inbox.steering, left.run.inbox.follow_ups)
