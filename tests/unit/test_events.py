"""Events: facts that cannot be changed and tell each other apart."""

from __future__ import annotations

from typing import get_args

from graphloop.events import (
    Answering,
    Cancelled,
    EffectFailed,
    EffectsStarted,
    Event,
    Queued,
    Resumed,
    Started,
    ToolAsked,
)
from graphloop.step import ANSWERING, ANSWERS


def test_events_that_answer_no_effect_are_few_and_known() -> None:
    """A run starts, stops, is spoken to, taken up again; all else answers what it wished for."""
    unasked = {kind for kind in get_args(Event) if "effect" not in kind.__annotations__}

    assert {Started, Resumed, EffectsStarted, Queued, Cancelled} == unasked
    assert set(ANSWERING) == set(get_args(Answering)) == set(get_args(Event)) - unasked
    assert {*ANSWERS.values(), EffectFailed, ToolAsked} == set(ANSWERING)


def test_every_answering_event_belongs_to_one_effect() -> None:
    """Two effects with one kind of answer could be mixed up."""
    assert len(ANSWERS) == len(set(ANSWERS.values()))
