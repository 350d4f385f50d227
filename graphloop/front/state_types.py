"""The type of a graph's state, as its nodes tell it: all of them must mean the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from ..drivers.callback_results import check_state
from ..errors import GraphError, Problem
from ..graph import Graph
from ..node_protocol import Node, unwrapped
from ..outcomes import Outcome
from .states import states_fit

__all__ = ["Stateful", "check_first", "known_state_type", "state_type_of"]

S = TypeVar("S")


@runtime_checkable
class Stateful(Node[S, Outcome], Protocol[S]):
    """A node that tells the type of the state that it works on, such as a function's."""

    @property
    def state_type(self) -> object:
        """The state's type; None for no state, `Any` for whatever there is."""
        ...


def state_type_of(graph: Graph[Any], given: object) -> object:
    """Return the type of a graph's state: the one that is given, else the one its nodes tell.

    Raises:
        GraphError: naming each node whose state is of another type.
    """
    told = dict(_told(graph))
    kind = given
    if given is None:
        kind = next((one for one in told.values() if one is not None), None)
    problems = [
        Problem(
            f"node {name!r}",
            f"takes a state of type {_word(one)}, and the graph's is of type {_word(kind)}.",
            "have all functions of a graph take the same type of state.",
        )
        for name, one in told.items()
        if not states_fit(one, kind)
    ]
    if problems:
        raise GraphError(graph.name, problems)
    return kind


def known_state_type(graph: Graph[Any]) -> object:
    """Return the type of a graph's state; None where nobody knows it."""
    return getattr(graph, "state_type", None)


def check_first(graph: Graph[Any], state: object, *, kept: bool) -> None:
    """Refuse a state to begin with that is not of the graph's type.

    Args:
        graph: what runs.
        state: the state.
        kept: whether the run's journal is written down.

    Raises:
        ConfigError: it is of another type, or a part of it is that will be written down.
    """
    made = f"a run of graph {graph.name!r} begins with"
    check_state(state, known_state_type(graph), made, kept=kept)


def _told(graph: Graph[Any]) -> Iterator[tuple[str, object]]:
    for node in unwrapped(graph.nodes.values()):
        if isinstance(node, Stateful):
            # isinstance leaves the type of its state unknown, which is what is asked for here.
            kind = cast("Stateful[object]", node).state_type
            if kind is not Any:
                yield node.name, kind


def _word(kind: object) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)
