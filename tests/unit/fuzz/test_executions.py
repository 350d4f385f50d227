"""Executions: the judge of what ran, held against runs in which one thing is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphloop import Graph, allow, ask, deny
from graphloop.approvals import Approval
from graphloop.effects import CallTool
from graphloop.events import CallCheck
from graphloop.fuzz.executions import repeated, ungated
from graphloop.fuzz.story import Story, told
from graphloop.fuzz.subject import Subject
from graphloop.nodes import Gate
from graphloop.policy import Policy
from graphloop.values import evolve
from tests.strategies import SETUP, Adversary, call, reply
from tests.unit.fuzz.planted import reckless, table

TWO = Adversary((reply("done"), reply(call("read"), call("read"), call("write"))))


def judged(adversary: Adversary, graph: Graph[None]) -> list[str]:
    """Return what is wrong with a run of a graph."""
    subject = Subject(graph, None, SETUP)
    story = told(subject, adversary.run(graph).events)
    return [one.what for one in ungated(subject, story)]


def gated(policy: Policy | None) -> Graph[None]:
    """Return a sound loop with this policy."""
    gate = Gate() if policy is None else Gate(rules=policy.rules)
    return table(lambda node: gate if node.kind == "gate" else node)


POLICIES = (None, allow("*"), ask("*"), deny("write") | ask("read"), deny("*"))
CHECKS = (CallCheck(), CallCheck("bad"), CallCheck(needs_approval=True))
DECISIONS = (
    Approval(approved=True),
    Approval(approved=False),
    Approval(approved=True, arguments="{}"),
)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("decision", DECISIONS)
def test_what_a_real_gate_lets_through_is_never_complained_of(
    policy: Policy | None, check: CallCheck, decision: Approval
) -> None:
    """A judge that cries wolf is switched off."""
    adversary = replace(TWO, checks=(check, CallCheck()), decisions=(decision,))

    assert [] == judged(adversary, gated(policy))


@pytest.mark.parametrize(
    ("policy", "check", "decision", "found"),
    [
        (deny("*"), CallCheck(), DECISIONS[0], "its gate's rules deny it"),
        (allow("read"), CallCheck(), DECISIONS[0], "its gate's rules deny it"),
        (allow("*"), CallCheck("bad"), DECISIONS[0], "its check found it invalid"),
        (ask("*"), CallCheck(), DECISIONS[1], "nobody has approved it"),
        (None, CallCheck(needs_approval=True), DECISIONS[1], "nobody has approved it"),
        (ask("*"), CallCheck(), Approval(approved=True, arguments='{"a": 1}'), "approved"),
    ],
)
def test_what_a_gate_did_not_let_through_is_found(
    policy: Policy | None, check: CallCheck, decision: Approval, found: str
) -> None:
    """Whatever the executing node thinks of it."""
    gate = Gate() if policy is None else Gate(rules=policy.rules)
    adversary = replace(TWO, checks=(check,), decisions=(decision,))

    assert found in "\n".join(judged(adversary, reckless(gate)))


def test_a_call_that_is_wished_for_twice_is_found_unless_a_person_wants_it() -> None:
    """The unknown outcome of an approved call is the one reason to run it again."""
    graph = gated(ask("*"))
    story = told(Subject(graph, None, SETUP), TWO.run(graph).events)
    chapter = next(
        one for one in story.chapters if any(isinstance(e, CallTool) for e in one.effects)
    )
    twice = evolve(chapter.effects[0], id=99)

    again: Story[None] = replace(
        story, chapters=(*story.chapters, replace(chapter, effects=(twice,)))
    )

    assert [] == list(repeated(story))
    assert ["once"] == [one.code for one in repeated(again)]
