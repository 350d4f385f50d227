"""Codec: lines that say what they are, and states that come back as they went."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from math import inf, nan
from typing import Annotated, get_args
from zlib import crc32

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    Json,
    PrivateAttr,
    SecretStr,
    computed_field,
    field_validator,
)

from graphloop.errors import StoreError
from graphloop.events import (
    CallbackAnswer,
    CallbackReturned,
    Cancelled,
    ChildEnded,
    EffectFailed,
    Event,
    Failure,
    NodeReturned,
    Setup,
    Started,
    ToolReturned,
)
from graphloop.stores.codec import SCHEMA_VERSION, Codec
from graphloop.values import TextPart, UserMessage
from tests.strategies import QUESTION, answers, event_kinds


@dataclass
class Essay:
    """A state of the user's."""

    topic: str
    drafts: tuple[str, ...] = ()
    due: datetime | None = None
    picture: bytes = b""
    score: float = 0.0


class Strict(BaseModel):
    """A state that takes nothing for something else."""

    model_config = ConfigDict(strict=True)

    due: datetime
    drafts: tuple[str, ...] = ()


def started(state: object) -> Event:
    """Return a start with this state."""
    return Started(0.0, "r", "agent", QUESTION, Setup(), state)


@dataclass
class Lists:
    """What is a sequence is read as a list."""

    many: Sequence[int] = (1,)


@dataclass
class Tuples:
    """What a `Lists` is to be."""

    many: tuple[int, ...] = (1,)


@dataclass
class Priced:
    """What a `Price` is to be."""

    euros: Annotated[Decimal, Field(allow_inf_nan=True)] = Decimal("NaN")


@pytest.mark.parametrize(
    "state",
    [
        Essay("x", ("a", "b"), datetime(2026, 1, 2, tzinfo=UTC), b"abc", inf),
        Strict(due=datetime(2026, 1, 2, tzinfo=UTC), drafts=("a",)),
    ],
    ids=["dataclass", "strict model"],
)
def test_a_state_comes_back_as_what_it_was(state: object) -> None:
    """At the start, and wherever a node of the user's returned it."""
    codec = Codec(type(state))
    left = CallbackReturned(1.0, 1, NodeReturned("Ready", state))

    for event in (started(state), left):
        assert (1, event) == codec.decode(codec.encode(1, event))


def test_a_state_that_was_read_as_json_becomes_what_it_was() -> None:
    """By the codec of its own graph; one that is of the type is not made anew."""
    strict = Strict(due=datetime(2026, 1, 2, tzinfo=UTC), drafts=("a",))
    codec = Codec(Strict)

    event = codec.typed(through(Codec(), strict))

    assert started(strict) == event
    assert isinstance(event, Started)
    assert isinstance(again := codec.typed(event), Started)
    assert again.state is event.state
    with pytest.raises(StoreError, match="state is not the graph's"):
        codec.typed(started({"nothing": "fits"}))


def test_a_state_is_typed_wherever_it_stands() -> None:
    """At the start, where a node was left, and where a child run ended."""
    plain, codec = {"topic": "x"}, Codec(Essay)
    left = CallbackReturned(1.0, 1, NodeReturned("Ready", plain))
    ended = ChildEnded(2.0, 2, "", state=plain, changed=True)

    typed = Essay("x")

    assert started(typed) == codec.typed(started(plain))
    assert CallbackReturned(1.0, 1, NodeReturned("Ready", typed)) == codec.typed(left)
    assert ChildEnded(2.0, 2, "", state=typed, changed=True) == codec.typed(ended)


def test_the_state_of_a_child_run_is_not_read_by_its_parent_s_type() -> None:
    """It might even fit, and lose what the type does not name."""
    codec = Codec(Essay)
    line = codec.encode(1, started({"topic": "x", "more": 1}))

    assert (1, started({"topic": "x", "more": 1})) == codec.of("r/c0.0").decode(line)
    assert codec is codec.of("r")


def through(codec: Codec, state: object) -> Event:
    """Return a start that was written and read."""
    return codec.decode(codec.encode(1, started(state)))[1]


def test_a_state_that_json_cannot_hold_is_refused_when_it_is_written() -> None:
    """Not a week later, when it is read."""
    with pytest.raises(StoreError, match="cannot be written as JSON"):
        Codec().encode(1, started(object()))


@pytest.mark.parametrize(
    "broken",
    [
        ToolReturned(0.0, 1, (TextPart("a\ud800b"), TextPart("ä\udc00"))),
        Started(0.0, "r", "g", (UserMessage("\udfff"),), Setup(), state={"x": ["\\ud800", 1.5]}),
    ],
    ids=lambda event: type(event).__name__,
)
def test_half_a_surrogate_pair_comes_back_as_it_was(broken: Event) -> None:
    """A server can send one; a run that is resumed must be the run that was left."""
    codec = Codec()

    line = codec.encode(1, broken)

    assert (1, broken) == codec.decode(line)
    assert line == codec.encode(*codec.decode(line))


