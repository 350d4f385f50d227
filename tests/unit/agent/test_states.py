"""The user's state: its fields, and whether it can change, by its type."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from threading import Lock
from typing import Any, NamedTuple, TypedDict, cast

import pytest
from msgspec import Struct
from pydantic import BaseModel, ConfigDict

from graphloop import END, EndReason, Graph, node
from graphloop.agent.states import fields_of, is_frozen, lent, states_fit
from graphloop.errors import ConfigError, GraphloopError
from graphloop.outcomes import Outcome
from tests.own_nodes import Open, Ticket
from tests.strategies import wrong


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


@dataclass(frozen=True)
class Noted:
    """A state whose fields stay the objects that they are, whatever becomes of these."""

    notes: Collection[object] = ()


class Seen(Outcome):
    """The only way on."""


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


@pytest.mark.parametrize(
    "state",
    [
        *(None, 1, "x", (1,), ("x", (2, frozenset({3}))), date(2026, 11, 22), EndReason.ERROR),
        *(Ticket("x"), Fixed(), Tight(), Pair(), Noted(), Noted((Ticket("x"),))),
    ],
)
def test_what_cannot_change_is_given_as_it_is(state: object) -> None:
    """A copy would cost, and protect nothing."""
    assert is_frozen(state)
    assert lent(state) is state


@pytest.mark.parametrize(
    "state",
    [
        *(Open("x"), Model(), Loose(), {"x": 1}, [1], ([1],), bytearray(b"x")),
        *(Noted([]), Noted((Noted({}),)), Pair(wrong([]))),
    ],
)
def test_what_can_change_is_lent_as_a_copy(state: object) -> None:
    """The run's own stays as the journal tells it."""
    assert not is_frozen(state)
    assert lent(state) is not state
    assert lent(state) == state


def test_what_a_frozen_state_holds_is_protected_too() -> None:
    """A list in it would carry what one run wrote into the next, and no journal would know."""
    state = Noted([])

    @node
    async def note(given: Noted) -> Seen:
        cast("list[object]", given.notes).append("seen")
        return Seen()

    graph = Graph("g", note, {note: {...: END}})

    with pytest.raises(GraphloopError, match="changed its state in place"):
        asyncio.run(graph.run(state))
    assert [] == state.notes


def test_states_of_one_type_fit() -> None:
    """And so does a node that takes any."""
    assert states_fit(Ticket, Ticket)
    assert states_fit(Any, Ticket)
    assert not states_fit(None, Ticket)


def test_what_cannot_be_copied_is_no_state() -> None:
    """Nobody could tell whether a function has changed it."""
    with pytest.raises(ConfigError, match=r"a state of type Noted cannot be copied.*Fix: keep"):
        lent(Noted(wrong(Lock())))
