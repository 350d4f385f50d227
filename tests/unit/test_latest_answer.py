"""latest_answer: what was said last, and where a run goes from there."""

from __future__ import annotations

import pytest

from graphloop.latest_answer import latest_answer, sent_back, taken_further
from graphloop.run import Ending, EndReason, evolve
from graphloop.values import UserMessage
from tests.strategies import QUESTION, fresh, said


def test_the_latest_answer_is_the_model_s_last_text() -> None:
    """What people have said since is no answer."""
    run = fresh(messages=(*QUESTION, said("one"), said("two"), UserMessage("hm")))

    assert ("two", "") == (latest_answer(run), latest_answer(fresh()))


@pytest.mark.parametrize("reason", EndReason)
def test_only_a_good_ending_is_taken_back(reason: EndReason) -> None:
    """A run that was stopped, or broke, does not forget it."""
    run = evolve(fresh(), ending=Ending(reason))

    assert (reason is EndReason.COMPLETED) == (taken_further(run).ending is None)
    assert fresh() == taken_further(fresh())


def test_feedback_is_noted_behind_what_was_noted_before() -> None:
    """It says who has said it."""
    run = sent_back(evolve(fresh(), ending=Ending(EndReason.COMPLETED)), "no", "judge")

    assert (UserMessage("no", "judge"), UserMessage("nor", "b")) == sent_back(
        run, "nor", "b"
    ).turn.notes
    assert run.ending is None
