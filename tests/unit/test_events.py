"""Events: facts that cannot be changed and tell each other apart."""

from __future__ import annotations

from typing import get_args

import pytest

from graphloop.events import Answer, Cancelled, Event, Started
from graphloop.step import ANSWERS
from tests.strategies import wrong


def test_every_event_but_the_first_and_the_last_answers_an_effect() -> None:
    """There is no way to change a run beside answering what it wished for."""
    unasked = {kind for kind in get_args(Event) if "effect" not in kind.__annotations__}

    assert {Started, Cancelled} == unasked


def test_every_event_is_at_a_time() -> None:
    """Time enters a run nowhere else."""
    assert all("at" in kind.__annotations__ for kind in get_args(Event))


def test_an_event_cannot_be_changed() -> None:
    """What happened has happened."""
    event = wrong(Cancelled(1.0))

    with pytest.raises(AttributeError):
        event.at = 2.0


def test_every_answering_event_belongs_to_one_effect() -> None:
    """Two effects with one kind of answer could be mixed up."""
    assert len(ANSWERS) == len(set(ANSWERS.values()))


def test_the_answers_of_callbacks_have_names_of_their_own() -> None:
    """The journal tells them apart by these."""
    kinds = [kind.__name__ for kind in get_args(Answer)]

    assert ["Changes", "Tripped", "Left"] == kinds
