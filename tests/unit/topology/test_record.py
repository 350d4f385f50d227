"""Mappings with known keys."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from graphloop.errors import ConfigError
from graphloop.topology.forms import Text, Unwritable, Whole
from graphloop.topology.record import Parameter, Record
from tests.topology_forms import read, refusal, written


@dataclass(frozen=True)
class Pair:
    left: str
    right: int = 1
    hidden: int = 0

    def __post_init__(self) -> None:
        if self.right == 13:
            raise ConfigError("`right` is no 13")


FORM = Record(
    "a pair", Pair, {"left": Parameter(Text(), needed=True), "right": Parameter(Whole())}, "left"
)


def test_defaults_and_short_forms_are_read_and_written() -> None:
    """What says nothing new is left out."""
    assert Pair("a") == read(FORM, "a") == read(FORM, "{left: a, right: 1}")
    assert "a" == written(FORM, Pair("a"))
    assert {"left": "a", "right": 2} == written(FORM, Pair("a", 2))


def test_all_that_is_wrong_is_told_where_it_is() -> None:
    """Missing, unknown and wrong keys at once; and what the class itself refuses."""
    found = refusal(FORM, "{rigth: 2, right: x}")

    assert "lacks `left`" in found
    assert "Did you mean 'right'?" in found
    assert "a whole number was expected" in found
    assert "a:1:18: `right` is no 13." in refusal(FORM, "{left: a, right: 13}")


def test_a_value_with_more_to_it_cannot_be_written() -> None:
    """What a file cannot say is not lost in silence."""
    with pytest.raises(Unwritable, match="more to it"):
        written(FORM, Pair("a", hidden=1))
