"""Fields as parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from graphloop.errors import ConfigError
from graphloop.topology.annotations import form_of, parameters_of, summary_of
from graphloop.topology.forms import Flag, Form, Many, Maybe, Number, Text, Whole, Word


@pytest.mark.parametrize(
    ("annotation", "form"),
    [
        (str, Text()), (int, Whole()), (float, Number()), (bool, Flag()),
        (Literal["a", "b"], Word(("a", "b"))), (int | None, Maybe(Whole())),
        (tuple[str, ...], Many(Text())), (frozenset[int], Many(Whole(), make=frozenset)),
        (Any, None), (int | str, None), (tuple[int, str], None), (dict[str, int], None),
    ],
)  # fmt: skip
def test_types_that_a_file_can_hold_have_a_form(annotation: object, form: Form | None) -> None:
    """And the others have none."""
    assert form == form_of(annotation)


@dataclass(frozen=True)
class Own:
    """A node of one's own.

    Args:
        times: how often.
    """

    times: int
    name: str = "own"


@dataclass(frozen=True)
class Odd:
    """A class that no file can hold."""

    what: dict[str, int]


def test_a_class_says_its_parameters() -> None:
    """With their types, defaults and words; the name is the node's key."""
    found = parameters_of(Own)

    assert ["times"] == [*found]
    assert (True, "how often.") == (found["times"].needed, found["times"].doc)
    assert "A node of one's own." == summary_of(Own)
    with pytest.raises(ConfigError, match="'what' of Odd"):
        parameters_of(Odd)
