"""HiddenEvents: where a rule may stand after what no graph shows."""

from __future__ import annotations

import pytest

from graphloop.proofs.rule_product import HiddenEvents
from graphloop.rules import AtMost, Followed, Never, OnlyAfter, TemporalRule
from graphloop.rules.automata import automaton_of


@pytest.mark.parametrize(
    ("rule", "begun"),
    [
        (Never("tool:x"), {0}),
        (Never("tool:x", "tool:y"), {0, 1}),
        (Never("tool:x", "approval:x"), {0}),
        (AtMost("tool:x", 2), {0, 1, 2}),
        (AtMost("approval:x", 2), {2}),
        (AtMost("tool:x", 2, "tool:y"), {0, 1, 2}),
        (OnlyAfter("node:a", "node:b", "tool:x"), {0}),
        (Followed("tool:x", "node:a"), {0, 1}),
        (Followed("tool:*", "tool:x"), {0, 1}),
        (Followed("tool:y", "tool:x"), {0, 1, 2}),
        (Followed("node:a", "tool:x"), {0}),
    ],
)
def test_a_run_may_begin_where_what_has_run_before_leads_to(
    rule: TemporalRule, begun: set[int]
) -> None:
    """Tools that came back are all that a conversation tells; none is half way through."""
    assert begun == HiddenEvents(automaton_of(rule)).before_the_run()


def test_any_tools_may_run_and_any_approvals_be_given() -> None:
    """Also those that no rule names, where it speaks of all."""
    approved = HiddenEvents(automaton_of(AtMost("tool:x", 2, "approval:*")))

    assert {0, 1, 2, 3} == approved.after(0)
    assert {3} == approved.after(3)
    assert {0, 1} == HiddenEvents(automaton_of(Never("node:a", "tool:x"))).after(0)
    assert {0} == HiddenEvents(automaton_of(Never("node:a", "node:b"))).after(0)
