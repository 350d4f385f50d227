"""The options of @node: each takes effect, or is refused with what to write."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from graphloop import node
from graphloop.contract import Cap
from graphloop.effects import AskAgent, AskModel, AskPerson, Tell
from graphloop.errors import ConfigError, NodeDefinitionError
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
    assert (frozenset({"text"}), frozenset()) == (made.contract.reads, made.contract.writes)
    assert Billing is made.kernel.capped
    assert (5, ((KeyError, Again),)) == (made.call.timeout_s, made.call.raises)
    assert frozenset({"team"}) == node(writes={"team"})(change).contract.writes
    assert node(change).contract.writes is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "gate"}, "`kind` is one of pure, act, check, prepare, stop; found 'gate'. Fix"),
        ({"cap": {Technical: 3}}, "`cap` names Technical, which its return annotation does not"),
        ({"cap": {Again: 0}}, "a whole number of at least 1 for each outcome; found 0"),
        ({"cap": {Again: True}}, "found True"),
        ({"capped": Billing}, "found no `cap`"),
        ({"cap": {Again: 3}, "capped": Again}, "found a cap of Again itself"),
        ({"cap": {Again: 3}, "capped": Needs}, "cannot be made without arguments"),
        ({"raises": {KeyError: Needs}}, "cannot be made without arguments"),
        ({"raises": {KeyError: "Again"}}, "`raises` names 'Again'"),
        ({"raises": {int: Again}}, "`raises` names exception types; found <class 'int'>"),
        ({"reads": ["txt"]}, r"state \(team, text, tries\). Did you mean 'text'\? Fix"),
        ({"reads": "text"}, "found the text 'text'"),
        ({"writes": ["text"]}, "`writes` is for a function that returns a new state"),
        ({"timeout_s": -1}, "`timeout_s` is a finite number above 0"),
    ],
)
def test_an_option_that_cannot_take_effect_is_refused(
    options: dict[str, object], words: str
) -> None:
    """When the function is decorated."""
    with pytest.raises(ConfigError, match=words):
        node(**wrong(options))(decide)


def test_a_plain_function_cannot_be_given_up() -> None:
    """It would block everything as long as it takes."""
    with pytest.raises(NodeDefinitionError, match="cannot interrupt a plain function"):
        node(timeout_s=5)(change)


def test_an_outcome_that_no_journal_can_keep_is_refused() -> None:
    """Before anything is run."""
    with pytest.raises(NodeDefinitionError, match="outcome 'odd' has fields that cannot be kept"):
        node(odd)


def asking(ticket: Ticket) -> Asking[Billing]:
    """Ask."""
    yield from ask_model("?")
    return Billing()


def test_a_generator_promises_what_it_is_told_to_promise() -> None:
    """Without a number nobody knows how many models it asks; agents are named."""
    free = node(asking).contract
    bound = node(model_calls=2, agents={"b": 1, "a": 3})(asking).contract

    assert (None, True, (), False) == (free.model_calls, free.asks, free.agents, free.tools)
    assert (2, ("a", "b")) == (bound.model_calls, bound.agents)
    assert [("a", 3), ("b", 1)] == [(one.name, one.runs) for one in bound.children]


def test_a_generator_without_agents_does_not_ask_any() -> None:
    """Proofs need not reckon with it."""
    asks = node(asking).kernel.asks

    assert asks is not None
    assert {AskModel, AskPerson, Tell} == asks.kinds
    assert AskAgent not in asks.kinds


@pytest.mark.parametrize("most", [-1, 1001, True, 1.5])
def test_a_bound_of_asks_is_a_number(most: object) -> None:
    """And not more than a visit may ask at all."""
    with pytest.raises(NodeDefinitionError, match="`model_calls` is a whole number from 0 to 1000"):
        node(model_calls=wrong(most))(asking)
    with pytest.raises(NodeDefinitionError, match=r"`agents\['a'\]` is a whole number from 1"):
        node(agents={"a": 0})(asking)
    with pytest.raises(NodeDefinitionError, match=r"`agents\['a'\]` is a whole number"):
        node(agents={"a": wrong(most)})(asking)


def test_a_plain_function_asks_nothing() -> None:
    """An option without effect is refused."""
    with pytest.raises(NodeDefinitionError, match="`model_calls` bounds what a generator asks"):
        node(model_calls=1)(decide)
    with pytest.raises(NodeDefinitionError, match="`yield from ask_agent"):
        node(agents={"a": 1})(change)
