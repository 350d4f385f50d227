"""What a function says of itself: read from its annotations, refused with how to write it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from functools import partial
from typing import Annotated, Optional

import pytest

from graphloop import NodeContext
from graphloop.effects import ASKS, Answer, AskModel
from graphloop.errors import NodeDefinitionError
from graphloop.outcomes import Failed, Outcome, Settled
from graphloop.own_nodes import Asking, ask_model
from graphloop.own_nodes.node_signature import signature_of
from tests.own_nodes import Again, Billing, Technical, Ticket

Either = Billing | Technical
NAMELESS: Callable[[Ticket], Billing] = lambda ticket: Billing()  # noqa: E731


class Desk:
    """Has a method that is a node."""

    def decide(self, ticket: Ticket) -> Billing:
        """Take the ticket only."""
        return Billing()


def alias(ticket: Ticket) -> Either | tuple[Again, Ticket]:
    """Never called."""
    raise NotImplementedError


def annotated(_: None, context: NodeContext) -> Annotated[Billing, "x"]:
    """Never called."""
    raise NotImplementedError


def pairs(ticket: Ticket) -> tuple[Billing, Ticket] | tuple[Technical, Ticket]:
    """Never called."""
    raise NotImplementedError


def bare(_: None) -> tuple[Billing, None]:
    """Never called."""
    raise NotImplementedError


@pytest.mark.parametrize(
    ("function", "state", "outcomes", "changes", "context"),
    [
        (alias, Ticket, {Billing, Technical, Again}, True, False),
        (annotated, None, {Billing}, False, True),
        (pairs, Ticket, {Billing, Technical}, True, False),
        (bare, None, {Billing}, True, False),
        (Desk().decide, Ticket, {Billing}, False, False),
    ],
)
def test_annotations_say_all_there_is_to_know(
    function: Callable[..., object],
    state: object,
    outcomes: set[type[Outcome]],
    changes: bool,
    context: bool,
) -> None:
    """Unions and aliases at any depth, states, contexts, methods."""
    signature = signature_of(function)

    assert state == signature.state
    assert outcomes == signature.outcomes
    assert (changes, context) == (signature.changes, signature.context)


def silent(ticket: Ticket):  # type: ignore[no-untyped-def]
    """Never called."""
    raise NotImplementedError


def text(ticket: Ticket) -> str:
    """Never called."""
    raise NotImplementedError


def maybe(ticket: Ticket) -> Optional[Billing]:  # noqa: UP045
    """Never called."""
    raise NotImplementedError


def root(ticket: Ticket) -> Outcome:
    """Never called."""
    raise NotImplementedError


def failing(ticket: Ticket) -> Billing | Failed:
    """Never called."""
    raise NotImplementedError


def settling(ticket: Ticket) -> Settled:
    """Never called."""
    raise NotImplementedError


def other_state(ticket: Ticket) -> tuple[Billing, str]:
    """Never called."""
    raise NotImplementedError


def triple(ticket: Ticket) -> tuple[Billing, Ticket, int]:
    """Never called."""
    raise NotImplementedError


def nothing() -> Billing:
    """Never called."""
    raise NotImplementedError


def unsaid(ticket) -> Billing:  # type: ignore[no-untyped-def]  # pyright: ignore[reportUnknownParameterType, reportMissingParameterType]
    """Never called."""
    raise NotImplementedError


def many(ticket: Ticket, context: NodeContext, more: int) -> Billing:
    """Never called."""
    raise NotImplementedError


def named(*, ticket: Ticket) -> Billing:
    """Never called."""
    raise NotImplementedError


def swapped(context: NodeContext) -> Billing:
    """Never called."""
    raise NotImplementedError


def second(ticket: Ticket, more: int) -> Billing:
    """Never called."""
    raise NotImplementedError


def unknown(ticket: Tickets) -> Billing:  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore[reportUndefinedVariable, reportUnknownParameterType]
    """Never called."""
    raise NotImplementedError


def yielding(ticket: Ticket) -> Iterator[Billing]:
    """Give several."""
    yield Billing()


async def streaming(ticket: Ticket) -> AsyncIterator[Billing]:
    """Give several, and wait in between."""
    yield Billing()


async def promising(ticket: Ticket) -> Asking[Billing]:
    """Never called."""
    raise NotImplementedError


def giving(ticket: Ticket) -> Generator[str, str, Billing]:
    """Ask for what nobody answers."""
    yield ""
    return Billing()


def asking(ticket: Ticket) -> Asking[Billing | Technical]:
    """Ask for anything."""
    yield from ask_model("?")
    return Billing()


def asking_models(ticket: Ticket) -> Generator[AskModel, Answer, tuple[Billing, Ticket]]:
    """Ask for one kind of thing."""
    yield from ask_model("?")
    return Billing(), ticket


def test_a_generator_says_what_it_asks_for_and_what_it_returns() -> None:
    """A narrower annotation is a narrower promise."""
    wide, narrow = signature_of(asking), signature_of(asking_models)

    assert (ASKS, False) == (wide.asks, wide.changes)
    assert {Billing, Technical} == wide.outcomes
    assert (frozenset({AskModel}), True) == (narrow.asks, narrow.changes)
    assert {Billing} == narrow.outcomes
    assert None is signature_of(root_free).asks


def root_free(ticket: Ticket) -> Billing:
    """Just answer."""
    return Billing()


REFUSED: list[tuple[Callable[..., object], str]] = [
    (silent, r"as the return annotation, found none. Fix: write `async def silent\(state: Ticket"),
    (text, "expected outcomes in its return annotation, found str"),
    (maybe, "found NoneType"),
    (root, "found Outcome itself"),
    (failing, "may be left by 'failed', and none returns it. Fix: leave it out"),
    (settling, "'settled' tells what became of a turn's calls"),
    (other_state, r"found tuple\[Billing, str\]. Fix: write `-> tuple\[<outcomes>, Ticket\]`"),
    (triple, r"found tuple\[Billing, Ticket, int\]"),
    (nothing, "expected the state as its first parameter .* found parameters none"),
    (unsaid, "parameter 'ticket' has no annotation"),
    (many, "found parameters ticket, context, more"),
    (named, "parameter 'ticket' cannot be given by its place"),
    (swapped, "the context is its first parameter. Fix: put the state first"),
    (second, "its second parameter 'more' is given the context .* annotation int"),
    (unknown, "cannot be resolved: name 'Tickets' is not defined"),
    (yielding, r"expected `Asking\[<outcomes>\]` .* found collections.abc.Iterator"),
    (streaming, "found an asynchronous generator, which can return nothing"),
    (promising, "expected a plain `def` that asks with `yield from`"),
    (giving, "yields of AskAgent, AskModel, AskPerson, Tell, found str"),
    (NAMELESS, "expected a function with a name"),
    (partial(text), "expected a function with a name, found partial"),
]


@pytest.mark.parametrize(("function", "words"), REFUSED)
def test_what_no_node_can_do_is_refused_with_how_to_write_it(
    function: Callable[..., object], words: str
) -> None:
    """When it is decorated, not when it is run."""
    with pytest.raises(NodeDefinitionError, match=words):
        signature_of(function)
