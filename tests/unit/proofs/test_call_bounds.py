"""A bound tells its numbers, and why one is missing."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from graphloop.agent.graph import Graph
from graphloop.graph import END, Edges
from graphloop.graph import NodeGraph as Kernel
from graphloop.nodes import Append, Child, Execute, Gate, ModelCall
from graphloop.outcomes import Calls
from graphloop.proofs.call_bounds import (
    Bound,
    ModelCalls,
    calls_alone,
    calls_per_agent_call,
    tool_calls_most,
    with_agent_calls,
)
from graphloop.proofs.nested import graph_uses
from graphloop.proofs.proof_graph import ProofGraph
from graphloop.spending import Budget
from graphloop.topology.agents import with_agents
from tests.topology_data import graph_of, standard


def test_a_run_ends_where_no_cycle_is_without_a_bound() -> None:
    """However little else is known."""
    dark = Bound.unknown("helper")

    assert dark.ends
    assert not replace(dark, cycles=("poll -> poll",)).ends
    assert "not bounded: the cycle poll -> poll" in str(replace(dark, cycles=("poll -> poll",)))


EVERY = ModelCalls(inf, inf, (), "as often as a model likes")
OWN = ModelCalls(4.0, 2.0, ("two turns",), "")


def of(calls: int | None, own: int | None = None, each: int | None = None) -> Bound:
    """Return the bound of an agent."""
    missing = {"model_calls": "nobody says."} if calls is None else {}
    return Bound("a", calls, 0, None, None, {}, (), missing, (), own, each)


@pytest.mark.parametrize(
    ("found", "expected"),
    [(of(7), 7), (of(None), inf), (of(None, 3, 5), 3), (of(9, 3, 5), 3), (of(9, 3), 9)],
)
def test_what_an_agent_asks_alone_is_told_or_all_that_it_asks(
    found: Bound, expected: float
) -> None:
    """A bound that nobody has parted counts both."""
    assert expected == calls_alone(found)


def test_a_call_asks_what_the_dearest_agent_asks_alone() -> None:
    """At any depth: a called one, what it calls, or what the agent of a node calls."""
    assert (0.0, "") == calls_per_agent_call({}, [])
    assert (7, "") == calls_per_agent_call({"a": of(7), "b": of(None, 3, 5)}, [])
    assert (8, "") == calls_per_agent_call({"a": of(7), "b": of(None, 3, 8)}, [])
    assert (9, "") == calls_per_agent_call({"a": of(7)}, [of(99), of(20, 11, 9)])
    assert (inf, "the agent 'b', a tool: nobody says.") == calls_per_agent_call({"b": of(None)}, [])


def test_a_number_of_calls_bounds_what_nothing_else_does() -> None:
    """And says what it follows from."""
    why = ("two turns", "models call agents at most 3 times: 3 x 7 model calls")

    assert EVERY == with_agent_calls(EVERY, OWN, (7.0, ""), None)
    assert ModelCalls(25.0, 23.0, why, "") == with_agent_calls(EVERY, OWN, (7.0, ""), 3)
    assert OWN.most == with_agent_calls(EVERY, OWN, (inf, "nobody says"), 0).most


def most(graph: Kernel[Any], budget: Budget = Budget()) -> int | None:  # noqa: B008 - frozen.
    """Return how many tools run at most."""
    return tool_calls_most(ProofGraph(graph), graph_uses(graph, None).reported, budget)


def test_children_that_run_no_tools_need_no_budget() -> None:
    """What is known of their graphs is looked at, at any depth."""
    model, gate, execute, append = ModelCall(), Gate(), Execute(), Append()
    quiet: Graph[None] = Graph("quiet", model, {model: {...: append}, append: {...: END}})
    rows: Edges[None] = {
        model: {Calls: gate, ...: append},
        gate: {...: execute},
        execute: {...: append},
        append: {...: END},
    }
    busy: Graph[None] = Graph("busy", model, rows)
    child = Child("inner")
    outer: Graph[None] = Graph("outer", child, {child: {...: append}, append: {...: END}})
    twice = with_agents(outer, {"inner": with_agents(outer, {"inner": quiet})})

    assert 0 == most(with_agents(outer, {"inner": quiet})) == most(twice)
    assert most(outer) is None
    assert most(with_agents(outer, {"inner": busy})) is None
    assert 7 == most(with_agents(outer, {"inner": busy}), Budget(tool_calls=7))


def test_a_budget_bounds_only_tools_that_keep_it() -> None:
    """A node of one's own that runs tools counts them as it likes, at any depth."""
    topology = standard()
    topology["nodes"]["child"] = {
        "type": "own",
        "outcomes": ["answered"],
        "children": {"inner": {"graph": standard("inner")}},
    }
    topology["edges"]["prepare"]["ready"] = "child"
    topology["edges"]["child"] = {"answered": "model"}
    kept = most(graph_of(topology), Budget(tool_calls=5))
    topology["nodes"]["child"]["children"]["inner"]["graph"]["nodes"]["execute"] = {
        "type": "own",
        "tools": True,
        "outcomes": ["done", "approval_needed", "aborted"],
    }

    assert 5 == kept
    assert most(graph_of(topology), Budget(tool_calls=5)) is None
