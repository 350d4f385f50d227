"""The latest answer of a run, and the two ways on from it."""

from __future__ import annotations

import pytest

from graphloop.conversation.answer import (
    answer_at_hand,
    approved_answer,
    clear_ending,
    latest_answer,
    reject_answer,
    said_after_calls,
)
from graphloop.run import Ending, EndReason, evolve
from graphloop.turn import Turn
from graphloop.values import UserMessage
from tests.runs import changed
from tests.strategies import QUESTION, fresh, reply, said


def test_the_answer_at_hand_is_the_last_text_of_the_conversation() -> None:
    """It is not the run's own answer, and what people have said since is no answer."""
    run = fresh(messages=(*QUESTION, said("one"), said("two"), UserMessage("hm")))

    assert ("two", "") == (answer_at_hand(run), answer_at_hand(fresh()))
    assert "" == latest_answer(run)


def test_an_approved_text_holds_until_a_later_answer() -> None:
    """The approval is about the turn that it was given after."""
    approved = changed(fresh(), turn=Turn(number=3), approved=(3, "EDITED"))
    replied = evolve(approved, turn=Turn(number=4, reply=reply("new")))

    assert ("EDITED", "EDITED") == (latest_answer(approved), answer_at_hand(approved))
    assert "EDITED" == latest_answer(evolve(approved, turn=Turn(number=4)))
    assert ("new", "new") == (latest_answer(replied), answer_at_hand(replied))
    assert (True, None) == (said_after_calls(approved), approved_answer(replied))


@pytest.mark.parametrize("reason", EndReason)
def test_only_a_good_ending_is_taken_back(reason: EndReason) -> None:
    """A run that was stopped, or broke, does not forget it."""
    run = evolve(fresh(), ending=Ending(reason))

    assert (reason is EndReason.COMPLETED) == (clear_ending(run).ending is None)
    assert fresh() == clear_ending(fresh())


def test_feedback_is_noted_behind_what_was_noted_before() -> None:
    """It says who has said it."""
    run = reject_answer(evolve(fresh(), ending=Ending(EndReason.COMPLETED)), "no", "judge")

    assert (UserMessage("no", "judge"), UserMessage("nor", "b")) == reject_answer(
        run, "nor", "b"
    ).turn.notes
    assert run.ending is None
