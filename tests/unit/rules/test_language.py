"""The language of temporal rules: what can be said, how it reads, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest
from msgspec.json import Decoder, encode

from graphloop.errors import ConfigError
from graphloop.rules import (
    TIMES_MAX,
    AtMost,
    Followed,
    Never,
    Rules,
    always_followed_by,
    at_most,
    at_most_once,
    describe_rule,
    never,
    only_after,
    rules_of,
)

EVERY = (
    never("x")
    & never("deploy", before="review", reason="a person looks first")
    & at_most("search", 5)
    & at_most("search", 2, per="model_call")
    & at_most_once("refund", per="approval")
    & only_after("deploy", "review")
    & only_after("merge", "test", since="edit")
    & always_followed_by("deploy", "verify")
)


def test_every_rule_reads_as_one_line() -> None:
    """It is what a model reads that has been stopped by it, and what a report says."""
    assert [
        "never x",
        "never deploy before review (a person looks first)",
        "search at most 5 times",
        "search at most 2 times per model_call",
        "refund at most once per approval",
        "deploy only after review",
        "merge only after test since the last edit",
        "deploy always followed by verify",
    ] == str(EVERY).split("\n")


def test_rules_are_values() -> None:
    """They stand in a frozen setup, in sets, and in journals."""
    assert never("x") == never("x")
    assert 1 == len({never("x"), never("x")})
    assert EVERY.rules == Decoder(Rules).decode(encode(EVERY)).rules


def test_rules_join_by_and_or_in_a_list_and_the_same_one_twice_is_one() -> None:
    """A topology's own rules and those of its user often overlap."""
    both = Rules((Never("x"), Followed("a", "b")))

    assert both == never("x") & always_followed_by("a", "b")
    assert both == rules_of([never("x"), always_followed_by("a", "b") & never("x")])
    assert both == rules_of(both)
    assert [2, list(both)] == [len(both), [Never("x"), Followed("a", "b")]]


def test_at_most_once_is_at_most_one_time() -> None:
    """One meaning, one automaton."""
    assert at_most("x", 1) == at_most_once("x")
    assert "x at most once" == describe_rule(AtMost("x", 1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: never(""), "found ''"),
        (lambda: never(" x"), "found ' x'"),
        (lambda: never(cast("str", 3)), "found 3"),
        (lambda: only_after("x", ""), "found ''"),
        (lambda: always_followed_by("x", ""), "found ''"),
        (lambda: never("x", before="x"), "found 'x' and 'x'"),
        (lambda: only_after("x", "y", since="y"), "found 'x' and 'y', 'y'"),
        (lambda: at_most("x", 0), "at least 1, found 0"),
        (lambda: at_most("x", True), "found True"),
        (lambda: at_most("x", TIMES_MAX + 1), f"at most {TIMES_MAX}, found {TIMES_MAX + 1}"),
        (lambda: never("x", reason="two\nlines"), "one line of text"),
        (lambda: never("x", reason="two\rlines"), "one line of text"),
        (lambda: never("x", reason="two\u2028lines"), "one line of text"),
        (lambda: never("x", reason=cast("str", None)), "found None"),
    ],
)
def test_a_rule_that_says_nothing_is_refused(make: Callable[[], Rules], message: str) -> None:
    """It would hold for ever, and its author would believe to be safe."""
    with pytest.raises(ConfigError, match=message):
        make()
