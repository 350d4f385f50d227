"""replay: a journal, or a clear word why it is none."""

from __future__ import annotations

import pytest

from graphloop.errors import IllegalEvent, StoreError
from graphloop.events import Cancelled, Setup, Started
from graphloop.graph import Graph
from graphloop.loop import Standard, standard_edges
from graphloop.nodes import Gate
from graphloop.policy.policy import deny
from graphloop.replay import replay, replay_steps
from tests.strategies import QUESTION, Adversary, call, loop, reply

STARTED = Started(0.0, "r", "agent", QUESTION, Setup())


def test_replay_is_the_last_of_its_steps() -> None:
    """One fold, seen whole or step by step."""
    simulation = Adversary((reply("done"), reply(call()))).run(loop())

    steps = list(replay_steps(loop(), simulation.events))

    assert simulation.events == [taken.event for taken in steps]
    assert simulation.run == steps[-1].run == replay(loop(), simulation.events)


def test_an_empty_journal_is_no_run() -> None:
    """A torn first line leaves one."""
    with pytest.raises(StoreError, match="empty"):
        replay(loop(), [])


def test_a_journal_begins_with_started() -> None:
    """Anything else has lost its beginning."""
    with pytest.raises(StoreError, match="begins with Started, found Cancelled"):
        replay(loop(), [Cancelled(0.0)])


def test_a_journal_of_another_graph_is_refused() -> None:
    """Its events may even fit, and mean something else."""
    other = Started(0.0, "r", "other", QUESTION, Setup())

    with pytest.raises(StoreError, match="of graph 'other', not of 'agent'"):
        replay(loop(), [other])


def test_a_journal_whose_graph_has_changed_is_refused_with_the_event_and_what_to_do() -> None:
    """Its gate was laxer when the call ran."""
    simulation = Adversary((reply("done"), reply(call("read")))).run(loop())
    nodes = Standard(gate=Gate(rules=deny("*").rules))
    stricter: Graph[None] = Graph("agent", nodes.prepare, standard_edges(nodes))

    with pytest.raises(IllegalEvent, match=r"event 5 .*'agent': .*rule of its gates.*Fix: "):
        replay(stricter, simulation.events)


def test_an_effect_without_an_answer_is_still_wished_for() -> None:
    """That is what a driver takes up."""
    assert [1] == list(replay(loop(), [STARTED]).pending)
