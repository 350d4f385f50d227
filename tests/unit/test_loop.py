"""The standard loop: its table, as DESIGN §3 shows it."""

from __future__ import annotations

from graphloop.graph import Edge
from tests.strategies import loop


def test_only_stop_check_reopens_the_loop() -> None:
    """Every cycle through the model passes its bound, or a node that acts once a turn."""
    into_turn = {edge.source for edge in loop().edges if edge.target == "prepare_step"}
    into_model = {edge.source for edge in loop().edges if edge.target == "model_call"}

    assert {"stop_check", "compact"} == into_turn
    assert {"prepare_step", "extend"} == into_model


def test_only_the_gate_leads_to_a_tool() -> None:
    """No other row names `execute`."""
    assert {"gate"} == {edge.source for edge in loop().edges if edge.target == "execute"}


def test_only_completed_answers_are_verified_and_retries_are_bounded() -> None:
    """Feedback goes through the history and the stop check like everything else."""
    edges = set(loop().edges)

    assert {"append"} == {edge.source for edge in edges if edge.target == "verify"}
    assert Edge("verify", "rejected", "append") in edges


def test_calls_are_answered_before_the_run_can_end() -> None:
    """From the gate and from execute, an abort leads through append."""
    edges = set(loop().edges)

    assert {Edge("gate", "aborted", "append"), Edge("execute", "aborted", "append")} <= edges


def test_every_node_but_append_s_way_out_can_be_left_on_abort() -> None:
    """A cancelled run ends wherever it stands."""
    sources = {edge.source for edge in loop().edges if edge.outcome == "aborted"}

    assert set(loop().nodes) - {"extend"} == sources
