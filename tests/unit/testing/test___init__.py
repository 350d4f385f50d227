"""graphloop.testing: what users test their agents with."""

from __future__ import annotations

import pytest

from graphloop import END, Agent, EndReason, Graph, testing
from graphloop.effects import CallModel, CallTool
from graphloop.errors import ConfigError
from graphloop.events import Setup
from graphloop.nodes import Append
from graphloop.rules import never
from graphloop.testing import ScriptedModel, World, assert_safe, simulate
from graphloop.tools.tool import ToolOutcome
from graphloop.topology import with_agents
from graphloop.values import Reply, UserMessage
from tests.strategies import call, loop, reply, spec
from tests.topology_data import MUTANTS, graph_of, standard


def test_the_offered_names_are_there() -> None:
    """A name that is documented for tests must not be missing when they run."""
    expected = {
        *("FuzzReport", "ScriptedModel", "Simulation", "World"),
        *("assert_safe", "fuzz", "replay_token", "simulate"),
        *("RecordedModel", "allow_requests", "keys_deferred", "recorded", "refuse_requests"),
    }

    assert expected == set(testing.__all__)
    assert all(hasattr(testing, name) for name in testing.__all__)


def test_a_graph_is_tested_under_a_seed() -> None:
    """The same seed gives the same events; a crash loses and repeats nothing."""

    def answer(effect: CallModel) -> Reply:
        return reply("done") if len(effect.request.messages) > 1 else reply(call(), call())

    def execute(effect: CallTool) -> ToolOutcome:
        return ToolOutcome(effect.key, "ok")

    def run(*crashes: int) -> testing.Simulation[None]:
        return simulate(
            loop(),
            [UserMessage("go")],
            World(model=answer, tool=execute),
            None,
            setup=Setup("model", (spec("read"),)),
            seed=7,
            crash_after=crashes,
        )

    calm, again, crashed = run(), run(), run(1, 3, 5)

    assert calm.events == again.events
    assert crashed.run.ending is not None
    assert EndReason.COMPLETED is crashed.run.ending.reason
    assert ["c0.0", "c0.1"] == [one.text for one in crashed.run.record.steps[0].tool_results]
    assert set() == crashed.repeated


def test_a_safe_graph_passes_and_an_unsafe_one_shows_its_report() -> None:
    """One line in a user's tests is all that proofs cost."""
    assert "GL4" in testing.assert_safe(Agent(ScriptedModel([])), proven=("GL4",)).proven

    spoilt = next(one for one in MUTANTS if one.code == "GL2").of(standard())
    with pytest.raises(AssertionError, match="error GL2"):
        testing.assert_safe(graph_of(spoilt))
    with pytest.raises(AssertionError, match="not proven: GL12"):
        testing.assert_safe(loop(), proven=("GL12",))


def test_a_topology_is_safe_by_its_own_rules() -> None:
    """Those of its file, without being given again."""
    node = Append()
    graph: Graph[None] = Graph("g", node, {node: {...: END}})

    ruled = with_agents(graph, {}, rules=never("append"))

    assert_safe(graph)
    with pytest.raises(AssertionError, match="GL12"):
        assert_safe(ruled)


def test_codes_that_must_be_proven_are_looked_at() -> None:
    """A mistyped code is no property that is not proven."""
    with pytest.raises(ConfigError, match="no property 'GL33'"):
        assert_safe(loop(), proven=("GL33",))
    assert assert_safe(loop(), proven="GL1").ok
