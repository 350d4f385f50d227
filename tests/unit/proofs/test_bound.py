"""Bounds are exact where they can be, and say what is missing where they cannot."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graphloop.front.graph import Graph
from graphloop.front.with_agents import with_agents
from graphloop.graph import END, Edges
from graphloop.model_price import ModelPrice
from graphloop.nodes import Append, Child, Execute, Gate, ModelCall
from graphloop.outcomes import Calls
from graphloop.proofs.bound import Bound, bound
from graphloop.spending import Budget
from tests.topology_data import MUTANTS, graph_of, standard


@pytest.mark.parametrize("max_steps", [1, 5, 20])
def test_each_turn_of_the_standard_loop_asks_twice_at_most(max_steps: int) -> None:
    """Once, and once more for a reply that was cut: max_steps turns of 1 + 1 calls."""
    found = bound(graph_of(standard(max_steps=max_steps)))

    assert 2 * max_steps == found.model_calls == found.visits["model"]
    assert found.ends


def test_fallbacks_and_a_judge_are_counted() -> None:
    """What a visit asks at most is the node's word."""
    plain = standard(max_steps=3, fallbacks=("b",))
    judged = standard(max_steps=3, critic=True)

    assert 3 * 2 * 2 == bound(graph_of(plain)).model_calls
    # A conversation that is handed in with open calls may be judged before the first turn.
    assert 3 * (2 + 1) + 1 == bound(graph_of(judged)).model_calls


def test_checks_of_an_answer_add_no_turns() -> None:
    """What is sent back passes the stop check like everything else."""
    assert bound(graph_of(standard(max_steps=4, retries=(2, 3)))).model_calls == 8


def test_tokens_and_money_follow_from_what_is_given() -> None:
    """The second call of a turn has twice the room."""
    known = bound(
        graph_of(standard(max_steps=5)),
        max_tokens=10,
        context_window=100,
        price=ModelPrice(1.0, 2.0, cache_write_usd=1.5),
        budget=Budget(tool_calls=9),
    )

    assert (10, 9, 10 * 120) == (known.model_calls, known.tool_calls, known.tokens)
    assert known.usd == pytest.approx(10 * (100 * 1.5 + 20 * 2) / 1_000_000)
    assert known.missing == {}


def test_a_budget_is_exceeded_by_one_turn_at_most() -> None:
    """It is looked at between turns."""
    known = bound(
        graph_of(standard(max_steps=50)),
        max_tokens=10,
        context_window=100,
        budget=Budget(tokens=1_000),
    )

    assert 1_000 + 2 * 120 == known.tokens


def test_what_is_missing_is_said_with_how_to_give_it() -> None:
    """A number that nobody can have is no number."""
    known = bound(graph_of(standard()))

    assert (None, None, None) == (known.tool_calls, known.tokens, known.usd)
    assert "budget(tool_calls" in known.missing["tool_calls"]
    assert "`max_tokens`" in known.missing["tokens"]
    assert "`price`" in known.missing["usd"]
    assert "model calls: 8" in str(known)
    assert json.loads(known.to_json())["model_calls"] == 8


def test_a_cycle_without_a_bound_is_named() -> None:
    """Who is to mend it wants to know which."""
    (mutant,) = (one for one in MUTANTS if one.name == "bound dropped")

    known = bound(graph_of(mutant.of(standard())))

    assert known.model_calls is None
    assert not known.ends
    assert known.cycles[0] in known.missing["model_calls"]
    assert known.visits["prepare"] is None


def test_children_count_as_often_as_they_run() -> None:
    """A parent's bound is also theirs."""
    topology = standard(max_steps=2)
    inner = {"graph": standard("inner", max_steps=3), "runs": 2}
    topology["nodes"]["lead"] = {
        "type": "own",
        "kind": "graph",
        "outcomes": ["ready"],
        "children": {"inner": inner},
    }
    topology["edges"]["lead"] = {"ready": "prepare"}
    topology["start"] = "lead"

    assert 2 * 6 + 4 == bound(graph_of(topology)).model_calls


def test_agents_are_bounded_by_what_is_given_of_them() -> None:
    """Their graphs are not this graph's."""
    ends = ["answered_calls", "resend", "final", "refused", "aborted"]
    topology: dict[str, Any] = {
        "name": "two",
        "start": "helper",
        "nodes": {"helper": {"type": "child", "agent": "helper"}, "append": {"type": "append"}},
        "edges": {
            "helper": {"answered": "append", "failed": "END", "aborted": "END"},
            "append": dict.fromkeys(ends, "END"),
        },
    }
    graph = graph_of(topology)

    unknown, known = bound(graph), bound(graph, agents={"helper": _of(7)})

    assert "'helper'" in unknown.missing["model_calls"]
    assert known.model_calls == 7


def _of(calls: int) -> Bound:
    return Bound("helper", calls, 0, None, None, {}, (), {})


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

    assert 0 == bound(with_agents(outer, {"inner": quiet})).tool_calls == bound(twice).tool_calls
    assert bound(outer).tool_calls is None
    assert bound(with_agents(outer, {"inner": busy})).tool_calls is None
    assert 7 == bound(with_agents(outer, {"inner": busy}), budget=Budget(tool_calls=7)).tool_calls
