"""The proof overlay: the witness numbered, the gated region shaded, the missing bound marked."""

from __future__ import annotations

from graphloop.proofs.checking import check
from graphloop.views.proof import proof_marks
from tests.changed_loop import bypassed, changed, gateless, unbounded


def test_the_witness_is_numbered_and_its_end_is_red() -> None:
    """A reader follows it with a finger."""
    graph = changed(bypassed)
    marks = proof_marks(graph, check(graph))

    assert {
        ("prepare_step", "ready"): "[1]",
        ("model_call", "calls"): "[2]",
    } == dict(marks.ways)
    assert "alarm" == marks.node_tones["execute"]
    assert "GL2" == marks.nodes["execute"]
    assert {"strong"} == set(marks.way_tones.values())


def test_the_line_that_leads_back_without_a_bound_is_marked() -> None:
    """That is where the bound belongs."""
    graph = changed(unbounded)
    marks = proof_marks(graph, check(graph))

    assert "[5] (no bound)" == marks.ways["append", "answered_calls"]
    assert "alarm" == marks.way_tones["append", "answered_calls"]
    assert "[1, 6]" == marks.ways["prepare_step", "ready"]


def test_what_lies_behind_a_gate_is_shaded() -> None:
    """And nothing else: a reader who looks for guarded nodes must not see too many."""
    sound, unsound = changed(), changed(gateless)

    assert {"execute"} == set(proof_marks(sound, check(sound)).shaded)
    assert "no problem found; shaded: behind a gate" == proof_marks(sound, check(sound)).title
    assert set() == set(proof_marks(unsound, check(unsound)).shaded)
