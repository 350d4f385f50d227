"""opening: where what was said before a leg comes, in the leg's first events."""

from __future__ import annotations

from graphloop.drivers.opening import opening
from graphloop.events import Cancelled, Decided, Event, Queued, Setup, Started
from graphloop.values import UserMessage

STARTED = Started(1.0, "r", "g", (UserMessage("go"),), Setup("m"))
STEERED = Queued(0.0, UserMessage("hurry"))
LATER = Queued(0.0, UserMessage("and then?"), follow_up=True)
STOP = Cancelled(0.0, "enough", after_step=True)
DECIDED = Decided(1.0, 1, True)


def test_the_very_first_event_has_with_it_what_is_to_be_read() -> None:
    """It asks a model already; what comes later may be told later."""
    started, *rest = opening((STARTED,), (STEERED, LATER, STEERED, STOP))

    assert isinstance(started, Started)
    assert (STEERED.message, STEERED.message) == started.steering
    assert [LATER, STOP] == rest


def test_what_was_said_comes_before_the_answers_that_open_a_turn() -> None:
    """Else it would be read one turn late."""
    answers: tuple[Event, ...] = (DECIDED, DECIDED)

    assert [STEERED, STOP, DECIDED, DECIDED] == list(opening(answers, (STEERED, STOP)))
    assert [STEERED] == list(opening((), (STEERED,)))
    assert [DECIDED] == list(opening((DECIDED,), ()))
    assert STARTED == next(opening((STARTED,), ()))
