"""What differs between two states: what their journals would tell apart."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypedDict

import pytest
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, PrivateAttr

from graphloop.agent.states import changed_fields, same_state
from tests.own_nodes import Ticket


class Table(TypedDict):
    """A typed mapping."""

    x: int


class Loose(Struct):
    """A struct."""

    x: object = 0


class Pair(NamedTuple):
    """A named tuple."""

    x: object = 0


@dataclass(frozen=True)
class Noted:
    """A state whose field stays the object that it is."""

    x: object = 0


class Plain:
    """A class that does not say when two of its objects are alike."""

    def __init__(self, x: object = 0) -> None:
        self.x = x

    @cached_property
    def length(self) -> int:
        """Something that is kept once it was asked for."""
        return len(str(self.x))


class Slotted:
    """One without a dictionary."""

    __slots__ = ("x", "y")

    def __init__(self, x: object = 0) -> None:
        self.x = x


class Array:
    """One whose comparison is no yes or no, as that of an array."""

    def __init__(self, x: object = 0) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        raise ValueError("the truth of an array is not known")

    def __hash__(self) -> int:
        return 1


@dataclass
class Hidden:
    """A field that `==` does not look at."""

    x: object = field(default=0, compare=False)


@dataclass(eq=False)
class Own:
    """Each is equal to itself alone."""

    x: object = 0


class Circle:
    """One that holds itself."""

    def __init__(self, x: object = 0) -> None:
        self.x = x
        self.own = self


class Extra(BaseModel):
    """A model that keeps what it does not know."""

    model_config = ConfigDict(extra="allow")
    x: object = 0
    _seen: object = PrivateAttr(0)

    def look(self) -> Extra:
        """Change what is no field."""
        self._seen = 1
        return self


HOLDERS: tuple[Callable[[object], object], ...] = (
    *(Plain, Slotted, Array, Hidden, Own, Circle, Pair, Noted, Loose),
    lambda x: Extra(x=x),
    lambda x: Extra.model_validate({"other": x}),
    lambda x: {"x": x},
    lambda x: [x],
    lambda x: deque([x]),
    lambda x: (x, 1),
    lambda x: Plain(Own(x)),
    lambda x: {Plain(x), Plain(0)},
)


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize(
    "value", [1, [1], Plain(1), {Plain(1)}, {Plain(1): 2}, float("nan"), Path("a")]
)
def test_an_untouched_copy_is_alike(holder: Callable[[object], object], value: object) -> None:
    """Also of what is equal to itself alone: nobody has changed it."""
    state = holder(value)

    assert same_state(copy.deepcopy(state), state)


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        *[(1, 2), ([1], [1, 2]), ({1}, {2}), ({"a": 1}, {"a": 2}), ({"a": 1}, {"b": 1})],
        *[(Plain(1), Plain(2)), ({Plain(1)}, {Plain(2)}), (1, True), (Path("a"), Path("b"))],
    ],
)
def test_what_was_changed_is_not_alike(
    holder: Callable[[object], object], old: object, new: object
) -> None:
    """Whether or not its class says when two of its objects are equal."""
    assert not same_state(holder(old), holder(new))


def test_what_an_object_keeps_of_its_own_is_no_change() -> None:
    """It was asked for, not written; and of what says nothing nobody can tell."""
    asked = Plain(1)
    assert 1 == asked.length
    assert same_state(Plain(1), asked)
    assert same_state(object(), object())
    assert same_state({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert not same_state(Extra(), Extra().look())


def test_changed_fields_are_those_that_differ() -> None:
    """But for those that may."""
    assert ["team"] == changed_fields(Ticket, Ticket("x"), Ticket("x", "b"), {"text"})
    assert [] == changed_fields(Ticket, Ticket("x"), Ticket("x", "b"), {"team"})
    assert ["x"] == changed_fields(Table, {"x": 1}, {"x": 2}, ())
    assert [] == changed_fields(str, "x", "y", ())
    assert [] == changed_fields(Noted, Noted(Plain()), Noted(Plain()), ())
