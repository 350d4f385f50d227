"""Mermaid: the standard loop as it is published, and every kind by its shape."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop.graph import Graph
from graphloop.loop import Standard, standard_edges
from graphloop.node_protocol import Kind
from graphloop.nodes import AnswerCheck, Gate, Verify
from graphloop.policy import allow
from graphloop.views.mermaid import mermaid
from tests.graphs import KINDS, agent, build

GOLDEN = Path(__file__).parents[2] / "golden" / "agent.mmd"


def test_the_standard_loop_is_drawn_as_published() -> None:
    """README shows this drawing: `save(agent(), "tests/golden/agent.mmd")` accepts a new one."""
    assert GOLDEN.read_text(encoding="utf-8") == mermaid(agent())


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_look_of_its_own(kind: Kind) -> None:
    """Colour alone says nothing to one reader in twelve, nor to a printer."""
    others = {_shape(mermaid(build({"a": ["END"]}, {"a": one}))) for one in KINDS if one != kind}

    assert _shape(mermaid(build({"a": ["END"]}, {"a": kind}))) not in others


def test_a_name_that_means_something_to_mermaid_stands_in_its_label_as_entities() -> None:
    """`end` as an id ends the chart, and a quote ends the label."""
    text = mermaid(build({'end"]': ["END"]}))

    assert '    n0>"end#34;#93;"]:::is_pure\n' in text


def test_the_legend_holds_only_the_kinds_in_use() -> None:
    """A legend of things that are not there is noise."""
    text = mermaid(build({"a": ["b"], "b": ["END"]}, {"a": "gate", "b": "gate"}))

    assert text.count("kind_gate{") == 1
    assert "kind_model" not in text


def gated() -> Graph[None]:
    """Return the standard loop with a rule in its gate."""
    nodes = Standard(gate=Gate(rules=allow("read_*").rules))
    return Graph("agent", nodes.prepare, standard_edges(nodes))


def test_the_rules_of_a_gate_stand_beside_it() -> None:
    """A reviewer approves what is allowed, and sees it in the picture."""
    text = mermaid(gated())

    assert '    note_n4["allow read_#42;<br/>deny #42;"]:::is_gate\n' in text
    assert "    n4 -.- note_n4\n" in text


def test_the_checks_of_an_answer_stand_beside_their_node() -> None:
    """An answer that is sent back is no surprise to whoever has seen the picture."""
    checked = Verify((AnswerCheck("output", 2), AnswerCheck("verify", 1)))
    nodes = Standard(verify=checked)

    text = mermaid(Graph("agent", nodes.prepare, standard_edges(nodes)))

    assert '    note_n7["output#44; 2 retries<br/>verify#44; 1 retry"]:::is_check\n' in text


def _shape(text: str) -> str:
    """Return the look of the first node, without its colours."""
    line = next(line for line in text.splitlines() if line.startswith("    n0"))
    return line.split(":::")[0]
