"""GL11: a state that no journal can hold ends in a run that cannot be resumed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel

from graphloop.front.graph import Graph
from graphloop.graph import END
from graphloop.nodes import Append
from graphloop.proofs.ground import Ground
from graphloop.proofs.report import Finding, Unknown
from graphloop.proofs.serialisable import unwritable


@dataclass
class Plain:
    words: list[str] = field(default_factory=list[str])
    inner: dict[str, int] = field(default_factory=dict[str, int])


class Model(BaseModel):
    plain: Plain = Plain()
    more: list[str] = []


@dataclass
class Calling:
    call: Callable[[], None]


@dataclass
class Locked:
    locks: list[threading.Event]


@dataclass
class Loose:
    payload: Any


@dataclass
class Lossy:
    """Not a number is equal to nothing, not even to itself."""

    number: float = float("nan")


def found(state_type: type[Any]) -> list[Finding | Unknown]:
    append = Append()
    graph: Graph[Any] = Graph("g", append, {append: {...: END}}, state_type=state_type)
    return list(unwritable(Ground(graph)))


@pytest.mark.parametrize("state_type", [Plain, Model, int])
def test_plain_data_is_proven(state_type: type[object]) -> None:
    """Dataclasses, models, and JSON's own values."""
    assert not found(state_type)


@pytest.mark.parametrize(("state_type", "place"), [(Calling, ".call"), (Locked, ".locks")])
def test_what_lives_in_one_process_is_an_error(state_type: type[object], place: str) -> None:
    """Wherever in the state it is."""
    (finding,) = found(state_type)

    assert isinstance(finding, Finding)
    assert place in finding.place


def test_what_may_be_anything_is_unknown() -> None:
    """It may be fine, and nobody can tell."""
    (one,) = found(Loose)

    assert isinstance(one, Unknown)


def test_a_state_that_is_not_read_as_it_was_is_an_error() -> None:
    """A resumed run would be another run."""
    (finding,) = found(Lossy)

    assert isinstance(finding, Finding)
    assert "after" in finding.message
