"""Question: what a new run begins with; a plain value, frozen."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from graphloop.front.answers import Answers
from graphloop.front.question import Question
from tests.strategies import wrong


def test_a_question_alone_begins_a_run_that_nobody_iterates_and_nothing_answers() -> None:
    """No answers is not the same as none given: with `Answers()`, open calls are settled."""
    question = Question("go")

    assert ("go", None, None, None, False) == (
        question.prompt,
        question.messages,
        question.answers,
        question.run_id,
        question.attended,
    )
    assert question != Question("go", answers=Answers())


def test_a_question_cannot_be_changed() -> None:
    """A stream that nobody has looked at yet keeps it, and begins with what was asked."""
    question = Question("go")

    with pytest.raises(FrozenInstanceError):
        wrong(question).prompt = "stop"
