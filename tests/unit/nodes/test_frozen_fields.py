"""FrozenFields: what a node is given can be hashed, for tables go by it."""

from __future__ import annotations

import re
from dataclasses import InitVar, dataclass, field

import pytest

from graphloop.errors import ConfigError
from graphloop.limits import stop
from graphloop.nodes.gate import Gate
from graphloop.nodes.model_call import ModelCall
from graphloop.nodes.prepare_step import PrepareStep
from graphloop.nodes.router import Router
from graphloop.nodes.stop_check import StopCheck
from graphloop.outcomes import Outcome
from tests.strategies import wrong


class Billing(Outcome):
    """A route."""


def test_a_list_is_taken_as_a_tuple() -> None:
    """A list has no hash: the table of a graph would raise where nobody could say what is wrong."""
    given = StopCheck(conditions=wrong([stop.step_count_is(2)]))

    assert StopCheck(conditions=(stop.step_count_is(2),)) == given
    assert hash(StopCheck(conditions=(stop.step_count_is(2),))) == hash(given)
    assert ModelCall(fallbacks=("a", "b")) == ModelCall(fallbacks=wrong(["a", "b"]))


@pytest.mark.parametrize("given", [{"search"}, {"search": 1}, (["search"],)])
def test_what_can_be_changed_later_is_refused_by_its_name(given: object) -> None:
    """A set, a mapping, and a list within a tuple."""
    told = "`active_tools` of PrepareStep: expected the type tuple[str, ...] | None, found"
    with pytest.raises(ConfigError, match=re.escape(f"{told} {given!r}") + ".*such as a tuple"):
        PrepareStep(active_tools=wrong(given))


def test_what_no_hash_goes_by_may_be_a_mapping() -> None:
    """The routes of a router are one; it keeps a copy."""
    assert {Billing: "money"} == Router({Billing: "money"}, "Which?").routes


@dataclass(frozen=True)
class Compiled(Gate):
    """A gate that works something out, once the library's part is made."""

    compiled: tuple[str, ...] = field(init=False)
    strict: InitVar[bool] = field(default=False, kw_only=True)

    def __post_init__(self, strict: bool) -> None:
        """Compile."""
        super().__post_init__()
        object.__setattr__(self, "compiled", ("strict",) if strict else ())


@dataclass(frozen=True)
class Unfinished(Gate):
    """A gate that never sets what it declares, or sets it when it is used."""

    cached: tuple[str, ...] = field(init=False, compare=False)


def test_what_is_set_later_is_not_asked_for_yet() -> None:
    """An own node may set its fields after the library's part of it is made, or not at all."""
    assert ("strict",) == Compiled(strict=True).compiled
    assert "gate" == Unfinished().name


def test_what_is_in_a_hash_that_cannot_be_made_yet_is_refused() -> None:
    """By its name, not by that of what is set later."""

    @dataclass(frozen=True)
    class Both(Gate):
        limits: dict[str, int] = field(default_factory=dict[str, int])
        compiled: tuple[str, ...] = field(init=False)

    with pytest.raises(ConfigError, match="`limits` of Both"):
        Both()
