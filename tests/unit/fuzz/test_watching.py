"""Watching: a graph that notes what its nodes do, and does the same."""

from __future__ import annotations

from graphloop.fuzz.watching import Notes, Passage, watched_graph
from tests.strategies import Adversary, call, loop, reply

ADVERSARY = Adversary((reply("done"), reply(call(), call())))


def test_a_watched_graph_runs_as_the_graph_does() -> None:
    """Watching must not be seen."""
    notes, graph = Notes(), loop()

    watched = ADVERSARY.run(watched_graph(graph, notes))

    plain = ADVERSARY.run(graph)
    assert (plain.events, plain.run) == (watched.events, watched.run)
    assert graph.table == watched_graph(graph, notes).table
    assert [(one.name, one.kind, one.outcomes) for one in graph.nodes.values()] == [
        (one.name, one.kind, one.outcomes) for one in watched_graph(graph, notes).nodes.values()
    ]


def test_passages_and_wishers_are_noted() -> None:
    """Who left by what, and who wished for which effect."""
    notes = Notes()

    ADVERSARY.run(watched_graph(loop(), notes))

    passages = [one.passage for one in notes.deeds if one.passage is not None]
    assert Passage("prepare_step", "ready", "model_call") == passages[0]
    assert "END" == passages[-1].target
    assert "gate -settled-> execute" in map(str, passages)
    assert ["gate", "gate"] == [one.node for one in notes.deeds if one.node == "gate"][:2]
    assert None in [one.passage for one in notes.deeds]
    assert {"model_call", "gate", "execute"} == set(notes.wishers.values())
