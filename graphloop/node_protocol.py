"""Node: a named behaviour that waits for effects and leaves by one of its outcomes.

A node decides and never acts. It is entered with a run, and told each event that answers one of
its effects; both times it returns `Wait` (perhaps with more effects) or `Leave` (with one of the
outcomes it declares). What comes after an outcome is the table's business, not the node's.
"""

from __future__ import annotations

from types import UnionType
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar, cast, get_args

from msgspec import Struct

from .effects import Effect
from .events import Event
from .outcomes import Outcome
from .run import Run

__all__ = ["Kind", "Leave", "Node", "Reaction", "Wait", "outcomes_of"]

S = TypeVar("S")
O_co = TypeVar("O_co", bound=Outcome, covariant=True)

Kind: TypeAlias = Literal[
    "prepare", "model", "gate", "execute", "append", "check", "stop", "human", "graph", "pure"
]


class Wait(Struct, Generic[S], frozen=True, gc=False):
    """Stay at this node: `effects` are new wishes, numbered from `run.next_effect` upwards."""

    run: Run[S]
    effects: tuple[Effect, ...] = ()


class Leave(Struct, Generic[S, O_co], frozen=True, gc=False):
    """Leave this node by `outcome`."""

    run: Run[S]
    outcome: O_co


Reaction: TypeAlias = Wait[S] | Leave[S, O_co]


class Node(Protocol[S, O_co]):
    """The protocol of everything that can stand in a graph's table.

    Implementations are frozen dataclasses: hashable, comparable, with no state of their own.
    """

    @property
    def name(self) -> str:
        """The node's name, unique in its graph."""
        ...

    @property
    def kind(self) -> Kind:
        """What the node is for: the proofs and the diagram's shapes go by it."""
        ...

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        """The closed set of outcome types that `enter` and `on` can leave by."""
        ...

    def enter(self, run: Run[S], /) -> Reaction[S, O_co]:
        """React to the run arriving here."""
        ...

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, O_co]:
        """React to an event; `answered` is the effect it answers (None for `Cancelled`)."""
        ...


def outcomes_of(union: UnionType | type[Outcome]) -> frozenset[type[Outcome]]:
    """Return the outcome types of a union alias, so that a node declares its set only once."""
    members = get_args(union) or (union,)
    # get_args is typed as Any; the annotation of `union` is the promise.
    return frozenset(cast("tuple[type[Outcome], ...]", members))
