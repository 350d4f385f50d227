"""Told: what functions of the user's hear and may answer; plain values, frozen."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from graphloop import AnswerInfo, StepChanges, StepInfo, Usage, Verdict
from graphloop.values import UserMessage
from tests.strategies import wrong

VALUES = [
    StepInfo(0, (UserMessage("go"),), Usage()),
    StepChanges(),
    AnswerInfo("text", None, (), Usage(), 0, 0),
    Verdict(ok=True),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_what_is_told_cannot_be_changed(value: object) -> None:
    """A function that changes what it is told changes nothing, and must hear so."""
    name = next(iter(type(value).__annotations__))

    with pytest.raises(FrozenInstanceError):
        setattr(value, name, None)


def test_no_change_is_the_default() -> None:
    """Whoever changes one thing names one thing."""
    assert StepChanges(None, (), (), None, None, None) == StepChanges()


def test_a_verdict_that_says_no_asks_for_another_answer() -> None:
    """`retry=False` is for an answer that will not get better."""
    assert (False, "", True) == ((one := Verdict(ok=False)).ok, one.feedback, one.retry)


def test_a_misspelt_change_is_refused_by_python_itself() -> None:
    """`StepChanges(tools=…)` must not look like a turn that obeyed."""
    with pytest.raises(TypeError, match="tools"):
        StepChanges(**wrong({"tools": ["x"]}))
