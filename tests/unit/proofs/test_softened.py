"""Softened gates: what they let through that they did not before."""

from __future__ import annotations

from dataclasses import dataclass

from graphloop.contract import ChildContract, Contract
from graphloop.graph import END, Graph
from graphloop.loop import Standard
from graphloop.nodes import Gate
from graphloop.policy import Policy, Rule, allow, ask, deny
from graphloop.proofs.softened import softened
from graphloop.spending import Budget
from tests.changed_loop import changed
from tests.graphs import OUTCOMES, Place


def told(before: Policy | None, after: Policy | None) -> list[tuple[str, str]]:
    sides = [
        changed(None, Standard(gate=Gate(rules=() if one is None else one.rules)))
        for one in (before, after)
    ]
    return [(one.effect, one.message) for one in softened(*sides)]


def test_a_gate_that_allows_what_it_asked_about_is_weaker() -> None:
    """And one that denies what it allowed is stronger; both may be so at once."""
    assert [("weaker", "`gate` allows 'pay', which it asked about before")] == told(
        ask("pay"), allow("pay")
    )
    assert [("stronger", "`gate` denies 'pay', which it allowed before")] == told(
        allow("pay"), deny("pay")
    )
    assert ["weaker", "stronger"] == [
        effect for effect, _ in told(allow("a") | ask("b"), ask("a") | allow("b"))
    ]
    assert [] == told(ask("pay"), ask("pay"))


def test_rules_that_come_or_go_are_told() -> None:
    """Without rules only the tools themselves ask."""
    assert [("weaker", "`gate` has no rules any more")] == told(ask("pay"), None)
    assert [("stronger", "`gate` has rules now")] == told(None, ask("pay"))


def test_rules_that_ask_functions_are_never_taken_for_as_strict() -> None:
    """What cannot be compared is not passed."""
    ((effect, message),) = told(ask("pay", when=bool), allow("pay", when=bool))

    assert "weaker" == effect
    assert "nobody can compare" in message


def test_a_question_that_stays_open_longer_is_weaker() -> None:
    """Who may answer for longer may answer what nobody means any more."""
    short, long = (Policy((Rule("ask", ("pay",), ttl_s=one),)) for one in (60.0, 90.0))

    assert [("weaker", "`gate` keeps a question about 'pay' open for 90 s, for 60 s before")] == (
        told(short, long)
    )
    assert ["stronger"] == [effect for effect, _ in told(long, short)]
    assert ["weaker"] == [effect for effect, _ in told(short, ask("pay"))]


def test_patterns_that_may_overlap_are_not_taken_for_as_strict() -> None:
    """What stands first decides: no sample of either shows `a_b`, which both match."""
    before, wide = deny("a_*") | allow("*_b"), deny("a_*") | allow("*")

    assert ("weaker", "`gate` allows 'a_b', which it denied before") in told(
        before, allow("*_b") | deny("a_*")
    )
    assert ["stronger"] == [effect for effect, _ in told(wide, deny("c_*") | wide)]
    assert ["weaker"] == [effect for effect, _ in told(before, before | allow("c_*"))]


def test_rules_that_decide_alike_are_a_change_all_the_same() -> None:
    """A reason is read by a model."""
    rules = [Policy((Rule("deny", ("pay",), reason=one),)) for one in ("never", "not now")]
    both = allow("a_*", "b_*")

    assert [("changed", "`gate` gives other reasons for what it decides")] == told(*rules)
    assert [("changed", "`gate` has other rules, which say the same of every tool")] == (
        told(both, allow("b_*") | allow("a_*"))
    )


def test_a_rule_that_goes_beside_a_pattern_is_no_alarm() -> None:
    """What it was about is denied then; and no pattern lets more through."""
    before = deny("read_*") | ask("pay") | allow("writer")

    assert ["stronger"] == [one for one, _ in told(before, deny("read_*") | allow("writer"))]
    assert ["stronger"] == [one for one, _ in told(before, deny("read_*") | ask("pay"))]
    assert ["weaker"] == [one for one, _ in told(before, ask("pay") | allow("writer", "read_*"))]


def test_patterns_that_nobody_can_compare_are_not_taken_for_as_strict() -> None:
    """There are more ways to match than anybody looks at."""
    odd = f"*a{'?' * 20}"

    assert ["stronger", "weaker"] == [one for one, _ in told(allow("b", odd), allow(odd))]


@dataclass(frozen=True)
class Parent(Place):
    """A node with a child."""

    budget: Budget | None = None
    rules: Policy | None = None

    @property
    def contract(self) -> Contract:
        rules = None if self.rules is None else self.rules.rules
        return Contract(children=(ChildContract("kid", gate_rules=rules, budget=self.budget),))


def parent(budget: Budget | None = None, rules: Policy | None = None) -> Graph[None]:
    node = Parent("a", frozenset(OUTCOMES[:1]), budget=budget, rules=rules)
    return Graph("g", node, {node: {OUTCOMES[0]: END}})


def test_what_a_child_may_spend_and_do_is_compared_as_well() -> None:
    """It acts in its parent's name."""
    richer = softened(parent(Budget(usd=1.0)), parent(Budget(usd=2.0)))
    poorer = softened(parent(), parent(Budget(tokens=5)))
    bolder = softened(parent(rules=ask("pay")), parent(rules=allow("pay")))

    assert ["the child `kid` may spend at most 2.0 usd, at most 1.0 before"] == [
        one.message for one in richer if one.effect == "weaker"
    ]
    assert ["the child `kid` may spend at most 5 tokens, any number of before"] == [
        one.message for one in poorer if one.effect == "stronger"
    ]
    assert ["the gate of the child `kid` allows 'pay', which it asked about before"] == [
        one.message for one in bolder if one.effect == "weaker"
    ]


def known(gate: Policy, *names: str) -> Graph[None]:
    graph = changed(None, Standard(gate=Gate(rules=gate.rules)))
    graph.tool_names = names
    return graph


def test_a_new_tool_that_is_asked_about_was_not_denied_before() -> None:
    """There was none; one that is allowed, or that a rule was about, is told as before."""
    before = known(ask("pay"), "pay")

    def said(gate: Policy, *names: str) -> list[tuple[str, str]]:
        found = softened(before, known(gate, *names))
        return [(one.effect, one.message) for one in found]

    new = ("changed", "`gate` asks about 'refund', which is new")
    assert [new] == said(ask("pay", "refund"), "pay", "refund")
    assert [new, ("weaker", "`gate` allows 'pay', which it asked about before")] == said(
        ask("refund") | allow("pay"), "pay", "refund"
    )
    assert ["weaker"] == [one for one, _ in said(ask("pay") | allow("refund"), "pay", "refund")]
    assert ["weaker"] == [one for one, _ in said(ask("pay", "refund"), "pay")]
    assert ["weaker"] == [one for one, _ in said(ask("*"), "pay", "refund")]
