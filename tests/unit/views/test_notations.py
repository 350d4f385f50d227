"""DOT, Mermaid and text: the published loop, the look of each kind, and themes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import pytest

from graphloop.graph import NodeGraph
from graphloop.loop import Standard, standard_edges
from graphloop.node_protocol import Kind
from graphloop.nodes import AnswerCheck, Gate, Verify
from graphloop.policy.policy import allow
from graphloop.views.dot import dot_of
from graphloop.views.levels import picture
from graphloop.views.marks import Marks, Tally, Tone
from graphloop.views.mermaid import mermaid_of
from graphloop.views.pictures import Picture
from graphloop.views.render import rendered
from graphloop.views.text import text_of
from graphloop.views.theme import DARK, LIGHT, THEMES, Theme
from tests.graphs import KINDS, agent, build

GOLDEN = Path(__file__).parents[2] / "golden"
COLOUR = re.compile(r'(?<=bgcolor=)\S+|"?#[0-9a-f]{6}"?')
EVERY_KIND = build({kind: ["END"] for kind in KINDS}, {kind: kind for kind in KINDS})


@pytest.mark.parametrize(("name", "write"), [("agent.dot", dot_of), ("agent.mmd", mermaid_of)])
def test_the_standard_loop_is_drawn_as_published(
    name: str, write: Callable[[Picture], str]
) -> None:
    """README shows it. After a change, save the new one with `Graph.save`."""
    assert (GOLDEN / name).read_text(encoding="utf-8") == write(picture(agent()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("write", [dot_of, mermaid_of])
def test_every_kind_has_a_look_of_its_own(kind: Kind, write: Callable[[Picture], str]) -> None:
    """Some readers and printers see no colours."""
    others = {look(write, other) for other in KINDS if other != kind}

    assert look(write, kind) not in others


def look(write: Callable[[Picture], str], kind: Kind) -> str:
    """Return the statement of a node of this kind, without its colours."""
    text = write(picture(build({"a": ["END"]}, {"a": kind})))
    line = next(line for line in text.splitlines() if line.strip().startswith("n0"))
    return re.split(" fillcolor=|:::", line)[0]


@pytest.mark.parametrize("write", [dot_of, mermaid_of])
def test_the_legend_has_only_the_kinds_in_use(write: Callable[[Picture], str]) -> None:
    text = write(picture(build({"a": ["b"], "b": ["END"]}, {"a": "gate", "b": "gate"})))

    assert 1 == len(re.findall(r"kind_gate(?:\{| \[label=)", text))
    assert "kind_model" not in text


def test_notes_are_beside_their_node_in_every_notation() -> None:
    checks = Verify((AnswerCheck("output", 2), AnswerCheck("verify", 1)))
    nodes = Standard(gate=Gate(rules=allow("read_*").rules), verify=checks)
    drawn = picture(NodeGraph("agent", nodes.prepare, standard_edges(nodes)))
    dotted, flow, lines = dot_of(drawn), mermaid_of(drawn), text_of(drawn).splitlines()

    assert '  note_n4 [label="allow read_*\\ldeny *\\l" shape=note' in dotted
    assert "  n4 -> note_n4 [arrowhead=none" in dotted
    assert '  note_n7 [label="output, 2 retries\\lverify, 1 retry\\l" shape=note' in dotted
    assert '    note_n4["allow read_#42;<br/>deny #42;"]:::is_gate\n' in flow
    assert "    n4 -.- note_n4\n" in flow
    assert '    note_n7["output#44; 2 retries<br/>verify#44; 1 retry"]:::is_check\n' in flow
    at = lines.index("◇ gate")
    assert ["│   allow read_*", "│   deny *"] == lines[at + 1 : at + 3]


def test_a_text_picture_fits_into_80_columns() -> None:
    lines = text_of(picture(agent())).splitlines()

    assert max(map(len, lines)) <= 80
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


def test_marks_have_signs_of_their_own_in_a_text() -> None:
    marks = Marks(
        title="2 runs",
        nodes={"gate": "3x\nwaits"},
        ways={("gate", "settled"): "2x", ("gate", "aborted"): "a ──▶ b"},
        node_tones={"gate": "lit"},
        way_tones={("gate", "settled"): "added"},
        shaded={"execute"},
    )
    lines = text_of(picture(agent(), marks)).splitlines()

    assert "agent (2 runs)" == lines[0]
    assert "▶ ◇ gate  3x  waits" in lines
    assert any(line.startswith("├━+━ settled 2x ━") for line in lines)
    assert any('aborted "a ──▶ b"' in line for line in lines)
    assert "▣ execute  ▒" in lines


@pytest.mark.parametrize("write", [dot_of, mermaid_of])
def test_themes_differ_in_their_colours_only(
    write: Callable[[Picture, Theme], str],
) -> None:
    marks = Marks(node_tones={"gate": "lit", "append": "removed"}, shaded={"execute"})
    light, dark = (write(picture(agent(), marks), theme) for theme in (LIGHT, DARK))

    assert light != dark
    assert COLOUR.sub("", light) == COLOUR.sub("", dark)


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_a_theme_has_a_colour_for_each_kind_and_tone(theme: Theme) -> None:
    assert {*KINDS, "loop"} == set(theme.palette)
    assert set(get_args(Tone)) == set(theme.tones)


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_text_can_be_read_on_every_fill(theme: Theme) -> None:
    """WCAG 1.4.3 asks for a contrast of 4.5 to 1; pale text has 3 to 1."""
    fills = [fill for fill, _ in theme.palette.values()] + [theme.lit, theme.shade]
    page = "#ffffff" if theme.page == "white" else theme.page

    assert all(contrast(theme.ink, fill) >= 4.5 for fill in fills)
    assert contrast(theme.faint, page) >= 3


def contrast(ink: str, fill: str) -> float:
    low, high = sorted((brightness(ink), brightness(fill)))
    return (high + 0.05) / (low + 0.05)


def brightness(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(part * light for part, light in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_lines_to_end_become_badges_from_four_on() -> None:
    """Long lines to one END fill the page, and say less than a word in the node."""
    loop = agent()
    dot, mermaid, text = (write(picture(loop)) for write in (dot_of, mermaid_of, text_of))

    assert 'label="prepare_step\\nfailed, aborted → END"' in dot
    assert "n0 -> last" not in dot
    assert "n7 -> last" in dot, "the expected end of a run keeps its line"
    assert '"prepare_step<br/>failed#44; aborted #8594; END"' in mermaid
    assert "failed, aborted ╌" in text


def test_a_line_that_a_run_has_taken_is_drawn() -> None:
    """A badge would hide where the run ended."""
    marks = Marks(passages={("prepare_step", "failed"): Tally((1,))})

    assert "n0 -> last" in dot_of(picture(agent(), marks))


def test_an_svg_speaks_in_words() -> None:
    """Mice and screen readers read the titles and the description, which were ids."""
    svg = rendered(picture(agent()), ".svg")

    assert '<svg role="img" aria-label="agent"' in svg
    assert "It starts at prepare_step." in svg
    assert "<title>gate: settled → execute</title>" in svg
    assert "<title>model_call (model)</title>" in svg
    assert "<title>start → prepare_step</title>" in svg
    assert not re.search(r"<title>(n\d|cluster|graphloop|last)", svg)
    ElementTree.fromstring(svg)  # noqa: S314 - we made it ourselves
