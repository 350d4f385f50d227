"""Automata of temporal rules: small, total, and judged by what came strictly before.

That each says what the reference evaluator says is in tests/property/test_temporal.py.
"""

from __future__ import annotations

import pytest

from graphloop.errors import ConfigError
from graphloop.rules import AtMost, Followed, Never, OnlyAfter, TemporalRule
from graphloop.rules.automata import (
    Happening,
    approved_call,
    automaton_of,
    earlier,
    entered,
    ran,
    returned,
    taken,
)


def states(rule: TemporalRule, *trace: Happening) -> list[int]:
    """Return the states that a trace leads through."""
    automaton = automaton_of(rule)
    found = [automaton.start]
    for one in trace:
        found.append(automaton.after(found[-1], one))
    return found


def test_a_happening_is_every_word_that_means_it() -> None:
    """A rule may speak of one tool or of any, of an outcome here or anywhere."""
    assert ("node:a",) == entered("a").words
    assert ("outcome:a.calls", "outcome:calls") == taken("a", "calls").words
    assert ("tool:x", "tool:*") == ran("x").words
    assert ("approval:x", "approval:*") == approved_call("x").words
    assert ("ended:x", "ended:*") == returned("x", well=False).words
    assert ("ended:x", "ended:*", "well:x", "well:*") == returned("x", well=True).words
    assert "outcome:a.calls" == str(taken("a", "calls"))


def test_what_is_since_itself_has_happened_since() -> None:
    """`since` and `after` may be one happening, seen as two words: it counts."""
    rule = OnlyAfter("tool:x", "outcome:a.calls", "outcome:calls")

    assert [0, 2, 0, 3] == states(rule, taken("a", "calls"), taken("b", "calls"), ran("x"))


def test_where_words_overlap_the_narrower_one_counts() -> None:
    """An edit is no tool that has run since the last edit, nor a refund one that allows another."""
    edited = OnlyAfter("tool:x", "tool:*", "tool:edit")
    edit = [ran("edit"), returned("edit", well=True)]
    test = [ran("test"), returned("test", well=True)]

    assert 3 == states(edited, *edit, ran("x"))[-1]
    assert 2 == states(edited, *edit, *test, ran("x"))[-1]
    assert 2 == states(OnlyAfter("tool:x", "tool:test", "tool:*"), *edit, *test)[-1]
    assert 3 == states(OnlyAfter("tool:x", "tool:test", "tool:*"), *test, *edit, ran("x"))[-1]

    per_tool = AtMost("tool:x", 1, "tool:*")
    x = [ran("x"), returned("x", well=True)]
    assert 2 == states(per_tool, *test, *x, ran("x"))[-1]
    assert 0 == states(per_tool, *test, *x, *test, ran("x"))[-1]


def test_a_happening_never_allows_itself() -> None:
    """Else a rule whose words overlap would forbid nothing."""
    assert [0, 2] == states(Never("tool:x", "tool:*"), ran("x"))
    assert [0, 1, 1] == states(Followed("tool:x", "tool:*"), ran("x"), ran("x"))


def test_a_broken_rule_stays_broken_and_still_forbids() -> None:
    """A gate that asks late must not be told that now it makes no difference."""
    automaton = automaton_of(AtMost("tool:x", 1))

    assert automaton.forbids(automaton.broken, ran("x"))
    assert not automaton.forbids(automaton.broken, ran("y"))
    assert automaton.broken == automaton.after(automaton.broken, ran("y"))


def test_a_word_that_was_not_looked_up_is_refused() -> None:
    """No happening would ever be it, so the rule would hold for ever."""
    for word in ("deploy", "review.accepted", "nodes:x", "tool:"):
        with pytest.raises(ConfigError, match="has not been looked up"):
            automaton_of(Never(word))


def test_what_must_follow_has_begun_afterwards() -> None:
    """A check that ran beside the deployment has checked nothing of it."""
    rule = Followed("tool:deploy", "tool:verify")
    done = returned("verify", well=True)
    deployed = returned("deploy", well=False)

    assert [0, 1, 2, 1, 1] == states(rule, ran("deploy"), ran("verify"), deployed, done)
    assert [0, 1, 1, 2, 0] == states(rule, ran("deploy"), deployed, ran("verify"), done)


def test_what_is_past_breaks_nothing_and_uses_up_what_is_allowed() -> None:
    """Nobody let it through here; but it was done."""
    rule = AtMost("tool:x", 2)

    assert [2, 1, 0, 0, 3] == states(rule, earlier("x"), earlier("x"), earlier("x"), ran("x"))
    assert [0, 0] == states(Never("tool:x"), earlier("x"))
    assert [0, 0] == states(Followed("tool:x", "node:y"), earlier("x"))
    assert [0, 0] == states(Never("tool:x", "tool:y"), earlier("y"))
