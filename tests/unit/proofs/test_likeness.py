"""Likeness: what was made twice is the same, and what says something else is not."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from threading import Lock
from types import SimpleNamespace

import pytest
from pydantic import BaseModel, field_validator, model_validator

from graphloop.policy import Rule
from graphloop.proofs.likeness import alike
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
    lambda one: one.Slotted,
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


def test_an_object_of_anybodys_with_facts_is_told_by_all_of_it() -> None:
    """The word is free: only what this library calls so is all that there is to say."""
    one, other = (SimpleNamespace(facts={"lang": "en"}, least=least) for least in (1, 2))

    assert not alike(one, other)
    assert alike(one, SimpleNamespace(facts={"lang": "en"}, least=1))


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


CLASSES = """
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, lru_cache
from typing import ClassVar

class Over:
    least = %s

    def __call__(self, answer, context=None):
        "Say whether it is too much."
        return answer > self.least + %s

class Holding(Over):
    def __init__(self):
        self.number = 1

@dataclass
class Record:
    number: int = 1
    LIMIT: ClassVar[dict] = {"a": %s}
    unlike: int = field(default=%s, compare=False)

    def __call__(self, answer):
        return answer > self.LIMIT["a"]

class Lazy:
    @classmethod
    def of(cls):
        return cls()

    @staticmethod
    def judge(answer):
        return answer > %s

    @property
    def one(self):
        return self.two + %s

    @cached_property
    def two(self):
        return %s

class Private:
    __slots__ = ("__least",)

    def __init__(self):
        self.__least = %s

class Calls(dict):
    def __call__(self, answer):
        return answer > %s

def recursive():
    def count(answer):
        return count(answer - 1) if answer else %s
    return count

def keyword(answer, *, least=%s):
    return answer > least

def attribute(answer):
    return answer > attribute.least

attribute.least = %s

@lru_cache
def cached(answer):
    return answer > %s

def within(first, second):
    %s
    return first(second)

class Level(Enum):
    LOW = %s

class Base:
    score: %s

class Answer(Base):
    more: int

many = list[Answer]
found = {"a", "b", %s}.__contains__
"""


def classes(**changed: object) -> SimpleNamespace:
    """Return what a file defines, with other words at some of its places."""
    first = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, "pass", 14, "int", "'c'"]
    given = [changed.get(f"at{at}", one) for at, one in enumerate(first)]
    names: dict[str, object] = {"__name__": "file"}
    code = compile(CLASSES % tuple(given), "file.py", "exec", dont_inherit=True)
    exec(code, names)  # noqa: S102 - a file of one's own
    return SimpleNamespace(**names)


PLACES: list[tuple[str, Callable[[SimpleNamespace], object]]] = [
    ("at0", lambda one: one.Over()),
    ("at1", lambda one: one.Over()),
    ("at1", lambda one: one.Holding()),
    ("at1", lambda one: one.Over().__call__),
    ("at2", lambda one: one.Record()),
    ("at3", lambda one: one.Record()),
    ("at4", lambda one: one.Lazy()),
    ("at5", lambda one: one.Lazy()),
    ("at6", lambda one: one.Lazy()),
    ("at7", lambda one: one.Private()),
    ("at8", lambda one: one.Calls()),
    ("at9", lambda one: one.recursive()),
    ("at10", lambda one: one.keyword),
    ("at11", lambda one: one.attribute),
    ("at12", lambda one: one.cached),
    ("at14", lambda one: one.Level),
    ("at14", lambda one: one.Level.LOW),
    ("at15", lambda one: one.Base),
    ("at15", lambda one: one.Answer),
    ("at15", lambda one: one.many),
    ("at16", lambda one: one.found),
]


@pytest.mark.parametrize(("place", "made_of"), PLACES)
def test_what_a_value_does_is_part_of_what_it_says(
    place: str, made_of: Callable[[SimpleNamespace], object]
) -> None:
    """Whatever is asked whether a call may run: it can be an object, and its class may change."""
    other = {"at15": "str", "at16": "'d'"}.get(place, 99)

    assert alike(made_of(classes()), made_of(classes()))
    assert not alike(made_of(classes()), made_of(classes(**{place: other})))


def test_what_a_function_is_documented_by_is_no_part_of_what_it_does() -> None:
    """No comment stops a release; what is returned as well is no comment."""
    one, other, none = (classes(at13=doc).within for doc in ("'x'", "'y'", "# none"))
    code = "def judge(answer):\n    'doc'\n    return 'doc'"
    names: list[dict[str, object]] = [{}, {}]
    exec(code, names[0])  # noqa: S102 - a file of one's own
    exec(code.replace("doc", "other"), names[1])  # noqa: S102 - a file of one's own

    assert alike(one, other)
    assert alike(one, none)
    assert not alike(names[0]["judge"], names[1]["judge"])


def test_what_parameters_are_for_is_part_of_a_function() -> None:
    """And so is which lines a `try` is around."""
    codes = [
        ("def f(a, b=1): return b", "def f(a, *, b=1): return b"),
        (
            "def f(a):\n try: x = g(a); y = h(a)\n except ValueError: return 1",
            "def f(a):\n x = g(a)\n try: y = h(a)\n except ValueError: return 1",
        ),
    ]
    for pair in codes:
        made_of: list[dict[str, object]] = [{}, {}]
        for text, names in zip(pair, made_of, strict=True):
            exec(text, names)  # noqa: S102 - a file of one's own
        assert not alike(*[names["f"] for names in made_of])


def test_sets_and_keys_are_compared_by_what_they_say() -> None:
    """In any order, each with one of the other side."""
    one, other = made(), made(more=3)

    assert not alike({Decimal(1)}, {Decimal(2)})
    assert not alike({Decimal(1): 1}, {Decimal(2): 1})
    assert not alike({one.judge, one.Done}, {other.judge, other.Done})
    assert alike({one.judge, one.Done}, {made().Done, made().judge})
    assert not alike({1}, {True})
    assert not alike({(1, "a")}, {(1, "b")})
    assert not alike("a", None)
    assert not alike(Decimal(1), 1)


def test_what_cannot_say_that_it_is_equal_is_not() -> None:
    """It may be anybody's."""

    class Odd:
        __slots__ = ("__weakref__",)

        def __eq__(self, other: object) -> bool:
            raise ValueError(other)

        def __hash__(self) -> int:
            return 1

    class Counting(Exception):
        """It holds what nobody sees."""

    assert not alike(Counting(1), Counting(2))
    assert alike(Odd(), Odd()), "it holds nothing"
    assert not alike(Lock(), Lock())


def test_what_is_shared_many_times_is_compared_once() -> None:
    """Else a value of some lines would take for ever."""

    def layers() -> object:
        found: object = [object]
        for _ in range(60):
            found = [found, found, found]
        return found

    assert alike(layers(), layers())
