"""Watching: the same graph, whose nodes note what they decide, and which of them is deciding.

Nodes decide what they would have decided; nothing of a run changes.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, final

from ..events import Event
from ..graph import Graph
from ..node_protocol import Leave, Node, Reaction, Wait
from ..outcomes import Outcome, outcome_name
from ..overheard import overheard
from .interrupts import Interrupts

__all__ = ["Decision", "Deed", "Notes", "Passage", "WantedOut", "watched_graph"]

S = TypeVar("S")

Decision: TypeAlias = Reaction[Any, Outcome] | Exception


class WantedOut(Exception):
    """A node would have ended the process; the message says how."""


@final
@dataclass(frozen=True, slots=True)
class Passage:
    """A node was left by an outcome, and where that led; all by name."""

    node: str
    outcome: str
    target: str

    def __str__(self) -> str:
        return f"{self.node} -{self.outcome}-> {self.target}"


@final
@dataclass(frozen=True, slots=True)
class Deed:
    """What a node decided, or raised, when the journal had so many events.

    `passage` is where it led if the node was left by a way that the table has.
    """

    event: int
    node: str
    decision: Decision
    passage: Passage | None = None


@final
@dataclass
class Notes:
    """What nodes did, and who wished for what.

    Args:
        journal: the events so far.
        interrupts: tells a person's Ctrl-C from a node's.
        deeds: all that nodes decided, in order; after a crash, all over again.
        busy: the node that is deciding; empty if none is.
    """

    journal: Sequence[Event] = ()
    interrupts: Interrupts = field(default_factory=Interrupts)
    wishers: dict[int, str] = field(default_factory=dict[int, str])
    deeds: list[Deed] = field(default_factory=list[Deed])
    busy: str = ""

    def note(self, node: str, decision: Decision, passage: Passage | None = None) -> None:
        """Note what a node decided, and where that led."""
        self.deeds.append(Deed(len(self.journal), node, decision, passage))

    @contextmanager
    def deciding(self, node: str) -> Generator[None, None, None]:
        """Note that a node is deciding, until it has; what it raises is its decision.

        Raises:
            WantedOut: it would have ended the process.
        """
        self.busy = node
        try:
            yield
        except Exception as error:
            self.busy = ""
            self.note(node, error)
            raise
        except BaseException as error:
            if not self.interrupts.is_leaving(error):
                raise
            self.busy = ""
            wish = f"{type(error).__name__}: {error}".removesuffix(": ")
            out = WantedOut(f"it wanted to end the process ({wish})")
            self.note(node, out)
            raise out from error
        self.busy = ""


def watched_graph(graph: Graph[S], notes: Notes) -> Graph[S]:
    """Return a graph that runs as `graph` does, and keeps these notes."""

    def note(node: Node[S, Outcome], reaction: Reaction[S, Outcome]) -> None:
        row, passage = graph.table[node.name], None
        match reaction:
            case Leave(outcome=Outcome() as outcome) if type(outcome) in row:
                passage = Passage(node.name, outcome_name(type(outcome)), row[type(outcome)])
            case Wait(effects=tuple() as effects):
                for effect in effects:
                    notes.wishers[getattr(effect, "id", 0)] = node.name
            case _:
                pass  # The kernel says what is wrong with it.
        notes.note(node.name, reaction, passage)

    def within(node: Node[S, Outcome]) -> AbstractContextManager[None]:
        return notes.deciding(node.name)

    return overheard(graph, note, within)
