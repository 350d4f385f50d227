"""The tree that every file is read into."""

from __future__ import annotations

import pytest

from graphloop.topology.problems import Complaints, Mark, Misread
from graphloop.topology.tree import (
    DEPTH_MAX,
    VALUES_MAX,
    Entry,
    Fields,
    Growth,
    Items,
    Scalar,
    described,
)

TOP = Mark(1, 1)


def test_what_stands_there_is_told_in_words() -> None:
    """Messages say what was found."""
    scalar = Scalar("x", TOP, "x")
    full = Items((scalar,), TOP), Fields((Entry("a", TOP, scalar),), TOP)

    assert ["a list", "a mapping"] == [described(one) for one in full]
    assert "an empty list" == described(Items((), TOP))
    assert "an empty mapping" == described(Fields((), TOP))
    assert "the text 'x'" == described(scalar)


def test_a_tree_grows_to_its_limits_and_no_further() -> None:
    """Whoever reads it."""
    complaints = Complaints("a")
    growth = Growth(complaints)
    for _ in range(VALUES_MAX):
        growth.value(DEPTH_MAX, TOP)

    with pytest.raises(Misread, match="at most 50,000 values"):
        growth.value(1, TOP)
    with pytest.raises(Misread, match="at most 32 levels"):
        Growth(complaints).value(DEPTH_MAX + 1, TOP)


def test_halves_of_a_pair_are_one_character_or_none() -> None:
    """JSON writes them as two escapes."""
    complaints = Complaints("a")
    growth = Growth(complaints)

    assert "\U0001f600" == growth.text("\ud83d\ude00", TOP)
    assert not complaints.problems
    assert "" == growth.text("\ud83d", TOP)
    assert ["a:1:1"] == [one.place for one in complaints.problems]
