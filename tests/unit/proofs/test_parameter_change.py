"""ParameterChange: a parameter that differs, in words."""

from __future__ import annotations

import pytest

from graphloop.proofs.parameter_change import ParameterChange, in_words, limited, ordered


@pytest.mark.parametrize(
    ("was", "now", "effect"),
    [(1, 2, "weaker"), (2, 1, "stronger"), (1, None, "weaker"), (None, 1, "stronger")],
)
def test_a_limit_that_rises_is_weaker(was: float | None, now: float | None, effect: str) -> None:
    """None is no limit."""
    assert effect == limited("x", was, now).effect


def test_what_can_be_compared_is_told_as_such() -> None:
    """And what cannot be, too."""
    assert "a of `n`: 1 -> none" == limited("a", 1, None).said("`n`")
    assert "stronger" == ordered("a", False, True, more=True).effect
    said = ParameterChange("a", ("x",), (), "weaker").said("`n`")
    assert "a of `n`: x -> none, which nobody can compare" == said


def test_values_are_named_in_few_words() -> None:
    """A sentence has room for so much."""
    assert "none" == in_words(None)
    assert "1, 'b'" == in_words((1, "b"))
    assert "len" == in_words(len)
    assert 70 > len(in_words("x" * 200))
