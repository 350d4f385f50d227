"""Graphs with a cycle that nothing bounds: nodes that promise, and one that does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from graphloop import END, Graph
from graphloop.effects import Effect
from graphloop.events import Event
from graphloop.front.node_decorator import node
from graphloop.node_protocol import Kind, Leave, Reaction
from graphloop.outcomes import Outcome
from graphloop.run import Run

__all__ = ["POLLS", "Empty", "Found", "poll", "poller", "silent"]

POLLS = "polls a queue for ever; stopped from outside"


class Empty(Outcome):
    """Nothing there."""


class Found(Outcome):
    """Something there."""


QUEUE: list[bool] = []


@node
def poll(state: None) -> Empty | Found:
    """Look into the queue."""
    return Found() if not QUEUE or QUEUE.pop() else Empty()


def poller(ignore: Mapping[tuple[str, str], str] | None = None) -> Graph[None]:
    """Return a graph that looks again for as long as there is nothing."""
    return Graph("poller", poll, {poll: {Empty: poll, ...: END}}, ignore=ignore)


@dataclass(frozen=True)
class Silent:
    """A node of the user's that promises nothing."""

    name: str = "silent"
    kind: Kind = "pure"
    outcomes: frozenset[type[Outcome]] = frozenset({Empty, Found})

    def enter(self, run: Run[None], /) -> Reaction[None, Outcome]:
        """Leave."""
        return Leave(run, Found())

    def on(
        self, run: Run[None], event: Event, answered: Effect | None, /
    ) -> Reaction[None, Outcome]:
        """Never happens."""
        raise AssertionError


def silent(
    *, again: bool = True, ignore: Mapping[tuple[str, str], str] | None = None
) -> Graph[None]:
    """Return a graph of a node that promises nothing."""
    one = Silent()
    return Graph("quiet", one, {one: {Empty: one if again else END, Found: END}}, ignore=ignore)
