"""Implication, against what the rules mean over whole traces."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphloop.proofs.implication import bare, implies
from graphloop.temporal import (
    AtMost,
    Followed,
    Never,
    OnlyAfter,
    TemporalRule,
)
from graphloop.temporal.automata import Happening
from tests.temporal_reference import breaches, happenings


def every_rule(words: tuple[str, ...]) -> Iterator[TemporalRule]:
    """Yield the rules over these words that can be told apart, the counts up to two."""
    for one, two, three in permutations(words, 3):
        yield from (Never(one), Never(one, two), OnlyAfter(one, two), OnlyAfter(one, two, three))
        yield from (AtMost(one, 1), AtMost(one, 2), AtMost(one, 1, two), AtMost(one, 2, two))
        yield Followed(one, two)


RULES = [*dict.fromkeys(every_rule(("node:a", "node:b", "tool:x", "tool:y")))]
IMPLIED = [(one, other) for one in RULES for other in RULES if one != other and implies(one, other)]


@given(st.sampled_from(IMPLIED), st.lists(happenings, max_size=8))
@settings(max_examples=1_500, deadline=None)
def test_a_run_that_keeps_a_rule_keeps_what_it_implies(
    rules: tuple[TemporalRule, TemporalRule], trace: list[Happening]
) -> None:
    """Whatever happens: a rule that is thrown away for a stricter one is no loss."""
    rule, other = rules

    assert not breaches(other, trace) or breaches(rule, trace)


@pytest.mark.parametrize(
    ("rule", "other"),
    [
        (AtMost("a", 3), AtMost("a", 5)),
        (AtMost("a", 3, "b"), AtMost("a", 5, "b")),
        (AtMost("a", 3, "b"), OnlyAfter("a", "b")),
        (Never("a"), AtMost("a", 1)),
        (Never("a"), OnlyAfter("a", "b", "c")),
        (OnlyAfter("a", "b", "c"), Never("a", "b")),
    ],
)
def test_a_stricter_rule_implies_a_looser_one_and_not_the_reverse(
    rule: TemporalRule, other: TemporalRule
) -> None:
    """The forms that people replace by one another."""
    assert implies(rule, other)
    assert not implies(other, rule)


def test_what_is_no_stricter_implies_nothing() -> None:
    """Other words, another count, another form."""
    assert not implies(Never("a"), Never("b"))
    assert not implies(Never("a"), Followed("a", "b"))
    assert not implies(Followed("a", "b"), Never("a"))
    assert not implies(AtMost("a", 3), AtMost("a", 3, "b"))
    assert not implies(OnlyAfter("a", "b"), OnlyAfter("a", "c"))


def test_a_reason_forbids_nothing() -> None:
    """Another reason is the same rule."""
    assert implies(Never("a", reason="x"), Never("a", reason="y"))
    assert Never("a") == bare(Never("a", reason="x"))
    assert implies(Never("a", "b"), OnlyAfter("a", "b"))
    assert implies(OnlyAfter("a", "b"), Never("a", "b"))
