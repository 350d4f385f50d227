"""A bound tells its numbers, and why one is missing."""

from __future__ import annotations

import json
from dataclasses import replace

from graphloop.proofs.most import Bound


def test_a_bound_says_a_line_a_number_and_why_one_is_missing() -> None:
    """The same stands in its JSON."""
    bound = Bound(
        "desk", 8, None, 1_200, 0.5, {"model": 4}, ("twice",), {"tool_calls": "no budget"}
    )
    lines = str(bound).splitlines()

    assert lines[:4] == [
        "graph 'desk': at most",
        "  model calls: 8",
        "    twice",
        "  tool calls: unknown: no budget",
    ]
    assert "  tokens: 1,200" in lines
    assert {"model": 4} == json.loads(bound.to_json())["visits"]


def test_a_run_ends_where_no_cycle_is_without_a_bound() -> None:
    """However little else is known."""
    dark = Bound.unknown("helper")

    assert dark.ends
    assert not replace(dark, cycles=("poll -> poll",)).ends
    assert "not bounded: the cycle poll -> poll" in str(replace(dark, cycles=("poll -> poll",)))


def test_nothing_is_known_of_an_agent_whose_graph_nobody_knows() -> None:
    """Each number says so."""
    assert {"nobody knows the graph of the agent 'helper'."} == {
        *Bound.unknown("helper").missing.values()
    }
