"""extend: one more chance, with more room where room was missing."""

from __future__ import annotations

import pytest

from graphloop.events import Cancelled, Setup
from graphloop.node_protocol import Leave
from graphloop.nodes.extend import Extend
from graphloop.outcomes import GiveUp, Retry
from graphloop.run import evolve
from graphloop.values import FinishReason, Settings, Usage
from tests.strategies import call, fresh, replied, reply

CUT = reply(call(arguments="{"), finish=FinishReason.LENGTH)


@pytest.mark.parametrize(
    ("limit", "used", "room"),
    [(None, 5, 8192), (None, 9000, 18000), (100, 5, 200), (100, 300, 600)],
)
def test_a_cut_reply_gets_twice_the_room_it_had(limit: int | None, used: int, room: int) -> None:
    """What it used counts where the server gave more than the limit known here."""
    run = replied(evolve(CUT, usage=Usage(0, used)))
    run = evolve(run, setup=Setup("model", (), Settings(max_tokens=limit)))

    reaction = Extend().enter(run)

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Retry)
    turn = reaction.run.turn
    assert (room, 1, None, ()) == (turn.max_tokens, turn.retries, turn.reply, turn.calls)


def test_an_empty_reply_is_asked_again_with_the_same_room() -> None:
    """Room was not what it was missing."""
    reaction = Extend().enter(replied(reply()))

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, Retry)
    assert reaction.run.turn.max_tokens is None


def test_a_second_cut_is_given_up() -> None:
    """A model that is cut again would be cut for ever."""
    reaction = Extend().enter(replied(CUT, retries=1))

    assert isinstance(reaction, Leave)
    assert isinstance(reaction.outcome, GiveUp)


def test_no_event_ever_reaches_this_node() -> None:
    """It asks for nothing."""
    with pytest.raises(AssertionError, match="waits for nothing"):
        Extend().on(fresh(), Cancelled(0.0), None)
