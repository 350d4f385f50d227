"""Likeness: what was made twice is the same, and what says something else is not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import pytest
from pydantic import BaseModel, field_validator, model_validator

from graphloop.policy import Rule
from graphloop.proofs.likeness import alike, parts_of
from graphloop.stop import cost_exceeds

SOURCE = """
class Done: ...

class Slotted:
    __slots__ = ("one",)

    def __init__(self, one):
        self.one = one

def judge(answer, least=%s):
    "Say whether it is good."
    return len(answer) > %s and least

def within(least):
    def inner(answer):
        return len(answer) > least
    return inner
"""


def made(least: int = 1, more: int = 2) -> SimpleNamespace:
    """Return what a file defines, as if it were loaded anew."""
    names: dict[str, object] = {}
    exec(SOURCE % (least, more), names)  # noqa: S102 - a file of one's own
    return SimpleNamespace(**names)


PAIRS: list[Callable[[SimpleNamespace], object]] = [
    lambda one: one.Done,
    lambda one: one.judge,
    lambda one: one.within(2),
    lambda one: partial(one.judge, least=3),
    lambda one: {one.Done: [one.judge]},
    lambda one: frozenset({one.Done}),
    lambda one: one.Slotted(one.judge),
    lambda one: SimpleNamespace(check=one.judge),
    lambda one: one.Slotted(1).__init__,
]


@pytest.mark.parametrize("made_of", PAIRS)
def test_what_is_made_twice_is_alike(made_of: Callable[[SimpleNamespace], object]) -> None:
    """Two versions of a file define everything twice."""
    assert alike(made_of(made()), made_of(made()))


def test_what_says_something_else_is_not() -> None:
    """Another body, another default, another closure, another field."""
    one, other, third = made(), made(more=3), made(least=2)

    assert not alike(one.judge, other.judge)
    assert not alike(one.judge, third.judge)
    assert not alike(one.within(1), one.within(2))
    assert not alike(one.Slotted(1), one.Slotted(2))
    assert not alike(Rule("ask", ("a",)), Rule("ask", ("a",), ttl_s=1.0))
    assert not alike(cost_exceeds(1), cost_exceeds(2))
    assert not alike(object(), object())
    assert not alike(("a", "b"), ("b", "a"))
    assert not alike(1, True)


def test_an_object_with_facts_is_told_by_these_alone() -> None:
    """What it works with is nobody's business."""
    one, other = (SimpleNamespace(facts={"model": "a"}, socket=object()) for _ in "ab")

    assert alike(one, other)
    assert {"model": "a"} == parts_of(one)
    assert parts_of(1) is None


def test_what_contains_itself_is_compared() -> None:
    """As deep as anybody looks."""
    one: list[object] = []
    one.append(one)

    assert alike(one, one)


def test_a_class_that_its_own_validators_name_is_the_same_when_it_is_made_twice() -> None:
    """A function of a class may hold the class; that is no end of it."""

    def made_model(least: int) -> type[BaseModel]:
        class Answer(BaseModel):
            score: int

            @model_validator(mode="after")
            def enough(self) -> Answer:
                assert isinstance(self, Answer)
                assert self.score >= least
                return self

            @field_validator("score")
            @classmethod
            def positive(cls, value: int) -> int:
                return value

        return Answer

    assert alike(made_model(1), made_model(1))
    assert not alike(made_model(1), made_model(2))
