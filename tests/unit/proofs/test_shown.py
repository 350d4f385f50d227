"""shown: whatever a value is, holds or does is part of what it shows of itself."""

from __future__ import annotations

import sys
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from operator import attrgetter
from threading import Lock
from types import ModuleType, SimpleNamespace
from typing import NamedTuple

import pytest

from graphloop.proofs.likeness import alike
from graphloop.proofs.shown import hidden_in, mark, parts_of
from graphloop.tools import Tool, tool

KINDS = """
from __future__ import annotations
from collections import defaultdict, deque
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, IntFlag
from functools import partial
from typing import Annotated, NamedTuple
from pydantic import BaseModel, Field

Small = Annotated[int, Field(le={n})]

class Policy:
    MOST = {n}

    @classmethod
    def judge(cls, answer): return cls.most() > answer

    @classmethod
    def most(cls): return cls.MOST

class Meta(type):
    def __bool__(cls): return {n} > 1

class Metaed(metaclass=Meta):
    pass

@dataclass
class Checked:
    total: int
    def __post_init__(self):
        if self.total > {n}: raise ValueError

class Model(BaseModel):
    total: int
    def model_post_init(self, context):
        if self.total > {n}: raise ValueError

@dataclass
class Aliased:
    total: Small

@dataclass(eq=False)
class Odd:
    one: int = 1
    def __eq__(self, other): return {n}
    __hash__ = object.__hash__

def within():
    def judge(answer): return answer > Policy.MOST
    return judge

def holding(kind):
    def judge(answer): return kind(answer)
    return judge

def having(kind, *given):
    class Calls(kind):
        def __call__(self, answer): return answer > self.least
    made = Calls(*given)
    made.least = {n}
    return made

def doing(kind, *given):
    class Calls(kind):
        def __call__(self, answer): return answer > {n}
    return Calls(*given)

class Level(Enum):
    LOW = 1
    def __call__(self, answer): return answer > {n}

class Access(IntFlag):
    READ = 1
    WRITE = 2
    ALL = {n}

class Pair(NamedTuple):
    a: int
    def judge(self): return {n}
"""
"""Every class of it does something else when its one number is another."""

DOING: dict[str, Callable[[ModuleType], object]] = {
    "a class": lambda one: one.Policy,
    "a method of a class": lambda one: one.Policy.judge,
    "a class of a class": lambda one: one.Metaed,
    "a class in a closure": lambda one: one.holding(one.Policy),
    "a dataclass that checks": lambda one: one.Checked,
    "a model that checks": lambda one: one.Model,
    "an annotation by name": lambda one: one.Aliased,
    "an own __eq__": lambda one: one.Odd(),
    "a list": lambda one: one.having(list, [1]),
    "a dict": lambda one: one.having(dict, {1: 2}),
    "a set": lambda one: one.having(set, [1]),
    "a text": lambda one: one.having(str, "a"),
    "a number": lambda one: one.doing(int, 1),
    "a float": lambda one: one.doing(float, 1.5),
    "a complex": lambda one: one.doing(complex, 1.5),
    "a partial": lambda one: one.having(one.partial, len, "a"),
    "a deque": lambda one: one.having(one.deque, [1]),
    "an enum": lambda one: one.Level.LOW,
    "flags": lambda one: one.Access,
    "a named tuple": lambda one: one.Pair(1),
    "the default of a dict": lambda one: one.defaultdict(one.holding(one.Policy)),
}


def kinds(number: int) -> ModuleType:
    """Return what the file defines, loaded anew under the one name that it has."""
    module = sys.modules["a_file_of_kinds"] = ModuleType("a_file_of_kinds")
    code = compile(KINDS.replace("{n}", str(number)), "file.py", "exec", dont_inherit=True)
    exec(code, vars(module))  # noqa: S102 - a file of one's own
    return module


