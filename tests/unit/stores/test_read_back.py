"""read_back: where what would be read differs from what was given."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta, timezone
from enum import IntEnum, StrEnum
from typing import Generic, NamedTuple, TypeVar, final
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr
from pydantic_core import TzInfo

from graphloop.stores.read_back import Apart, apart

T = TypeVar("T")
NAN = float("nan")
BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Part(BaseModel):
    """A model."""

    k: object = 1


class More(Part):
    """One that has more."""

    m: int = 2


class Open(BaseModel):
    """A model that takes whatever comes, and hides something."""

    model_config = ConfigDict(extra="allow")
    part: Part = Part()
    _hidden: int = PrivateAttr(0)

    def hides(self, hidden: int) -> Open:
        """Return the same, with another thing hidden."""
        self._hidden = hidden
        return self


@dataclass
class Row:
    """A dataclass of anything."""

    value: object = None
    seen: object = field(default=None, compare=False)


@dataclass(eq=False)
class Same:
    """A dataclass that compares by identity."""

    value: object = 1


class Boxed(BaseModel, Generic[T]):
    """A model of what it holds."""

    value: T


class Old(BaseModel):
    """A model that warns whoever asks it for a value."""

    value: int = Field(default=1, deprecated=True)


class Size(IntEnum):
    """Numbers with names."""

    SMALL = 1


class Word(StrEnum):
    """Texts with names."""

    OPEN = "open"


class Point(NamedTuple):
    """A pair with names."""

    x: int
    y: int


@final
class Opaque:
    """What nobody can look into, nor write."""


@final
class Array:
    """What refuses to say whether it is equal."""

    def __eq__(self, other: object) -> bool:
        """Refuse."""
        raise ValueError("the truth value of an array is ambiguous")

    __hash__ = None  # type: ignore[assignment]  # as arrays have it


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (1, 1),
        (1, 1.0),
        (NAN, float("nan")),
        (Row(NAN), Row(float("nan"))),
        ([1, (NAN,)], [1, (float("nan"),)]),
        (deque([NAN]), deque([float("nan")])),
        ({"a": NAN}, {"a": float("nan")}),
        ({NAN}, {float("nan")}),
        (Part(k=NAN), Part(k=float("nan"))),
        (Same(), Same()),
        (frozenset([Same(), Same(2)]), frozenset([Same(2), Same()])),
        (Row(Opaque()), Row(Opaque())),
        (Row(Array()), Row(Array())),
        ({1}, {1.0}),
        ({1: 1}, {1.0: 1}),
        ({NAN: 1}, {float("nan"): 1}),
        ({frozenset("abcdefgh"), 1}, {1, frozenset("hgfedcba")}),
        (defaultdict(int, a=1), defaultdict(int, a=1)),
        (deque([1], 5), deque([1], 5)),
        (Size.SMALL, Size.SMALL),
        (Point(1, 2), Point(1, 2)),
        (Boxed(value=1), Boxed[int](value=1)),
        (Old(), Old()),
        (NOON, NOON.replace(tzinfo=TzInfo(0))),
        (NOON.replace(tzinfo=ZoneInfo("UTC")), NOON.replace(tzinfo=TzInfo(0))),
        (time(1, tzinfo=timezone(timedelta(hours=1))), time(1, tzinfo=TzInfo(3600))),
        (NOON.astimezone(BERLIN), NOON.astimezone(BERLIN)),
    ],
)
def test_what_is_the_same_is_not_apart(given: object, read: object) -> None:
    """Also where `==` says no, or nothing, of values that nobody could tell apart."""
    assert apart(given, read) is None


@pytest.mark.parametrize(
    ("given", "read", "place"),
    [
        (2, 3, ""),
        (math.inf, None, ""),
        (NAN, 1.0, ""),
        (1.0, NAN, ""),
        ((1, 2), [1, 2], ""),
        ([1, 2], [1], ""),
        ({1: 2}, {"1": 2}, ""),
        (Part(), More(), ""),
        (Open(part=More()), Open(), "part"),
        (Open.model_validate({"z": 1}), Open.model_validate({"z": 2}), "z"),
        (Open().hides(7), Open(), "_hidden"),
        (Row([Row(), Row("x")]), Row([Row(), Row("y")]), "value.1.value"),
        (Same(1), Same(2), "value"),
        ({Same(1)}, {Same(2)}, ""),
        ({"a": {"b": (NAN, 1)}}, {"a": {"b": (NAN, 2)}}, "a.b.1"),
        ({Opaque()}, {Opaque()}, ""),
        (True, 1, ""),
        (1, True, ""),
        (2.0, 2, ""),
        (Word.OPEN, "open", ""),
        ([Size.SMALL], [1], "0"),
        (Row({"a": (Point(1, 2),)}), Row({"a": ((1, 2),)}), "value.a.0"),
        (OrderedDict[str, int](a=1), {"a": 1}, ""),
        (Counter("a"), {"a": 1}, ""),
        (defaultdict(int, a=1), {"a": 1}, ""),
        (defaultdict[str, int](int), defaultdict[str, str](str), "default_factory"),
        (deque([1], 5), deque([1]), "maxlen"),
        (frozenset([1]), {1}, ""),
        ({True}, {1}, "<item>"),
        (Row({Word.OPEN}), Row({"open"}), "value.<item>"),
        ({"a": {Size.SMALL: 1}}, {"a": {1: 1}}, "a.<key>"),
        ({1, 2}, {1}, ""),
        (Row(1, seen=1), Row(1, seen=2), "seen"),
        (Row(NOON.astimezone(BERLIN)), Row(NOON.astimezone(TzInfo(3600))), "value.tzinfo"),
        (time(1, tzinfo=BERLIN), time(1), "tzinfo"),
        (datetime(2026, 1, 1, fold=1), datetime(2026, 1, 1), "fold"),
    ],
)
def test_what_differs_is_told_where_it_does(given: object, read: object, place: str) -> None:
    """The first place of all, as far in as there is a name for it."""
    found = apart(given, read)

    assert found is not None
    assert place == found.place


def test_a_difference_is_told_in_words() -> None:
    """What was found, and what would come of it."""
    assert "`x` would be read back as 3; found 2" == str(Apart("x", 2, 3))
    assert "it would be read back as []; found ()" == str(Apart("", (), []))
    assert 240 > len(str(Apart("x", "y" * 1000, "z" * 1000)))


@pytest.mark.parametrize(
    ("given", "read", "fix"),
    [
        (True, 1, "annotate it as `bool`, or give a plain `int`"),
        (Word.OPEN, "open", "annotate it as `Word`, or give a plain `str`"),
        ((1,), [1], "annotate it as `tuple[..., ...]`, or give a plain `list`"),
        (Counter("a"), {"a": 1}, "annotate it as `Counter[...]`, or give a plain `dict`"),
        (math.inf, None, "annotate it as `float`"),
        ({1: 2}, {"1": 2}, "annotate its keys as `int`, or give it keys that are a plain `str`"),
        (
            defaultdict[str, Opaque](Opaque),
            defaultdict[str, int](int),
            "give it the default factory `int`",
        ),
        (deque([1], 5), deque([1]), "give it no `maxlen`"),
        (NOON.astimezone(BERLIN), NOON, "give it in UTC (`.astimezone(UTC)`)"),
        (datetime(2026, 1, 1, fold=1), datetime(2026, 1, 1), "give it in UTC"),
        (1, 2, ""),
        ({1}, {2}, ""),
        ({1: 2}, {2: 2}, ""),
    ],
)
def test_what_helps_is_told_of_what_differs_in_its_type(
    given: object, read: object, fix: str
) -> None:
    """Of values that are of one type, nobody knows here why they differ."""
    found = apart(given, read)

    assert found is not None
    assert found.fix.startswith(fix)
    assert bool(fix) == bool(found.fix)


def test_what_is_nested_deep_is_looked_into() -> None:
    """No deeper than a journal, but from wherever the driver is called."""
    given: object = 1
    read: object = True
    for _ in range(5000):
        given, read = [given], [read]

    found = apart(given, read)

    assert found is not None
    assert 5000 == len(found.place.split("."))
