"""Codec: lines that say what they are, and states that come back as they went."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from typing import get_args

import pytest
from hypothesis import find, given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from graphloop.codec import SCHEMA_VERSION, Codec
from graphloop.errors import StoreError
from graphloop.events import (
    Answer,
    CallbackReturned,
    Cancelled,
    ChildEnded,
    EffectFailed,
    Event,
    Failure,
    Left,
    Setup,
    Started,
    ToolReturned,
)
from graphloop.spending import Budget, Spent
from graphloop.values import TextPart
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
    left = CallbackReturned(1.0, 1, Left("Ready", state))

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
    with pytest.raises(StoreError, match="the journal's state is not the graph's"):
        codec.typed(started({"nothing": "fits"}))


def test_a_state_is_typed_wherever_it_stands() -> None:
    """At the start, where a node was left, and where a child run ended."""
    plain, codec = {"topic": "x"}, Codec(Essay)
    left = CallbackReturned(1.0, 1, Left("Ready", plain))
    ended = ChildEnded(2.0, 2, "", state=plain, changed=True)

    typed = Essay("x")

    assert started(typed) == codec.typed(started(plain))
    assert CallbackReturned(1.0, 1, Left("Ready", typed)) == codec.typed(left)
    assert ChildEnded(2.0, 2, "", state=typed, changed=True) == codec.typed(ended)


def test_the_state_of_a_child_run_is_not_read_by_its_parent_s_type() -> None:
    """It might even fit, and lose what the type does not name."""
    codec = Codec(Essay)
    line = codec.encode(1, started({"topic": "x", "more": 1}))

    assert (1, started({"topic": "x", "more": 1})) == codec.of("r/c0.0").decode(line)
    assert codec is codec.of("r")


def test_without_a_type_a_state_comes_back_as_json() -> None:
    """And no state as no state."""
    codec = Codec()

    state: object = {"topic": "x", "drafts": [], "due": None, "picture": "", "score": 0.0}
    assert started(state) == through(codec, Essay("x"))
    assert started(None) == through(codec, None)


def through(codec: Codec, state: object) -> Event:
    """Return a start that was written and read."""
    return codec.decode(codec.encode(1, started(state)))[1]


def test_a_state_that_json_cannot_hold_is_refused_when_it_is_written() -> None:
    """Not a week later, when it is read."""
    with pytest.raises(StoreError, match="cannot be written as JSON"):
        Codec().encode(1, started(object()))


def test_half_a_surrogate_pair_is_written_as_the_sign_for_it() -> None:
    """A server can send one, and a reply that was paid for must not be lost over it."""
    codec = Codec()
    broken = ToolReturned(0.0, 1, (TextPart("a\ud800b"),))

    _, event = codec.decode(codec.encode(1, broken))

    assert ToolReturned(0.0, 1, (TextPart("a\ufffdb"),)) == event


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


@pytest.mark.parametrize("kind", get_args(Answer), ids=lambda kind: kind.__name__)
def test_every_kind_of_answer_is_drawn(kind: type[Answer]) -> None:
    """Or the test above would pass without ever having seen one."""
    assert isinstance(find(answers, lambda answer: type(answer) is kind), kind)


def test_fields_that_a_journal_of_yesterday_lacks_have_their_defaults() -> None:
    """A newer graphloop reads the journals of an older one."""
    line = b'{"v":1,"seq":2,"event":{"type":"Cancelled","at":1.0}}'
    failed = (
        b'{"v":1,"seq":3,"event":{"type":"EffectFailed","at":1.0,"effect":1,'
        b'"failure":{"error":"E","message":"m"}}}'
    )

    assert (2, Cancelled(1.0)) == Codec().decode(line)
    assert (3, EffectFailed(1.0, 1, Failure("E", "m"))) == Codec().decode(failed)


def test_a_budget_of_yesterday_has_no_limit_of_agent_calls() -> None:
    """And whoever spent something then had not counted them."""
    of_today = Setup(budget=Budget(tool_calls=3))
    ended = ChildEnded(1.0, 1, "x", spent=Spent(1, 2))
    lines = [Codec().encode(1, Started(0.0, "r", "agent", (), of_today)), Codec().encode(2, ended)]
    old = [
        line.replace(b',"agent_calls":null', b"").replace(b',"agent_calls":0', b"")
        for line in lines
    ]

    assert not any(b"agent_calls" in line for line in old)
    assert [Codec().decode(line) for line in lines] == [Codec().decode(line) for line in old]


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


def test_a_state_that_could_not_be_read_back_is_told_apart() -> None:
    """By the codec of its type, with where it does not fit."""
    whole: Codec = Codec(int)

    assert "" == whole.misfit(5)
    assert "valid integer" in whole.misfit("five")
    assert "cannot be written as JSON" in whole.misfit(object())
