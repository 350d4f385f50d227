"""The user's state: its fields, and whether it can change, by its type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import pytest
from msgspec import Struct
from pydantic import BaseModel, ConfigDict

from graphloop.front.states import changed_fields, fields_of, is_frozen, lent, states_fit
from tests.own_nodes import Open, Ticket


class Model(BaseModel):
    """A model that can be changed."""

    x: int = 0


class Fixed(BaseModel):
    """One that cannot."""

    model_config = ConfigDict(frozen=True)
    x: int = 0


class Loose(Struct):
    """A struct that can be changed."""

    x: int = 0


class Tight(Struct, frozen=True):
    """One that cannot."""

    x: int = 0


class Pair(NamedTuple):
    """A named tuple."""

    x: int = 0


class Table(TypedDict):
    """A typed mapping."""

    x: int


@dataclass
class Nothing:
    """A state without fields."""


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (Ticket, {"text", "team", "tries"}),
        (Model, {"x"}),
        (Tight, {"x"}),
        (Pair, {"x"}),
        (Table, {"x"}),
        (Nothing, set[str]()),
        (dict, None),
        (str, None),
        (dict[str, int], None),
    ],
)
def test_a_type_tells_its_fields_if_it_has_any(kind: object, names: set[str] | None) -> None:
    """What is not told is not known, and not checked."""
    assert names == fields_of(kind)


@pytest.mark.parametrize("state", [None, 1, "x", (1,), Ticket("x"), Fixed(), Tight(), Pair()])
def test_what_cannot_change_is_given_as_it_is(state: object) -> None:
    """A copy would cost, and protect nothing."""
    assert is_frozen(state)
    assert lent(state) is state


@pytest.mark.parametrize("state", [Open("x"), Model(), Loose(), {"x": 1}, [1]])
def test_what_can_change_is_lent_as_a_copy(state: object) -> None:
    """The run's own stays as the journal tells it."""
    assert not is_frozen(state)
    assert lent(state) is not state
    assert lent(state) == state


def test_changed_fields_are_those_that_differ() -> None:
    """But for those that may."""
    assert ["team"] == changed_fields(Ticket, Ticket("x"), Ticket("x", "b"), {"text"})
    assert [] == changed_fields(Ticket, Ticket("x"), Ticket("x", "b"), {"team"})
    assert ["x"] == changed_fields(Table, {"x": 1}, {"x": 2}, ())
    assert [] == changed_fields(str, "x", "y", ())


def test_states_of_one_type_fit() -> None:
    """And so does a node that takes any."""
    assert states_fit(Ticket, Ticket)
    assert states_fit(Any, Ticket)
    assert not states_fit(None, Ticket)
