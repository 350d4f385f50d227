"""The standard loop: its table, as DESIGN §3 shows it."""

from __future__ import annotations

from graphloop.graph import Edge
from tests.strategies import loop


def test_only_stop_check_reopens_the_loop() -> None:
    """Every cycle through the model passes the node that bounds it, or the one retry."""
    into_model = {edge.source for edge in loop().edges if edge.target == "prepare_step"}

    assert {"stop_check"} == into_model


def test_only_the_gate_leads_to_a_tool() -> None:
    """No other row names `execute`."""
    assert {"gate"} == {edge.source for edge in loop().edges if edge.target == "execute"}


def test_calls_are_answered_before_the_run_can_end() -> None:
    """From the gate and from execute, an abort leads through append."""
    edges = set(loop().edges)

    assert {Edge("gate", "aborted", "append"), Edge("execute", "aborted", "append")} <= edges


def test_every_node_but_append_s_way_out_can_be_left_on_abort() -> None:
    """A cancelled run ends wherever it stands."""
    sources = {edge.source for edge in loop().edges if edge.outcome == "aborted"}

    assert set(loop().nodes) - {"extend"} == sources
