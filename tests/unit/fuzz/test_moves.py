"""Moves: the decisions of a story, with what stood before each."""

from __future__ import annotations

from itertools import pairwise

from graphloop.events import Setup
from graphloop.fuzz.choices import Choices
from graphloop.fuzz.moves import moves, new_in
from graphloop.fuzz.subject import Subject, invented_tools
from graphloop.fuzz.trials import tried
from graphloop.history import History
from graphloop.values import Message, UserMessage
from tests.strategies import loop

GRAPH = loop()
SUBJECT = Subject(GRAPH, None, Setup("model", invented_tools(GRAPH)))
STORY = tried(SUBJECT, Choices.given([0] * 9 + [1]), 100).story


def test_each_move_begins_where_the_last_one_ended() -> None:
    """Nothing stands between two decisions but the kernel, which says nothing."""
    found = list(moves(SUBJECT, STORY))

    assert [UserMessage("Go.")] == list(found[0].before.messages)
    assert found[-1].run.record.added
    for one, other in pairwise(found):
        assert one.run == other.before


def test_a_node_that_waits_remembers_where_it_was_entered() -> None:
    """What it does of an event is told from what it did when it was entered."""
    found = list(moves(SUBJECT, STORY))

    assert found[0].event is None
    assert {"model_call", "gate", "execute"} == {one.node.name for one in found if one.event}
    assert all(one.entered == one.before for one in found if one.event is None)
    for one, other in pairwise(found):
        if other.event is not None:
            assert one.node == other.node
            assert one.entered == other.entered
            assert STORY.chapters[other.number - 1].event == other.event


def test_new_is_what_a_history_has_grown_by() -> None:
    """And nothing can be told of one that is another."""
    one, other = UserMessage("1"), UserMessage("2")
    before: History[Message] = History([one])
    another: History[Message] = History([other])
    empty: History[Message] = History()

    assert () == new_in(before, before)
    assert (other,) == new_in(before.append(other), before)
    assert None is new_in(another, before)
    assert None is new_in(empty, before)