def sealed(text: bytes) -> bytes:
    """Return a line with this text behind its checksum."""
    return b'{"crc":"%08x",' % crc32(text) + text


@pytest.mark.parametrize("at", range(20))
def test_an_edited_digit_is_not_believed(at: int) -> None:
    """A journal is the truth: what was changed by hand, or by a disk, is told."""
    line = bytearray(Codec().encode(12, Cancelled(1234567890.5, "9 8 7 6")))
    digits = [place for place, byte in enumerate(line) if chr(byte).isdigit()]
    place = digits[at % len(digits)]
    line[place] = ord("1") + (line[place] - ord("0")) % 9

    with pytest.raises(StoreError, match=r"checksum|upgrade"):
        Codec().decode(bytes(line))


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    "text",
    [
        b'"v":1,"seq":1,"event":{"type":"Cancelled","at":0,"reason":"\xff"}}',
        b'"v":1,"seq":1,"event":{"type":"Cancelled","at":0,"more":' + DEEP + b"}}",
        b'"v":1,"seq":1,"event":{"type":"Cancelled","at":0,"reason":"\\ud8"}}',
        b'"v":1,"seq":1,"event":{"type":"Cancelled","at":"\\ud800"}}',
    ],
    ids=["no text", "too deep", "half an escape", "half a character for a number"],
)
def test_what_is_no_text_or_too_deep_is_a_store_error(text: bytes) -> None:
    """Not an exception of the parser that no caller expects."""
    with pytest.raises(StoreError, match="expected a journal line"):
        Codec().decode(sealed(text))


def test_a_state_of_another_type_is_refused_when_it_is_read() -> None:
    """The graph has changed since."""
    line = Codec().encode(1, started({"nothing": "fits"}))

    with pytest.raises(StoreError):
        Codec(Essay).decode(line)


@pytest.mark.parametrize("kind", get_args(Event), ids=lambda kind: kind.__name__)
def test_every_kind_of_event_comes_back_as_it_was(kind: type[Event]) -> None:
    """With every kind of content; a kind that is missing from the strategies fails here."""

    @given(event=event_kinds[kind], seq=st.integers(1, 10**6))
    def comes_back(event: Event, seq: int) -> None:
        codec = Codec()

        line = codec.encode(seq, event)

        assert b"\n" not in line
        assert (seq, event) == codec.decode(line)
        assert type(codec.decode(line)[1]) is kind

    comes_back()


@pytest.mark.parametrize("kind", get_args(CallbackAnswer), ids=lambda kind: kind.__name__)
def test_every_kind_of_answer_is_drawn(kind: type[CallbackAnswer]) -> None:
    """Or the test above would pass without ever having seen one."""
    # The first will do: it need not be the simplest.
    drawn = settings(phases=[Phase.generate], max_examples=2_000)
    assert isinstance(find(answers, lambda answer: type(answer) is kind, settings=drawn), kind)


def test_fields_that_a_journal_of_yesterday_lacks_have_their_defaults() -> None:
    """A newer graphloop reads the journals of an older one."""
    line = sealed(b'"v":1,"seq":2,"event":{"type":"Cancelled","at":1.0}}')
    failed = sealed(
        b'"v":1,"seq":3,"event":{"type":"EffectFailed","at":1.0,"effect":1,'
        b'"failure":{"error":"E","message":"m"}}}'
    )

    assert (2, Cancelled(1.0)) == Codec().decode(line)
    assert (3, EffectFailed(1.0, 1, Failure("E", "m"))) == Codec().decode(failed)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b'{"v":1}',
        b'{"v":1,"seq":1}',
        b'{"v":1,"seq":1,"event":{"type":"Invented"}}',
        b'{"v":1,"seq":1,"event":{"type":"Cancelled"}}',
        b'{"v":1,"seq":"x","event":{"type":"Cancelled","at":0}}',
        b'{"v":"1","seq":1,"event":{"type":"Cancelled","at":0}}',
        b'\xff{"v":1}',
        b'{"v":1,"seq":1,"event":{"type":"Cancelled","at":0}}',
    ],
)
def test_what_is_no_line_of_a_journal_is_refused(line: bytes) -> None:
    """With what was expected and what was found."""
    with pytest.raises(StoreError):
        Codec().decode(line)


def test_a_newer_journal_asks_for_a_newer_graphloop() -> None:
    """Guessing at what its events mean would be worse than stopping."""
    line = Codec().encode(1, Cancelled(0.0)).replace(b'"v":1', b'"v":%d' % (SCHEMA_VERSION + 1))

    with pytest.raises(StoreError, match="upgrade graphloop"):
        Codec().decode(line)


class Shade(Enum):
    """Values that JSON reads as lists."""

    DARK = (0, 0)


class Doubling(BaseModel):
    """A model whose writing tells more than its reading takes."""

    model_config = ConfigDict(extra="forbid")
    x: int = 1
    parsed: Json[list[int]] = Field(default=[1])

    @computed_field
    def double(self) -> int:
        """Return twice as much."""
        return 2 * self.x


