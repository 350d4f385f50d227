"""parallel: named branches over one fan-out (what it does is told in test_fan_out)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphloop.effects import StartRun
from graphloop.errors import ConfigError
from graphloop.events import ChildEnded
from graphloop.node_protocol import Leave, Wait
from graphloop.nodes.parallel import Branch, Parallel
from graphloop.outcomes import Answered
from graphloop.run import evolve
from tests.strategies import fresh, wrong


def test_branches_are_named_after_agents_and_numbered_where_needed() -> None:
    """Each answer has to be told from the others."""
    branches = (Branch("a"), Branch("b"), Branch("a", "again"), Branch("a", name="own"))

    names = [one.name for one in Parallel(branches).branches]

    assert ["a 1", "b", "a 2", "own"] == names


def test_a_node_whose_branches_were_named_is_the_same_node() -> None:
    """A table that is written down and read again is the same table."""
    one = Parallel(wrong(["a", Branch("a"), "b"]), "majority")

    again = replace(one)

    assert one == Parallel(one.branches, "majority", one.reducer) == again
    assert hash(one) == hash(again)


def test_it_starts_its_branches_and_leaves_by_their_answer() -> None:
    """One visit is one turn."""
    node = Parallel((Branch("a", "do it"),))
    reaction = node.enter(fresh())
    assert isinstance(reaction, Wait)
    (effect,) = reaction.effects
    assert isinstance(effect, StartRun)
    assert ("parallel.1", "a") == (effect.key, effect.agent)

    after = node.on(evolve(reaction.run, pending={}), ChildEnded(1.0, 1, "x"), effect)

    assert isinstance(after, Leave)
    assert isinstance(after.outcome, Answered)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"branches": ()}, "`branches` to be names of agents, or Branch, found \\(\\)"),
        ({"branches": "ab"}, "`branches` to be names of agents, or Branch, found 'ab'"),
        ({"branches": (1,)}, "a branch to be the name of an agent, or a Branch, found 1"),
        ({"branches": ("",)}, "a branch to be the name of an agent, or a Branch, found ''"),
        (
            {"branches": (Branch("a", name="x"), Branch("b", name="x"))},
            "two branches are named 'x'",
        ),
        ({"branches": ("a",), "join": "al"}, "`join` to be one of"),
        ({"branches": ("a",), "reducer": "sum"}, "`reducer` to be one of"),
        (
            {"branches": ("a",), "concurrency": 0},
            "`concurrency` to be a whole number of at least 1",
        ),
    ],
)
def test_what_could_not_run_is_refused(options: dict[str, object], found: str) -> None:
    """At construction, with what was found."""
    with pytest.raises(ConfigError, match=found):
        Parallel(**wrong(options))


def test_its_promises_count_the_runs_of_each_agent() -> None:
    """The bound of a graph is computed from them."""
    contract = Parallel(wrong(("a", "b", "a"))).contract

    assert [("a", 2), ("b", 1)] == [(one.name, one.runs) for one in contract.children]
