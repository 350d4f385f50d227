"""The options of @node: each takes effect, or is refused with what to write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from graphloop import node
from graphloop.contract import Cap
from graphloop.effects import AskModel, AskPerson, Tell
from graphloop.errors import ConfigError
from graphloop.outcomes import Outcome
from graphloop.own_nodes import Asking, ask_model
from tests.own_nodes import Again, Billing, Technical, Ticket
from tests.strategies import wrong


@dataclass(frozen=True)
class Needs(Outcome):
    """An outcome that is not made of nothing."""

    reason: str


@dataclass(frozen=True)
class Odd(Outcome):
    """An outcome that no journal can keep."""

    what: object = None
    which: type[Ticket] | None = None


async def decide(ticket: Ticket) -> Billing | Again | Needs:
    """Decide."""
    return Billing()


def change(ticket: Ticket) -> tuple[Billing, Ticket]:
    """Change."""
    return Billing(), ticket


def odd(ticket: Ticket) -> Odd:
    """Leave oddly."""
    return Odd()


def test_every_option_is_in_the_node() -> None:
    """And in what it promises to the proofs."""
    made = node(
        name="judge",
        kind="check",
        reads=["text"],
        cap={Again: 3},
        capped=Billing,
        timeout_s=5,
        raises={KeyError: Again},
    )(decide)

    assert ("judge", "check") == (made.name, made.kind)
    assert {Again: Cap(3)} == made.contract.caps
    assert (frozenset({"text"}), {}) == (made.contract.reads, made.contract.writes)
    assert Billing is made.kernel.capped
    assert (5, ((KeyError, Again),)) == (made.call.timeout_s, made.call.raises)
    assert {"team"} == node(writes={"team"})(change).contract.fields_written
    assert node(change).contract.writes is None


def asking(ticket: Ticket) -> Asking[Billing]:
    """Ask."""
    yield from ask_model("?")
    return Billing()


MODELS = "`model_calls`: expected a whole number from 0 to 1000"
AGENTS = r"`agents\['a'\]`: expected a whole number from 1 to 1000"


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        (decide, {"cap": {Technical: 3}}, r"`cap`: .*\(Again, Billing, Needs\), found Technical"),
        (decide, {"cap": {Again: True}}, "the cap of 'again'.*found True"),
        (decide, {"cap": 3}, r"`cap`: expected a mapping such as cap=\{Again: 3\}, found 3"),
        (decide, {"cap": 0}, "`cap`: expected a mapping"),
        (decide, {"raises": KeyError}, "`raises`: expected a mapping"),
        (asking, {"agents": ["a"]}, "`agents`: expected a mapping"),
        (decide, {"capped": Billing}, "found no `cap`"),
        (decide, {"cap": {Again: 3}, "capped": Again}, "found a cap of Again itself"),
        (decide, {"cap": {Again: 3}, "capped": Needs}, "cannot be made without arguments"),
        (decide, {"raises": {KeyError: Needs}}, "cannot be made without arguments"),
        (decide, {"reads": ["txt"]}, r"\(team, text, tries\), found 'txt'. Did you mean 'text'\?"),
        (decide, {"writes": ["text"]}, "`writes`: expected a function that returns a new state"),
        (decide, {"timeout_s": -1}, "`timeout_s` to be a finite number above 0"),
        (change, {"timeout_s": 5}, "`timeout_s`: expected an asynchronous function"),
        (asking, {"timeout_s": 5}, "`timeout_s`: expected an asynchronous function"),
        (odd, {}, "outcome 'odd' has fields that no journal can keep"),
        (asking, {"model_calls": -1}, f"{MODELS}, found -1"),
        (asking, {"model_calls": 1001}, f"{MODELS}, found 1001"),
        (asking, {"model_calls": True}, f"{MODELS}, found True"),
        (asking, {"agents": {"a": 0}}, f"{AGENTS}, found 0"),
        (asking, {"agents": {"a": 1.5}}, f"{AGENTS}, found 1.5"),
        (decide, {"model_calls": 1}, "`model_calls`: expected a generator that yields AskModel"),
        (change, {"agents": {"a": 1}}, "`yield from ask_agent"),
    ],
)
def test_an_option_that_cannot_take_effect_is_refused(
    function: Callable[..., object], options: dict[str, object], words: str
) -> None:
    """When the function is decorated."""
    with pytest.raises(ConfigError, match=words):
        node(**wrong(options))(wrong(function))


def test_a_generator_promises_no_more_than_its_options() -> None:
    """Without a number nobody knows how many models it asks; it asks the named agents only."""
    free, bound = node(asking), node(model_calls=2, agents={"b": 1, "a": 3})(asking).contract

    contract, asks = free.contract, free.kernel.asks
    assert (None, True, ()) == (contract.model_calls, contract.asks, contract.children)
    assert not contract.tools
    assert asks is not None
    assert {AskModel, AskPerson, Tell} == asks.kinds
    assert 2 == bound.model_calls
    assert [("a", 3), ("b", 1)] == [(child.name, child.runs) for child in bound.children]
