"""Calling a node's function: what it answers is checked before it becomes a fact."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from graphloop.errors import ConfigError
from graphloop.events import Left
from graphloop.front.node_call import NodeCall
from graphloop.front.node_signature import signature_of
from graphloop.outcomes import Outcome
from graphloop.run import Run, evolve
from tests.own_nodes import Again, Billing, Open, Technical, Ticket
from tests.strategies import fresh, wrong

TICKET = Ticket("x")


def called(
    function: Callable[..., object],
    state: object = TICKET,
    *,
    writes: frozenset[str] | None = None,
    timeout_s: float | None = None,
    raises: tuple[tuple[type[Exception], type[Outcome]], ...] = (),
) -> Left:
    """Return what becomes of a function's answer."""
    run: Run[object] = wrong(evolve(fresh(), state=wrong(state)))
    call = NodeCall(function, signature_of(function), writes, timeout_s, raises)
    return asyncio.run(call(run))


async def later(ticket: Ticket) -> Billing:
    """Answer alone."""
    return Billing()


def why(ticket: Ticket) -> Again:
    """Answer with a field."""
    return Again("why")


def changing(ticket: Ticket) -> tuple[Billing, Ticket]:
    """Change the team."""
    return Billing(), replace(ticket, team="b")


def emptying(ticket: Ticket | None) -> tuple[Billing, Ticket | None]:
    """Take the state away."""
    return Billing(), None


def test_an_answer_becomes_a_fact() -> None:
    """The outcome's name and fields, and the state where it is given."""
    assert Left("Billing") == called(later)
    assert Left("Again", None, '{"reason":"why"}') == called(why)
    assert Left("Billing", Ticket("x", "b"), changed=True) == called(changing)
    assert Left("Billing", None, changed=True) == called(emptying)


def the_class(ticket: Ticket) -> Billing:
    """Forget the brackets."""
    answer: Billing = wrong(Billing)
    return answer


def undeclared(ticket: Ticket) -> Billing:
    """Leave by another way."""
    answer: Billing = wrong(Technical())
    return answer


def forgetful(ticket: Ticket) -> Billing:
    """Return nothing."""
    answer: Billing = wrong(None)
    return answer


def state_alone(ticket: Ticket) -> tuple[Billing, Ticket]:
    """Return the state only."""
    answer: tuple[Billing, Ticket] = wrong(ticket)
    return answer


def undeclared_state(ticket: Ticket) -> Billing:
    """Change a state without a word."""
    answer: Billing = wrong((Billing(), ticket))
    return answer


def other_state(ticket: Ticket) -> tuple[Billing, Ticket]:
    """Return another thing for a state."""
    answer: tuple[Billing, Ticket] = wrong((Billing(), "x"))
    return answer


def three(ticket: Ticket) -> tuple[Billing, Ticket]:
    """Return too many things."""
    answer: tuple[Billing, Ticket] = wrong((Billing(), ticket, 1))
    return answer


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (the_class, r"returned the class Billing: return one, `Billing\(\)`"),
        (undeclared, "returned 'technical', which its annotation does not name: add Technical"),
        (forgetful, "found None: is there a way through it without a `return`"),
        (state_alone, "returns one of Billing; found Ticket"),
        (undeclared_state, "a new state, which its annotation does not say"),
        (other_state, "returns a state of type Ticket; found str"),
        (three, "returns one of Billing; found"),
    ],
)
def test_an_answer_that_its_annotation_does_not_say_is_refused(
    function: Callable[..., object], words: str
) -> None:
    """A journal must not hold what no row expects."""
    with pytest.raises(ConfigError, match=words):
        called(function)


def test_a_function_writes_what_it_declares_and_no_more() -> None:
    """The proofs rely on it."""
    assert called(changing, writes=frozenset({"team"})).changed

    with pytest.raises(ConfigError, match="writes 'text', as it declares; it changed 'team'"):
        called(changing, writes=frozenset({"text"}))


def in_place(state: Open) -> Billing:
    """Change what no journal sees."""
    state.text = "changed"
    return Billing()


def returned(state: Open) -> tuple[Billing, Open]:
    """Change it, and return it."""
    state.text = "changed"
    return Billing(), state


def test_a_state_is_never_changed_in_place() -> None:
    """Neither the run's nor the caller's; what is returned counts."""
    state = Open("x")

    with pytest.raises(ConfigError, match="changed its state in place, where no journal sees it"):
        called(in_place, state)
    assert Left("Billing", Open("changed"), changed=True) == called(returned, state)

    assert Open("x") == state


async def slow(ticket: Ticket) -> Billing | Technical:
    """Never answer."""
    await asyncio.Event().wait()
    raise NotImplementedError


async def own_limit(ticket: Ticket) -> Billing:
    """Run into a time limit of its own."""
    raise TimeoutError("mine")


def test_a_function_that_takes_too_long_is_given_up() -> None:
    """Its own time limits are its own errors."""
    with pytest.raises(TimeoutError, match="node 'slow' gave no answer within"):
        called(slow, timeout_s=0.01)
    with pytest.raises(TimeoutError, match=r"^mine$"):
        called(own_limit, timeout_s=9)

    assert Left("Technical") == called(slow, timeout_s=0.01, raises=((TimeoutError, Technical),))
