"""Effects: wishes with a number."""

from __future__ import annotations

from typing import get_args

from hypothesis import given
from msgspec.json import decode, encode

from graphloop.effects import REQUESTS, Effect, Request
from graphloop.step import ANSWERS
from tests.strategies import asks


def test_every_effect_has_an_id_and_an_answer() -> None:
    """A wish that nothing can answer would park its run for ever."""
    effects = set(get_args(Effect))

    assert effects == set(ANSWERS)
    assert all("id" in kind.__annotations__ for kind in effects)


@given(asks)
def test_an_ask_comes_back_from_a_journal_as_it_was(ask: Request) -> None:
    """A generator that is run again is held to it, field by field."""
    assert ask == decode(encode(ask), type=Request)


def test_every_kind_of_ask_is_known_by_its_name() -> None:
    """What can be asked is closed, and there is no tool among it."""
    assert REQUESTS == set(get_args(Request))
    assert ["agent", "model", "person", "tell"] == sorted(one.kind for one in REQUESTS)
