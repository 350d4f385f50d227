"""Asks: plain values, which a journal keeps and tells apart."""

from __future__ import annotations

from typing import get_args

from hypothesis import given
from msgspec.json import decode, encode

from graphloop.effects import ASKS, Ask
from tests.strategies import asks


@given(asks)
def test_an_ask_comes_back_from_a_journal_as_it_was(ask: Ask) -> None:
    """A generator that is run again is held to it, field by field."""
    assert ask == decode(encode(ask), type=Ask)


def test_every_kind_of_ask_is_known_by_its_name() -> None:
    """What can be asked is closed, and there is no tool among it."""
    assert ASKS == set(get_args(Ask))
    assert ["agent", "model", "person", "tell"] == sorted(one.kind for one in ASKS)
