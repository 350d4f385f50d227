"""A budget bounds the tools of nodes that keep it, at any depth; without one, nobody can tell."""

from __future__ import annotations

from typing import Any

from graphloop.agent.graph import Graph
from graphloop.graph import END, Edges
from graphloop.graph import NodeGraph as Kernel
from graphloop.nodes import Append, Child, Execute, Gate, ModelCall
from graphloop.outcomes import Calls
from graphloop.proofs.ground import Ground
from graphloop.proofs.nested import nested
from graphloop.proofs.tool_calls import tool_calls_most
from graphloop.spending import Budget
from graphloop.topology.agents import with_agents
from tests.topology_data import graph_of, standard


def most(graph: Kernel[Any], budget: Budget = Budget()) -> int | None:  # noqa: B008 - frozen.
    """Return how many tools run at most."""
    return tool_calls_most(Ground(graph), nested(graph, None).told, budget)


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


def test_tools_of_a_child_that_keep_no_budget_are_not_bounded_by_one() -> None:
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
        "outcomes": ["done", "held", "aborted"],
    }

    assert 5 == kept
    assert most(graph_of(topology), Budget(tool_calls=5)) is None
