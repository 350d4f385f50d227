"""Only what is known to come back from a journal as it was is taken for safe."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag, IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType, Union
from uuid import UUID

import pytest
from annotated_types import Ge
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, field_validator

from graphloop.events import Setup, Started
from graphloop.proofs.report import Finding, Unknown
from graphloop.proofs.state_types import unsafe_parts
from graphloop.stores.codec import Codec


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(Enum):
    TEXT = "1"
    NUMBER = 1


class Rights(Flag):
    READ = 1
    WRITE = 2


class Pair(NamedTuple):
    number: int
    text: str = "x"


class Calling(NamedTuple):
    call: Callable[[], int]


Name = NewType("Name", str)


@dataclass
class Leaf:
    name: Name
    pair: Pair | None = None
    more: list[Leaf] = field(default_factory=list["Leaf"])


class Model(BaseModel):
    leaf: Leaf
    level: Annotated[int, Ge(0)] = 0
    told: str = Field("x", max_length=100)


@dataclass
class Circle:
    size: int
    kind: Literal["circle"] = "circle"


@dataclass
class Square:
    size: int
    kind: Literal["square"] = "square"


@dataclass
class Other:
    size: int


@dataclass
class Base:
    size: int


@dataclass
class Derived(Base):
    more: int = 0


@dataclass
class Posted:
    size: int

    def __post_init__(self) -> None:
        self.size += 1


@dataclass
class Computed:
    size: int = field(init=False, default=1)


@dataclass
class Listed(list[int]):
    size: int = 0


class Private(BaseModel):
    _hidden: int = PrivateAttr(1)


class Changing(BaseModel):
    text: str

    @field_validator("text")
    @classmethod
    def shouted(cls, value: str) -> str:
        return value + "!"


class Renamed(BaseModel):
    text: str = Field(alias="other")


class Left(BaseModel):
    text: str = Field("x", exclude=True)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Stripped(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)
    text: str = ""


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
NUMBERS = st.floats(allow_nan=False)
LEAVES = st.builds(Leaf, name=TEXTS, pair=st.none() | st.builds(Pair, st.integers(), TEXTS))
SURE: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers()),
    (float, NUMBERS),
    (bool, st.booleans()),
    (str, TEXTS),
    (date, st.dates()),
    (timedelta, st.timedeltas()),
    (UUID, st.uuids()),
    (Path, st.builds(Path, TEXTS.filter(lambda one: "\0" not in one))),
    (Color, st.sampled_from(Color)),
    (Level, st.sampled_from(Level)),
    (Literal["a", "b", None], st.sampled_from(["a", "b", None])),
    (list[float], st.lists(NUMBERS)),
    (tuple[int, ...], st.lists(st.integers()).map(tuple)),
    (tuple[int, str], st.tuples(st.integers(), TEXTS)),
    (set[int], st.sets(st.integers())),
    (frozenset[Pair], st.frozensets(st.builds(Pair, st.integers(), TEXTS), max_size=3)),
    (dict[str, list[int]], st.dictionaries(TEXTS, st.lists(st.integers(), max_size=2))),
    (dict[int, bool], st.dictionaries(st.integers(), st.booleans())),
    (dict[date, UUID], st.dictionaries(st.dates(), st.uuids())),
    (dict[UUID, None], st.dictionaries(st.uuids(), st.none())),
    (dict[Color, int], st.dictionaries(st.sampled_from(Color), st.integers())),
    (dict[Literal["a", "b"], int], st.dictionaries(st.sampled_from(["a", "b"]), st.integers())),
    (int | str | bool | None, st.integers() | TEXTS | st.booleans() | st.none()),
    (int | float, st.integers() | NUMBERS),
    (bool | float, st.booleans() | NUMBERS),
    (list[int] | dict[str, int] | str, st.lists(st.integers()) | TEXTS),
    (list[date] | float, st.lists(st.dates(), max_size=2) | NUMBERS),
    (
        Circle | Square,
        st.builds(Circle, st.integers(), st.just("circle")) | st.builds(Square, st.integers()),
    ),
    (Leaf, LEAVES),
    (Model, st.builds(Model, leaf=LEAVES, level=st.integers(0), told=TEXTS)),
]
UNSURE: list[Any] = [
    *(bytes, bytearray, complex, datetime, time, Decimal, range),
    *(list, tuple, dict, deque[int], Sequence[int], Mapping[str, int]),
    *(Mixed, Rights, Literal["1", 1], Literal[Color.RED]),
    *(dict[float, int], dict[Level, int], dict[str | None, int], dict[datetime, int]),
    *(
        Literal["a"] | str,
        str | date,
        bytes | str,
        str | Color,
        float | str,
        Color | Literal["red"],
    ),
    *(list[int] | tuple[int, ...], set[int] | list[int], Other | Circle, dict[str, int] | Other),
    Annotated[int, BeforeValidator(abs)],
    *(Base, Base | None, Posted, Computed, Listed),
    *(Private, Changing, Renamed, Left, Open, Stripped),
    Union[Other, None, list[Decimal]],  # noqa: UP007 - as older code writes it.
]
LOST: list[Any] = [
    *(Callable[[], None], Iterator[int], Iterable[int], type[int], type),
    *(dict[tuple[int, int], int], dict[Pair, int], dict[frozenset[int], int]),
    *(Calling, list[Calling | None]),
]


def holding(of: object) -> type[Any]:
    """Return a state that holds one value of a type."""
    return make_dataclass("State", [("value", of)])


@pytest.mark.parametrize(("of", "values"), SURE, ids=[str(one) for one, _ in SURE])
def test_what_is_sure_comes_back_as_it_was(of: object, values: st.SearchStrategy[object]) -> None:
    """Whatever value it holds: this is what a proof promises."""
    assert not list(unsafe_parts(of, "state"))
    state_type = holding(of)
    codec = Codec(state_type)

    @given(values)
    def comes_back(value: object) -> None:
        started = Started(0.0, "r", "g", (), Setup(""), state_type(value))
        _, read = codec.decode(codec.encode(1, started))
        assert isinstance(read, Started)
        assert started.state == read.state
        assert type(value) is type(getattr(read.state, "value", None)) or value in (0, 1)

    comes_back()


@pytest.mark.parametrize("of", UNSURE, ids=str)
def test_what_may_come_back_as_something_else_is_unknown(of: object) -> None:
    """And so is what nobody has thought of."""
    found = list(unsafe_parts(of, "state"))

    assert found
    assert all(isinstance(one, Unknown) and "state" in one.reason for one in found)


@pytest.mark.parametrize("of", LOST, ids=str)
def test_what_surely_does_not_come_back_is_an_error(of: object) -> None:
    """Nobody has to wait for the run that cannot be taken up."""
    assert [True] == [isinstance(one, Finding) for one in unsafe_parts(of, "state")]


def test_a_part_is_told_by_its_place() -> None:
    """A state may be large."""
    (found,) = unsafe_parts(holding(list[dict[str, bytes]]), "State")

    assert isinstance(found, Unknown)
    assert found.reason.startswith("State.value is of type bytes, and what is no UTF-8")
