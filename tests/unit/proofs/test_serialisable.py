"""GL11: a state that no journal can hold ends in a run that cannot be resumed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from pydantic import BaseModel

from graphloop.agent.graph import Graph
from graphloop.graph import END
from graphloop.nodes import Append
from graphloop.proofs.ground import Ground
from graphloop.proofs.report import Finding, Unknown
from graphloop.proofs.serialisable import unwritable
from tests.strategies import wrong


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
class Numberless:
    """Not a number is equal to nothing, not even to itself, and is read as what it is."""

    number: float = float("nan")


@dataclass
class Lossy:
    """A tuple where numbers in a row are read as a list."""

    numbers: list[int] = field(default_factory=lambda: wrong((1, 2)))


def found(state_type: type[Any]) -> list[Finding | Unknown]:
    append = Append()
    graph: Graph[Any] = Graph("g", append, {append: {...: END}}, state_type=state_type)
    return list(unwritable(Ground(graph)))


@pytest.mark.parametrize("state_type", [Plain, Model, Numberless, int])
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
    """A resumed run would be another run: it is told where, and what helps, as a run tells it."""
    (finding,) = found(Lossy)

    assert isinstance(finding, Finding)
    assert "found Lossy(numbers=[1, 2])" in finding.message
    assert "annotate each part" in finding.fix


@dataclass
class Needing:
    """Which numbers it takes, its type does not say."""

    number: int

    def __new__(cls, *args: object, **_: object) -> Needing:
        if args or _:
            raise ValueError("no, thank you")
        raise TypeError("give a number")


@dataclass
class Required:
    number: int
    names: list[str]


@dataclass(eq=False)
class Unequal:
    """Equal to nothing but itself, whatever it holds."""

    number: int = 0


def test_a_state_that_needs_arguments_is_made_written_and_read() -> None:
    """Its types say what it takes."""
    assert not found(Required)


def test_a_state_that_nobody_can_make_is_unknown() -> None:
    """It was passed over in silence."""
    (one,) = found(Needing)

    assert isinstance(one, Unknown)
    assert "no, thank you" in one.reason
    assert "defaults" in one.reason


def test_a_state_that_is_equal_to_itself_alone_is_held_against_what_is_written() -> None:
    """It is no other state for that."""
    assert not found(Unequal)


def test_a_state_that_is_no_class_is_looked_at_as_well() -> None:
    """A list of functions is no better than a class that holds one."""
    assert not found(cast("type[Any]", list[int]))
    assert found(cast("type[Any]", list[Callable[[], None]]))
