"""What a function says of itself: read from its annotations, refused with how to write it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial
from inspect import Parameter, Signature
from typing import Annotated

import pytest

from graphloop import NodeContext
from graphloop.effects import REQUESTS, AskModel, RequestAnswer
from graphloop.errors import NodeDefinitionError
from graphloop.outcomes import Failed, Outcome, Settled
from graphloop.own_nodes import Asking, ask_model
from graphloop.own_nodes.node_signature import signature_of
from tests.own_nodes import Again, Billing, Technical, Ticket


class Desk:
    """Has a method that is a node."""

    def decide(self, ticket: Ticket) -> Billing:
        """Take the ticket only."""
        return Billing()


Either = Billing | Technical


def stating(returns: object, **parameters: object) -> Callable[..., object]:
    """Return a function that says this of itself, and is never called."""

    def function(*_: object) -> None:
        raise NotImplementedError

    places = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in parameters]
    function.__annotations__ = {**parameters, "return": returns}
    function.__signature__ = Signature(places)  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess]
    return function


T = Ticket


@pytest.mark.parametrize(
    ("function", "state", "outcomes", "changes", "context"),
    [
        (stating(Either | tuple[Again, T], t=T), T, {Billing, Technical, Again}, True, False),
        (stating(Annotated[Billing, "x"], _=None, c=NodeContext), None, {Billing}, False, True),
        (
            stating(tuple[Billing, T] | tuple[Technical, T], t=T),
            T,
            {Billing, Technical},
            True,
            False,
        ),
        (stating(tuple[Billing, None], _=None), None, {Billing}, True, False),
        (Desk().decide, T, {Billing}, False, False),
    ],
    ids=["alias", "annotated", "pairs", "bare", "method"],
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


def asking(ticket: Ticket) -> Asking[Billing | Technical]:
    """Ask for anything."""
    yield from ask_model("?")
    return Billing()


def asking_models(ticket: Ticket) -> Generator[AskModel, RequestAnswer, tuple[Billing, Ticket]]:
    """Ask for one kind of thing."""
    yield from ask_model("?")
    return Billing(), ticket


def test_a_generator_says_what_it_asks_for_and_what_it_returns() -> None:
    """A narrower annotation is a narrower promise."""
    wide, narrow = signature_of(asking), signature_of(asking_models)

    assert (REQUESTS, False) == (wide.asks, wide.changes)
    assert {Billing, Technical} == wide.outcomes
    assert (frozenset({AskModel}), True) == (narrow.asks, narrow.changes)
    assert {Billing} == narrow.outcomes
    assert None is signature_of(stating(Billing, t=T)).asks


NAMELESS: Callable[[Ticket], Billing] = lambda ticket: Billing()  # noqa: E731


def silent(ticket: Ticket):  # type: ignore[no-untyped-def]
    """Never called."""
    raise NotImplementedError


def unknown(ticket: Tickets) -> Billing:  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore[reportUndefinedVariable, reportUnknownParameterType]
    """Never called."""
    raise NotImplementedError


def unsaid(ticket) -> Billing:  # type: ignore[no-untyped-def]  # pyright: ignore[reportUnknownParameterType, reportMissingParameterType]
    """Never called."""
    raise NotImplementedError


REFUSED: list[tuple[Callable[..., object], str]] = [
    (silent, r"return annotation, found none. Fix: write `async def silent\(state: Ticket"),
    (stating(str, t=T), "expected outcomes in its return annotation, found str"),
    (stating(Iterator[Billing], t=T), r"annotation, found collections.abc.Iterator"),
    (stating(Billing | None, t=T), "found NoneType"),
    (stating(Outcome, t=T), "found Outcome"),
    (stating(Billing | Failed, t=T), "may be left by 'failed', and no function returns it"),
    (stating(Settled, t=T), r"what became of a turn's calls \('settled'\)"),
    (stating(Billing), "expected the state as its first parameter .* found parameters none"),
    (unsaid, "annotation of parameter 'ticket'"),
    (stating(Billing, t=T, context=NodeContext, more=int), "parameters t, context, more"),
    (stating(Billing, c=NodeContext), "expected the state first, found the context 'c'"),
    (unknown, "cannot be resolved: name 'Tickets' is not defined"),
    (NAMELESS, "expected a function with a name"),
    (partial(stating(str)), "expected a function with a name, found partial"),
]


@pytest.mark.parametrize(("function", "words"), REFUSED)
def test_annotations_of_no_node_are_refused(function: Callable[..., object], words: str) -> None:
    """When the function is decorated, not when it runs."""
    with pytest.raises(NodeDefinitionError, match=words):
        signature_of(function)