@pytest.mark.parametrize("kind", DOING)
def test_whatever_a_value_is_what_it_does_is_part_of_it(kind: str) -> None:
    """A check can be a method of a class, a list that can be called, or made of another class."""
    made_of = DOING[kind]
    first, again, other = (made_of(kinds(number)) for number in (10, 10, 1_000_000))

    assert alike(first, again)
    assert not alike(first, other)


class One(NamedTuple):
    a: int


class Other(NamedTuple):
    a: int


class Swapped(NamedTuple):
    b: int


Swapped.__qualname__ = "One"


def test_containers_of_different_kinds_are_not_alike() -> None:
    """The same numbers under another name mean something else; a list and a tuple do not."""
    assert not alike(One(1), Other(1))
    assert not alike(One(1), Swapped(1))
    assert not alike(One(1), (1,))
    of_numbers: defaultdict[str, int] = defaultdict(int)
    of_texts: defaultdict[str, str] = defaultdict(str)
    assert not alike(of_numbers, of_texts)
    assert not alike(deque([1]), deque([2]))
    assert alike([1, {2: 3}], (1, {2: 3}))


class Unwilling:
    """Whatever it is asked for, it fails; and so does what it says that it has."""

    def __init__(self, least: int) -> None:
        self.least = least

    def __getattr__(self, name: str) -> object:
        raise KeyError(name)

    @property
    def facts(self) -> object:
        raise RuntimeError(self.least)


def test_an_object_that_answers_with_errors_is_compared_by_what_it_holds() -> None:
    """It is anybody's, and a comparison is no reason to fail."""
    assert alike(Unwilling(1), Unwilling(1))
    assert not alike(Unwilling(1), Unwilling(2))


def test_what_is_written_in_c_is_told_by_how_it_is_copied() -> None:
    """What cannot be copied shows nothing of itself."""
    assert alike(attrgetter("text"), attrgetter("text"))
    assert not alike(attrgetter("text"), attrgetter("usage"))
    assert alike(deque([One(1)]), deque([One(1)]))
    assert hidden_in(Lock()) is None
    assert hidden_in(Unwilling(1)) == []


@tool
def read(path: str) -> str:
    """Read a file."""
    return path


def test_an_object_of_the_library_with_facts_is_told_by_these_alone() -> None:
    """What it works with is nobody's business."""
    assert isinstance(read, Tool)
    assert parts_of(read) == dict(read.facts)
    assert parts_of(SimpleNamespace(facts={"a": 1}, b=2)) == {"facts": {"a": 1}, "b": 2}
    assert parts_of(1) is None


class Level(Enum):
    LOW = 1


@dataclass(frozen=True)
class Place:
    row: int
    within: Place | None = None


TABLES: list[Callable[[int], object]] = [
    lambda at: at,
    lambda at: (at, "a"),
    Decimal,
    Fraction,
    lambda at: Place(1, Place(at)),
    lambda at: type(f"Kind{at}", (), {}),
]


@pytest.mark.parametrize("key", TABLES)
def test_a_table_with_any_keys_is_compared_in_a_moment(key: Callable[[int], object]) -> None:
    """In another order it is the same. Each pair of entries was tried: it took minutes."""
    size = 300
    table = {key(at): f"code {at}" for at in range(size)}
    turned = {key(at): f"code {at}" for at in reversed(range(size))}

    assert alike(table, turned)
    assert not alike(table, {**turned, key(size - 1): "another"})
    assert not alike({*table}, {*[key(at) for at in range(1, size + 1)]})


def test_what_is_alike_has_one_mark() -> None:
    """Else the two would not be held against each other at all."""
    first, again = kinds(10), kinds(10)

    for made_of in DOING.values():
        assert mark(made_of(first)) == mark(made_of(again))
    assert mark((1, 2)) == mark([1, 2]) != mark([1, 3])
    assert mark(1) != mark(True)
    assert mark(float("nan")) == mark(float("nan"))
    assert mark(Level.LOW) == mark(Level.LOW)
