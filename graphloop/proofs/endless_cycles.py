"""endless: what of a graph has no bound, and is not set aside for a reason.

It is GL4 alone, decided by itself: every graph asks for it before its first run.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from ..graph import NodeGraph
from .calls import CallWalk
from .cycles import circling
from .ground import Ground
from .ranking import Ranking
from .report import Finding
from .suppression import aside_in, excused

__all__ = ["Endless", "endless"]

S = TypeVar("S")


class Endless(NamedTuple):
    """A cycle that nothing bounds.

    Attributes:
        node: the node that it is set aside by, with GL4.
        words: which it is, what is missing, and how to give it.
    """

    node: str
    words: str


def endless(graph: NodeGraph[S], *, every: bool = False) -> tuple[Endless, ...]:
    """Return the cycles of `graph` that nothing bounds, or nobody can tell, and nobody excuses.

    Those of its children are their own graphs'.

    Args:
        graph: the graph.
        every: to return all of them; else, of very many, the first that are found.
    """
    ground = Ground(graph)
    if not ground.reached:
        return ()
    aside = aside_in(graph.ignore)
    found = circling(Ranking(ground), CallWalk(ground), aside, every=every, shown=False)
    return tuple(
        [
            Endless(
                one.node,
                f"{one.message} Fix: {one.fix}" if isinstance(one, Finding) else one.reason,
            )
            for one in found
            if not excused(one, graph.ignore)
        ]
    )
