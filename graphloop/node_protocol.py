"""Node: the protocol of a graph's nodes, which request effects and leave by an outcome.

A node decides and never acts. The kernel calls `enter` when a run arrives, and `on` for each event
that answers one of the node's effects. Both return `Wait` (perhaps with more effects) or `Leave`
(with one of the node's outcomes). The table, and not the node, says where an outcome leads.

Names of graphs and nodes appear in journals, diagrams, files and terminals. So a name has no
control characters, and no white space at its beginning or end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import (
    Any,
    Final,
    Generic,
    Literal,
    Protocol,
    TypeAlias,
    TypeGuard,
    TypeVar,
    cast,
    final,
    get_args,
)
from unicodedata import bidirectional, category

from msgspec import Struct

from .effects import Effect
from .events import Event, Failure
from .outcomes import Outcome
from .run import Run

__all__ = [
    "NAME_MAX",
    "Kind",
    "Leave",
    "Node",
    "OwnKind",
    "Reacting",
    "Reaction",
    "Wait",
    "control_in",
    "escaped",
    "flaw_of",
    "is_node",
    "node_flaw_of",
    "nodes_within",
    "outcomes_of",
    "turns_direction",
    "unwrapped",
    "wrong_answer",
]

S = TypeVar("S")
O_co = TypeVar("O_co", bound=Outcome, covariant=True)

OwnKind: TypeAlias = Literal["pure", "act", "check", "prepare", "stop"]
"""The kinds that function nodes may have; proofs rely on a fixed behaviour of each other kind."""

Kind: TypeAlias = Literal["model", "gate", "execute", "append", "human", "graph", OwnKind]

WORDS: Final = ("name", "kind", "outcomes", "enter", "on")
"""The attributes of a node, to check in place of `isinstance`, which is slow with a protocol."""


@final
class Wait(Struct, Generic[S], frozen=True, gc=False):
    """Stay at this node, and request `effects`, numbered from `run.next_effect` upwards."""

    run: Run[S]
    effects: tuple[Effect, ...] = ()


@final
class Leave(Struct, Generic[S, O_co], frozen=True, gc=False):
    """Leave this node by `outcome`; the graph's table gives the next node."""

    run: Run[S]
    outcome: O_co


Reaction: TypeAlias = Wait[S] | Leave[S, O_co]


class Reacting(Protocol[S, O_co]):
    """The part of a node that the kernel calls: its reactions."""

    def enter(self, run: Run[S], /) -> Reaction[S, O_co]:
        """React to the arrival of a run at this node."""
        ...

    def on(self, run: Run[S], event: Event, answered: Effect | None, /) -> Reaction[S, O_co]:
        """React to an event, which answers the effect `answered` (None for `Cancelled`)."""
        ...


class Node(Reacting[S, O_co], Protocol[S, O_co]):
    """The protocol of the nodes of a graph.

    Implementations are frozen dataclasses: hashable, comparable, with no state of their own.
    """

    @property
    def name(self) -> str:
        """The node's name, unique in its graph."""
        ...

    @property
    def kind(self) -> Kind:
        """The node's kind, which decides its shape in diagrams and its treatment in proofs."""
        ...

    @property
    def outcomes(self) -> frozenset[type[Outcome]]:
        """The complete set of outcome types by which `enter` and `on` can leave."""
        ...


def wrong_answer(callback: str, expected: type, answer: object) -> Failure:
    """Return the failure of a node whose callback has answered with another type."""
    words = f"callback {callback!r}: expected {expected.__name__}, found {type(answer).__name__}"
    return Failure("ConfigError", words)


def outcomes_of(union: UnionType | type[Outcome]) -> frozenset[type[Outcome]]:
    """Return the outcome types of a union alias, so that a node declares its set only once."""
    members = get_args(union) or (union,)
    # `get_args` returns Any; the annotation of `union` guarantees these types.
    return frozenset(cast("tuple[type[Outcome], ...]", members))


def is_node(value: object) -> TypeGuard[Node[Any, Outcome]]:
    """Whether a value is a node, and not a node class."""
    if isinstance(value, type):
        return False
    for word in WORDS:  # noqa: SIM110 - a generator for each field of each node costs more
        if not hasattr(value, word):
            return False
    return True


def nodes_within(node: Node[Any, Outcome]) -> tuple[Node[Any, Outcome], ...]:
    """Return the nodes that a node holds directly in its dataclass fields."""
    if not is_dataclass(node):
        return ()
    values: list[object] = [getattr(node, one.name, None) for one in fields(node)]
    return tuple([one for one in values if is_node(one)])


def unwrapped(nodes: Iterable[Node[Any, Outcome]]) -> Iterator[Node[Any, Outcome]]:
    """Yield these nodes and all nodes nested in them, each once, outer nodes before inner ones."""
    waiting = [*nodes][::-1]
    seen: dict[int, Node[Any, Outcome]] = {}
    while waiting:
        node = waiting.pop()
        # Node classes of a caller may hold each other in a cycle.
        if id(node) not in seen:
            seen[id(node)] = node
            yield node
            waiting += nodes_within(node)[::-1]


NAME_MAX: Final = 200

_CONTROL: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode categories of control characters, lone surrogates, line and paragraph separators."""

_TURNS: Final = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})

_CALLS: Final = re.compile(r"c-?[0-9]+")
"""The pattern of the part before the dot in the key of a call."""


def control_in(text: str) -> str | None:
    """Return the first control character of a text, or None if there is none."""
    if text.isprintable():
        return None
    return next((sign for sign in text if category(sign) in _CONTROL), None)


def turns_direction(sign: str) -> bool:
    """Whether a character changes the writing direction of the characters after it."""
    return bidirectional(sign) in _TURNS


def flaw_of(name: str) -> str | None:
    """Return the reason why a text cannot be a name, or None if it can."""
    if not name.strip():
        return "it says nothing"
    control = control_in(name)
    if control is not None:
        return f"it holds the control character {control!r}"
    if name != name.strip():
        return "it begins or ends with white space"
    if "/" in name:
        return "a slash leads from a child to its nodes (child/node)"
    return f"it has more than {NAME_MAX} characters" if len(name) > NAME_MAX else None


def node_flaw_of(name: str) -> str | None:
    """Return the reason why a text cannot be a node's name, or None if it can.

    The keys of a node's effects begin with its name, which must not look like the key of a call.
    """
    if _CALLS.fullmatch(name):
        return "the calls of a turn have such keys, and what the node asks for would have the same"
    return flaw_of(name)


def escaped(text: str) -> str:
    """Return a text with its unprintable characters escaped, so that it is safe to display."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
