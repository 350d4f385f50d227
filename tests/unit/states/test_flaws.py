"""Flaws of fields: types that cannot fit are refused, and all that may fit is let through."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, Protocol, TypedDict

import pytest
from pydantic import BaseModel, BeforeValidator, Field, RootModel, model_validator

from graphloop.states import reduce
from graphloop.states.flaws import answer_flaw, items_flaw


class Note(BaseModel):
    """What an agent answers."""

    title: str
    score: int = 0


class Scored(Note):
    """More than a note."""

    by: str


class Letter(BaseModel):
    """Another thing."""

    to: str


class Renamed(BaseModel):
    """A letter whose JSON has other names."""

    receiver: str = Field(alias="to")


class Read(BaseModel):
    """A model that reads a text by itself."""

    to: str

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, given: object) -> object:
        return {"to": given} if isinstance(given, str) else given


class Titles(RootModel[list[str]]):
    """An array as a model."""


class Tree(BaseModel):
    """A model that contains itself."""

    under: list[Tree]


class Empty(BaseModel):
    """A model without fields."""


class Row(TypedDict):
    """A note as a mapping."""

    title: str


class Tone(Enum):
    """A field of fixed words."""

    DRY = "dry"


class Listing(Protocol):
    """What a field may keep."""

    def __len__(self) -> int: ...


@dataclass
class Card:
    """A note as a dataclass."""

    title: str
    score: int = 1


class Strange:
    """A class that pydantic does not know."""


JSON = {"type": "object"}


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (str, int),
        (str, Note),
        (str, list[Note]),
        (int, Note),
        (Note, float),
        (Note, list[Note]),
        (list[Note], Note),
        (Note, Letter),
        (Letter, Note),
        (Card, Letter),
        (Note, Scored),
        (list[Note], list[Letter]),
        (list[list[int]], tuple[Note, ...]),
        (Annotated[int, Field(ge=0)], dict[str, int]),
    ],
)
def test_an_answer_that_cannot_become_the_value_of_a_field_is_a_flaw(
    answer: Any, wanted: Any
) -> None:
    kind = type("State", (), {"__annotations__": {"one": wanted, "all": list[wanted]}})

    for name, is_listed in (("one", False), ("all", True)):
        flaw = answer_flaw(kind, name, "worker", answer, is_listed=is_listed)
        assert flaw is not None
        assert f"`into` '{name}'" in flaw[0]
        assert "agent 'worker'" in flaw[0]


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (Note, Note),
        (Scored, Note),
        (Note, Card),
        (Card, Row),
        (Row, Note),
        (Note, str),
        (Note, Any),
        (Note, object),
        (Any, Note),
        (JSON, Note),
        (Note, dict[str, object]),
        (Note, Empty),
        (Renamed, Letter),
        (Letter, Renamed),
        (str, Read),
        (str, date),
        (str, Tone),
        (str, Literal["a", "b"]),
        (str, Note | str),
        (str, Note | None),
        (list[str], list[Annotated[int, BeforeValidator(len)]]),
        (str, Titles),
        (list[str], Titles),
        (Titles, list[str]),
        (str, Strange),
        (str, Tree),
        (Note | Letter, Letter),
        (int, float),
        (list[Note], list[Card]),
        (list[Note], Sequence[Note]),
        (list[Any], list[Note]),
        (list, list[Note]),
        (tuple[int, ...], list[float]),
        (Tree, Note),
        (Annotated[Note, "a mark"], Annotated[Card, "another"]),
    ],
)
def test_what_may_fit_is_no_flaw(answer: Any, wanted: Any) -> None:
    """A graph that would run is never refused."""
    kind = type("State", (), {"__annotations__": {"one": wanted, "all": list[wanted]}})

    assert answer_flaw(kind, "one", "worker", answer, is_listed=False) is None
    assert answer_flaw(kind, "all", "worker", answer, is_listed=True) is None


def test_fields_of_an_unknown_type_have_no_flaw() -> None:
    for kind in (None, object, State):
        assert answer_flaw(kind, "none", "worker", str, is_listed=True) is None
        assert items_flaw(kind, "none") is None


@dataclass
class State:
    """Fields that hold items, or may, or cannot."""

    log: Annotated[list[str], reduce(operator.add)] = field(default_factory=list[str])
    notes: Annotated[list[Note], reduce(operator.add)] = field(default_factory=list[Note])
    total: Annotated[int, reduce(operator.add)] = 0
    pairs: tuple[int, ...] = ()
    text: str = ""
    raw: bytes = b""
    number: int = 0
    named: dict[str, int] = field(default_factory=dict[str, int])
    tone: Tone = Tone.DRY
    word: Literal["a", "b"] = "a"
    unique: frozenset[str] = frozenset()
    wide: Iterable[str] = ()
    some: Sequence[str] = ()
    maybe: list[str] | None = None
    anything: Any = None
    whatever: object = None
    listing: Listing = ()


@pytest.mark.parametrize("name", ["text", "raw", "number", "named", "unique", "tone", "word"])
def test_a_field_that_holds_no_items_is_a_flaw(name: str) -> None:
    flaw = items_flaw(State, name)

    assert flaw is not None
    assert f"`items`: expected a field that holds a list or a tuple, found '{name}'" in flaw[0]


@pytest.mark.parametrize(
    "name",
    ["log", "notes", "pairs", "wide", "some", "maybe", "anything", "whatever", "listing"],
)
def test_a_field_that_may_hold_items_is_no_flaw(name: str) -> None:
    assert items_flaw(State, name) is None


@pytest.mark.parametrize(
    ("name", "answer", "fits"),
    [
        ("notes", Note, True),
        ("notes", list[Note], True),
        ("notes", Letter, False),
        ("notes", str, False),
        ("log", Letter, True),
        ("total", int, True),
        ("total", str, False),
    ],
)
def test_a_reducer_takes_one_result_or_a_list_of_them(name: str, answer: Any, fits: bool) -> None:
    assert fits is (answer_flaw(State, name, "worker", answer, is_listed=False) is None)