class Named(BaseModel):
    """A model that is read by another name than it is written."""

    x: int = Field(default=1, validation_alias="given")


class Numbers(BaseModel):
    """What is written of no number is said by the model."""

    model_config = ConfigDict(ser_json_inf_nan="strings")
    best: float = -inf
    last: float = nan


class Binary(BaseModel):
    """Bytes that are no text."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
    data: bytes = b"\xff"


@dataclass
class Plain:
    """A dataclass is written with no number as it is."""

    best: float = -inf
    last: float = nan


@pytest.mark.parametrize(
    "state",
    [
        *(Doubling(x=3), Named.model_validate({"given": 5}), Numbers(), Binary(), Plain()),
        *(Tuples(), Priced(), Lists([1])),
    ],
    ids=lambda state: type(state).__name__,
)
def test_a_state_that_is_read_back_as_it_was_is_taken(state: object) -> None:
    """And it is: what would be refused for nothing costs a run that was paid for."""
    codec = Codec(type(state))

    assert "" == codec.misfit(state)
    _, read = codec.decode(codec.encode(1, started(state)))
    assert isinstance(read, Started)
    assert type(state) is type(read.state)
    assert "" == codec.misfit(read.state)
    _, plain = Codec().decode(codec.encode(1, started(state)))
    typed = codec.typed(plain)
    assert isinstance(typed, Started)
    assert type(state) is type(typed.state)
    assert "" == codec.misfit(typed.state)


class Dropped(BaseModel):
    """What is not written is lost."""

    x: int = Field(default=1, exclude=True)


class Renamed(BaseModel):
    """It is written by a name that nobody reads."""

    x: int = Field(default=1, serialization_alias="written")


class Hiding(BaseModel):
    """A private attribute is no field."""

    _x: int = PrivateAttr(0)

    @classmethod
    def made(cls) -> Hiding:
        """Return one that hides something."""
        one = cls()
        one._x = 7
        return one


class Secret(BaseModel):
    """It would be resumed with stars for a key."""

    key: SecretStr = SecretStr("k")


class Counting(BaseModel):
    """Each resume counts once more."""

    x: int = 1

    @field_validator("x")
    @classmethod
    def count(cls, x: int) -> int:
        """Add one."""
        return x + 1


class Prefixed(BaseModel):
    """What it has made itself, it refuses."""

    name: str

    @field_validator("name")
    @classmethod
    def prefix(cls, name: str) -> str:
        """Begin it with a sign."""
        if name.startswith("#"):
            raise ValueError("has its sign")
        return f"#{name}"


class Anything(BaseModel):
    """JSON tells types no more than this."""

    value: object = None


@dataclass
class Link:
    """One of a chain."""

    to: Link | None = None


def chain(length: int) -> Link:
    """Return a chain of so many."""
    first = Link()
    for _ in range(length - 1):
        first = Link(first)
    return first


@dataclass
class Price:
    """A number that may be none, and says nothing of it."""

    euros: Decimal = Decimal("NaN")


class Unsaid(BaseModel):
    """Pydantic writes no number as null."""

    best: float = inf


class Shaded(BaseModel):
    """An enum of tuples."""

    shade: Shade = Shade.DARK


class Blob(BaseModel):
    """Bytes, as text."""

    data: bytes = b"\xff"


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (Dropped(x=9), "expected Dropped(x=9), found Dropped(x=1)"),
        (Renamed(x=9), "return another state"),
        (Hiding.made(), "return another state"),
        (Secret(), "return another state"),
        (Counting(x=1), "expected Counting(x=2), found Counting(x=3)"),
        (Prefixed(name="a"), "has its sign"),
        (Anything(value=inf), "found Anything(value=None)"),
        (Anything(value=(1,)), "found Anything(value=[1])"),
        (Lists(), "found Lists(many=[1])"),
        (chain(250), "recursion limit"),
        (chain(300), "depth exceeded"),
        (Price(), "`euros`: Input should be a finite number"),
        (Anything(value="\ud800"), "cannot be written"),
        (Unsaid(), "`best`: Input should be a valid number"),
        (Shaded(), "`shade`: Input should be (0, 0)"),
        (Blob(), "cannot be written as JSON"),
        (Named().model_copy(update={"x": "a"}), "`x`: Input should"),
    ],
)
def test_a_state_that_would_be_read_back_as_another_is_told(state: object, told: str) -> None:
    """A resumed run would go on with it: the message says where it differs, and the fix."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pydantic warns of what a copy holds.
        problem, _, fix = Codec(type(state)).misfit(state).partition(" Fix: ")

    assert told in problem
    assert "annotate each part" in fix


def test_what_a_fix_tells_helps() -> None:
    """The same numbers and bytes, in models that say how they are written."""
    assert "ser_json_inf_nan='strings'" in Codec(Unsaid).misfit(Unsaid())
    assert "" == Codec(Numbers).misfit(Numbers())
    assert "val_json_bytes='base64'" in Codec(Blob).misfit(Blob())
    assert "" == Codec(Binary).misfit(Binary())
