"""Text: a graph on a terminal."""

from __future__ import annotations

from graphloop.graph import Graph
from graphloop.loop import Standard, standard_edges
from graphloop.nodes import Gate
from graphloop.policy import allow
from graphloop.views.marks import Marks
from graphloop.views.text import WIDTH, text
from tests.graphs import agent, build


def test_the_standard_loop_fits_into_a_terminal() -> None:
    """Eighty columns, and no browser."""
    lines = text(agent()).splitlines()

    assert max(map(len, lines)) <= WIDTH
    assert lines[:8] == [
        "agent",
        "",
        "● start ━▶ prepare_step",
        "",
        "▱ prepare_step  (prepare)",
        "├━━━ ready ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━▶ model_call ↓",
        "├─·─ overflow ──────────────────────────▶ compact ↓",
        "├─── calls ─────────────────────────────▶ gate ↓",
    ]
    assert "├━━━ go ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━▶ prepare_step ↑" in lines


def test_a_line_says_where_to_look_for_its_target() -> None:
    """Up closes a loop."""
    drawn = text(build({"a": ["a", "b"], "b": ["a", "END"]}))

    assert "▶ a ↻" in drawn
    assert "▶ b ↓" in drawn
    assert "▶ a ↑" in drawn


def test_names_that_could_be_taken_for_a_line_are_in_quotes() -> None:
    """A node must not draw lines of its own."""
    drawn = text(build({'a ──▶ b "x"': ["END"], "END ▶ a": ["END"]}))

    assert '● start ━▶ "a ──▶ b \\"x\\""' in drawn
    assert '○ "END ▶ a"  (pure)' in drawn


def test_marks_have_signs_of_their_own() -> None:
    """A terminal may have no colours, and a reader may see none."""
    marks = Marks(
        title="2 runs",
        nodes={"gate": "3x\nwaits"},
        ways={("gate", "settled"): "2x", ("gate", "aborted"): "a ──▶ b"},
        node_tones={"gate": "lit"},
        way_tones={("gate", "settled"): "added"},
        shaded={"execute"},
    )
    lines = text(agent(), marks).splitlines()

    assert "agent (2 runs)" == lines[0]
    assert "▶ ◇ gate  3x  waits" in lines
    assert any(line.startswith("├━+━ settled 2x ━") for line in lines)
    assert any('aborted "a ──▶ b"' in line for line in lines)
    assert "▣ execute  ▒" in lines


def test_the_rules_of_a_gate_stand_below_it() -> None:
    """As they do beside it in a picture."""
    nodes = Standard(gate=Gate(rules=allow("read_*").rules))
    lines = text(Graph("agent", nodes.prepare, standard_edges(nodes))).splitlines()

    at = lines.index("◇ gate")
    assert ["│   allow read_*", "│   deny *"] == lines[at + 1 : at + 3]
