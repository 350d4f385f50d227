"""How deep the nodes of a graph begin runs within runs: the tables say so before any begins.

Calls of models may go deeper: they are answered one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from ..allowance import deeper
from ..graph import Graph
from .carried import agents_named
from .child import Plan

__all__ = ["Nesting", "nesting_of"]


@final
@dataclass(frozen=True)
class Nesting:
    """How deep a graph's nodes begin runs.

    Attributes:
        path: the agents of one of the deepest ways, outermost first.
        problem: why a run would go too deep, in words; empty if none would.
    """

    path: tuple[str, ...] = ()
    problem: str = ""


def nesting_of(graph: Graph[Any], plans: Mapping[str, Plan], most: int) -> Nesting:
    """Return how deep the nodes of a graph begin runs.

    Args:
        graph: what runs.
        plans: the agents of its runs.
        most: how deep agents may be below such a run.
    """
    path, within = tuple[str, ...](), ""
    for name in agents_named(graph.nodes.values()) if plans else ():
        if name in plans:
            below = plans[name].opener.nesting
            path, within = max(path, (name, *below.path), key=len), within or below.problem
    if len(path) > most:
        within = f"graph {graph.name!r}: {deeper([path[most]], most, len(path))}"
    return Nesting(path, within)
