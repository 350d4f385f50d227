"""How deep runs stand within runs: tables and tools say so before any begins.

A node that would go too deep is refused. Calls of models may go deeper, for each is answered; but
not where the caller has chosen no depth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from ..allowance import deeper
from ..errors import ConfigError
from ..graph import Graph
from .carried import agents_named
from .child import Plan

__all__ = ["DEPTH_MAX", "Nesting", "nesting_of"]

DEPTH_MAX: Final = 2
"""How deep agents may be below a run of which the caller does not say it."""


@final
@dataclass(frozen=True)
class Nesting:
    """How deep a graph's nodes begin runs.

    Attributes:
        path: the agents of one of the deepest ways, outermost first.
        problem: why a run would go too deep, in words; empty if none would.
        called: the agents of one of the deepest ways by nodes and by calls, outermost first.
    """

    path: tuple[str, ...] = ()
    problem: str = ""
    called: tuple[str, ...] = ()


def nesting_of(graph: Graph[Any], plans: Mapping[str, Plan], given: int | None) -> Nesting:
    """Return how deep the nodes of a graph begin runs.

    Args:
        graph: what runs.
        plans: the agents of its runs.
        given: how deep agents may be below such a run; None if the caller has not chosen.

    Raises:
        ConfigError: models could never call some agent, at a depth that the caller has not chosen.
    """
    most = DEPTH_MAX if given is None else given
    path, within = tuple[str, ...](), ""
    for name in agents_named(graph.nodes.values()) if plans else ():
        if name in plans:
            below = plans[name].opener.nesting
            path, within = max(path, (name, *below.path), key=len), within or below.problem
    if len(path) > most:
        within = f"graph {graph.name!r}: {deeper([path[most]], most, len(path))}"
    ways = [(name, *plan.opener.nesting.called) for name, plan in plans.items()]
    called = max(ways, key=len, default=tuple[str, ...]())
    if given is None and (deep := len(called)) > most >= len(path):
        raise ConfigError(
            f"agents {' > '.join(map(repr, called))} are {deep} deep, so no model can call "
            f"{called[most]!r}. Fix: max_agent_depth={deep}, or max_agent_depth={most} if meant"
        )
    return Nesting(path, within, called[:most])
