"""The proof overlay: the numbered witness, the guarded region and the missing bound."""

from __future__ import annotations

from dataclasses import replace

from graphloop.graph import Surroundings
from graphloop.proofs.checking import check
from graphloop.views.levels import picture
from graphloop.views.proof import proof_marks
from tests.changed_loop import bypassed, changed, gateless, unbounded


def test_the_witness_is_numbered_and_its_end_is_red() -> None:
    graph = changed(bypassed)
    marks = proof_marks(graph, check(graph).findings)

    assert marks.ways == {("prepare_step", "ready"): "[1]", ("model_call", "calls"): "[2]"}
    assert marks.node_tones["execute"] == "alarm"
    assert marks.nodes["execute"] == "GL2"
    assert set(marks.way_tones.values()) == {"strong"}


def test_the_line_back_into_an_unbounded_cycle_is_marked() -> None:
    graph = changed(unbounded)
    marks = proof_marks(graph, check(graph).findings)

    assert marks.ways["append", "answered_calls"] == "[5] (no bound)"
    assert marks.way_tones["append", "answered_calls"] == "alarm"
    assert marks.ways["prepare_step", "ready"] == "[1, 6]"


def test_only_nodes_behind_a_gate_are_shaded() -> None:
    sound, unsound = changed(), changed(gateless)
    marks = proof_marks(sound, check(sound).findings)

    assert marks.shaded == {"execute"}
    assert marks.title == "no problem found; shaded: behind a gate"
    assert not proof_marks(unsound, check(unsound).findings).shaded


def test_a_finding_in_a_child_graph_is_marked_there() -> None:
    graph, child = changed(), changed(bypassed)
    graph.surroundings = Surroundings(agents={"kid": child}, called=frozenset({"kid"}))
    (found,) = [finding for finding in check(child).findings if finding.node == "execute"]
    marks = proof_marks(graph, [replace(found, node="kid/execute")])

    assert marks.title.startswith("1 problem;")
    assert picture(graph, marks, expand=True).inner[0].picture.shapes[5].tone == "alarm"
