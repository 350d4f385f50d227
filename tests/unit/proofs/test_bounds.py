"""Bounds are exact where they can be, and say what is missing where they cannot."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graphloop.limits.model_price import ModelPrice
from graphloop.nodes.compact import SUMMARY_TOKENS
from graphloop.proofs.bounds import Called, bound
from graphloop.proofs.call_bounds import Bound
from graphloop.spending import Budget
from tests.nested_graphs import shared, ungated
from tests.topology_data import MUTANTS, graph_of, standard


@pytest.mark.parametrize("max_steps", [1, 5, 20])
def test_each_turn_of_the_standard_loop_asks_twice_at_most(max_steps: int) -> None:
    """Once, and once more for a reply that was cut: max_steps turns of 1 + 1 calls."""
    found = bound(graph_of(standard(max_steps=max_steps)))

    assert 2 * max_steps == found.model_calls == found.visits["model"]
    assert found.ends


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


def test_agents_that_models_call_are_counted() -> None:
    """One that takes over is called once a visit, another as often as a reply likes."""
    graph = graph_of(standard(max_steps=2))
    own, visits = bound(graph).model_calls, bound(graph).visits["execute"]
    assert own is not None
    assert visits is not None

    over = bound(graph, called=Called(handoffs={"helper": _of(7), "other": _of(3)}))
    free = bound(graph, called=Called({"helper": _of(7)}))

    assert over.model_calls is not None
    # The dearest of them, at every visit that can be.
    assert own + 7 <= over.model_calls <= own + 7 * visits
    assert free.model_calls is None
    assert "any number of times, at up to 7" in free.missing["model_calls"]
    assert bound(graph, called=Called({"quiet": _of(0)})).model_calls == own


def test_an_agent_without_a_bound_leaves_its_caller_without_one() -> None:
    """The caller says what the agent lacks, however often it may be called."""
    dark = Bound("helper", None, 0, None, None, {}, (), {"model_calls": "nobody says."})
    graph = graph_of(standard())
    told = "the agent 'helper', a tool: nobody says."

    assert told in bound(graph, called=Called(handoffs={"helper": dark})).missing["model_calls"]
    few = bound(graph, called=Called({"helper": dark}), budget=Budget(agent_calls=1))
    assert told == few.missing["model_calls"]


def test_only_nodes_that_keep_a_budget_are_bounded_by_it() -> None:
    """A node of one's own that runs tools may call agents as it likes."""
    topology = standard()
    limit = Budget(agent_calls=3)
    kept = bound(graph_of(topology), called=Called({"helper": _of(7)}), budget=limit)
    topology["nodes"]["execute"] = {
        "type": "own",
        "tools": True,
        "outcomes": ["done", "approval_needed", "aborted"],
    }
    lost = bound(graph_of(topology), called=Called({"helper": _of(7)}), budget=limit)

    assert 8 + 3 * 7 == kept.model_calls
    assert "run tools in Execute nodes" in lost.missing["model_calls"]


def test_one_turn_beyond_a_budget_may_call_agents() -> None:
    """As many as there may be; then it is looked at again."""
    known = bound(
        graph_of(standard(max_steps=50)),
        max_tokens=10,
        context_window=100,
        budget=Budget(tokens=1_000, agent_calls=3),
        called=Called({"helper": _of(7)}),
    )

    assert 1_000 + (2 + 3 * 7) * 120 == known.tokens


def _of(calls: int) -> Bound:
    return Bound("helper", calls, 0, None, None, {}, (), {})


def test_a_summary_has_more_room_than_a_short_reply() -> None:
    """Compact asks for one with a limit of its own, which the tokens are counted by."""
    plain, summing = (
        bound(
            graph_of(standard(max_steps=2, context_window=window)),
            max_tokens=10,
            context_window=1_000,
        )
        for window in (None, 1_000)
    )

    assert plain.model_calls is not None
    assert summing.model_calls is not None
    assert plain.tokens == plain.model_calls * (1_000 + 2 * 10)
    assert summing.tokens == summing.model_calls * (1_000 + SUMMARY_TOKENS)


def test_a_graph_that_is_used_everywhere_is_bounded_once() -> None:
    """Forty levels that each run the one below twice: 2 to the 40 uses, counted at once."""
    graph = shared(ungated(), 40)

    assert 2**40 == bound(graph).model_calls
    assert 5 == bound(graph, budget=Budget(tool_calls=5)).tool_calls
