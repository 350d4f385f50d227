"""Sets of places that all reach each other, in a stable order."""

from __future__ import annotations

from graphloop.proofs.lines import circles, groups

LINES = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "c"), ("c", "d")]


def test_groups_come_in_the_order_of_their_places() -> None:
    """Reports must not change from run to run."""
    assert [("d",), ("c",), ("b", "a")] == list(groups(["d", "c", "b", "a"], LINES))


def test_circles_are_the_groups_with_a_way_around() -> None:
    """A place alone goes round only by a line to itself."""
    assert [("a", "b"), ("c",)] == list(circles("abcd", LINES))
