"""Watched: the rules that a run is given, at the front door and in child runs."""

from __future__ import annotations

import asyncio

import pytest

from graphloop import Agent, tool
from graphloop.agent.inherited_limits import (
    REASON,
    beyond_watch,
    inherited_rules,
    offered_below,
    refuse_other_rules,
)
from graphloop.agent.world import AgentResources
from graphloop.errors import ConfigError
from graphloop.events import Setup
from graphloop.policy.policy import Policy, allow, deny
from graphloop.rules import Never, Rules, at_most_once, never, only_after
from graphloop.testing import ScriptedModel
from graphloop.values import ToolSpec, evolve
from tests.strategies import call, fresh, reply

RAN: list[int] = []


@tool
def refund(amount: int) -> str:
    """Pay back."""
    RAN.append(amount)
    return "paid"


@tool
def review() -> str:
    """Look at it."""
    return "fine"


def test_an_agent_keeps_its_rules() -> None:
    """A refund before the review, and the second one after it, do not happen."""
    RAN.clear()
    script = ScriptedModel(
        [
            reply(call("refund", "a", '{"amount": 1}'), call("review", "b")),
            reply(call("refund", "c", '{"amount": 2}'), call("refund", "d", '{"amount": 3}')),
            "done",
        ]
    )
    rules = only_after("refund", "review") & at_most_once("refund")

    result = asyncio.run(Agent(script, tools=[refund, review], rules=rules).generate("go"))

    first, second = [[one.status for one in step.tool_results] for step in result.steps[:2]]
    assert (["denied", "ok"], ["ok", "denied"], [2]) == (first, second, RAN)


def test_a_rule_about_nothing_is_refused_before_anything_is_sent() -> None:
    """It would hold for ever and guard nothing."""
    with pytest.raises(ConfigError, match=r"'refnd'\. Did you mean 'refund'"):
        Agent(ScriptedModel(["hi"]), tools=[refund], rules=never("refnd"))


def test_a_child_run_may_not_use_what_its_parent_s_rules_bound() -> None:
    """Its happenings are not counted above it, so a rule could be walked around there."""
    RAN.clear()
    kid = Agent(
        ScriptedModel([reply(call("refund", "a", '{"amount": 1}')), "kid done"]),
        tools=[refund],
        name="kid",
    ).as_tool(description="helps")
    script = ScriptedModel([reply(call("kid", "k", '{"prompt": "go"}')), "done"])

    boss = Agent(script, tools=[kid, refund], rules=[at_most_once("refund")])
    result = asyncio.run(boss.generate("go"))

    (child,) = result.children.values()
    (denied,) = child.record.steps[0].tool_results
    assert ("denied", []) == (denied.status, RAN)
    assert "a rule of the run above speaks of it" in denied.text


@pytest.mark.parametrize(
    ("rules", "gates"),
    [
        (Rules(), ()),
        (never("node:x"), ()),
        (never("tool:x"), (deny("x", reason=REASON) | allow("*"),)),
        (never("tool:*"), (deny("*", reason=REASON),)),
    ],
)
def test_only_tools_that_rules_bound_are_denied_to_children(
    rules: Rules, gates: tuple[Policy, ...]
) -> None:
    """All others are the child's own gate's business."""
    assert [one.rules for one in gates] == [
        one.rules for one in beyond_watch(Setup(watch=rules.rules), ())
    ]


def test_the_rules_of_a_run_are_those_of_its_graph_and_of_its_options() -> None:
    """Each looked up among the tools of its world."""
    world = AgentResources(None, {}, [refund, review])
    graph = Agent(ScriptedModel(["x"])).graph

    found = inherited_rules({"rules": [never("refund", before="approval")]}, graph, world)

    assert (Never("tool:refund", "approval:refund"),) == found
    assert () == inherited_rules({}, graph, world)


@pytest.mark.parametrize("rules", ["never deploy", [Never("x")], Never("x"), [never("refund"), 3]])
def test_what_is_no_rule_is_refused_with_what_it_should_be(rules: Rules) -> None:
    """Types can be ignored, and rules be taken for text."""
    with pytest.raises(
        ConfigError, match="`rules`: expected temporal rules, joined by & or listed"
    ):
        Agent(ScriptedModel(["x"]), tools=[refund], rules=rules)


def test_the_same_rules_or_fewer_are_no_other_rules() -> None:
    """A run keeps those that it began with, whoever takes it up."""
    kept = (Never("tool:x"), Never("tool:y"))
    run = evolve(fresh(), setup=Setup(watch=kept))

    refuse_other_rules(run, kept[:1])
    refuse_other_rules(run, ())
    with pytest.raises(ConfigError, match=r"it keeps never tool:x; never tool:y; found never node"):
        refuse_other_rules(run, (*kept, Never("node:z")))


def test_a_child_is_not_offered_tools_that_no_gate_could_stop() -> None:
    """The server runs them; all others its gate denies, and says why."""
    search, fetch = (ToolSpec(name, "", "{}", "provider") for name in ("search", "fetch"))
    own = ToolSpec("own", "", "{}")

    offered = (search, fetch, own)
    assert (fetch, own) == offered_below(
        offered, Setup(watch=(Never("tool:search"), Never("tool:own")))
    )
    assert (own,) == offered_below(offered, Setup(watch=(Never("tool:*"),)))
    assert offered == offered_below(offered, Setup())


def test_what_rules_far_above_speak_of_is_known_by_the_gates_that_they_have_put_before_it() -> None:
    """A run knows its own rules, and its journal what it was begun under."""
    (first,) = beyond_watch(Setup(watch=(Never("tool:search"),)), ())
    middle = Setup(rules=(deny("other").rules, first.rules), watch=(Never("tool:own"),))
    search, own = ToolSpec("search", "", "{}", "provider"), ToolSpec("own", "", "{}")

    (both,) = beyond_watch(middle, (first,))

    assert (deny("search", "own", reason=REASON) | allow("*")).rules == both.rules
    assert (own,) == offered_below((search, own), middle)


def test_a_gate_that_is_handed_down_anyhow_is_not_put_there_again() -> None:
    """Every level below would have one more."""
    (first,) = beyond_watch(Setup(watch=(Never("tool:search"),)), ())

    assert () == beyond_watch(Setup(rules=(first.rules,)), (first,))
    assert (first.rules,) == tuple(
        one.rules for one in beyond_watch(Setup(rules=(first.rules,)), ())
    )
