"""Events: facts that cannot be changed and tell each other apart."""

from __future__ import annotations

from typing import get_args

import pytest

from graphloop.events import (
    Answer,
    Answering,
    Cancelled,
    EffectFailed,
    EffectsStarted,
    Event,
    Queued,
    Resumed,
    Started,
)
from graphloop.step import ANSWERING, ANSWERS
from tests.strategies import wrong


def test_events_that_answer_no_effect_are_few_and_known() -> None:
    """A run starts, stops, is spoken to, taken up again; all else answers what it wished for."""
    unasked = {kind for kind in get_args(Event) if "effect" not in kind.__annotations__}

    assert {Started, Resumed, EffectsStarted, Queued, Cancelled} == unasked
    assert set(ANSWERING) == set(get_args(Answering)) == set(get_args(Event)) - unasked
    assert {*ANSWERS.values(), EffectFailed} == set(ANSWERING)


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

    assert [
        "Changes",
        "StopRequested",
        "NodeReturned",
        "AnswerChecked",
        "BranchesJoined",
        "RequestYielded",
    ] == kinds
