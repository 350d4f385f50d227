"""check: decide what can be decided about a graph before it runs.

Walks the table that the engine executes, so a proof is about what runs. All proofs run, and all
findings are reported at once; what cannot be decided is unknown, with its reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, TypeVar

from ..graph import Graph
from ..spending import Budget
from ..temporal import Rules, rules_of
from ..temporal_names import names_of, resolve
from .agreement import disagreements
from .answers import misanswered
from .calls import CallWalk
from .children import quarrels
from .cycles import circling
from .data import misread
from .gates import ungated
from .ground import Ground
from .parks import parked_after_effects
from .ranking import Ranking
from .reachability import traps, unreachable
from .report import Finding, Report, Unknown
from .serialisable import unwritable
from .suppression import Ignore, set_aside
from .temporal import temporal

__all__ = ["check"]

S = TypeVar("S")

NEST_MAX: Final = 16
"""How many graphs deep children are proven."""

NO_RULES: Final = Unknown("GL12", "no rules are given: pass them with `rules`.")


def check(
    graph: Graph[S],
    rules: Rules | Iterable[Rules] = (),
    *,
    ignore: Ignore | None = None,
    budget: Budget | None = None,
) -> Report:
    """Return what is proven about `graph`, and a shortest witness for what does not hold.

    Args:
        graph: the graph; the graphs of its children, as far as they are known, are proven too.
        rules: temporal rules of your own (`graphloop.temporal`), beside the graph's.
        ignore: why findings are set aside, by node and code: `{("node", "GL6"): "reason"}`. A
            node of a child is `child/node`; an empty name is the graph as a whole.
        budget: what a run may spend, for what its children claim.

    Raises:
        ConfigError: a rule has a word that means nothing in this graph.
    """
    found = list(_proofs(graph, budget, 0))
    given = graph.rules & rules_of(rules)
    if len(given):
        wrong, open_ = temporal(Ground(graph), resolve(given, names_of(graph)))
        found += [*wrong, *open_]
    else:
        found.append(NO_RULES)
    findings, aside = set_aside([one for one in found if isinstance(one, Finding)], ignore or {})
    unknown = [one for one in found if isinstance(one, Unknown)]
    return Report.of(graph.name, findings, unknown, aside)


def _proofs(graph: Graph[S], budget: Budget | None, depth: int) -> Iterator[Finding | Unknown]:
    ground = Ground(graph)
    yield from disagreements(ground)
    yield from unreachable(ground)
    yield from traps(ground)
    if not ground.reached:
        return
    walk = CallWalk(ground)
    yield from ungated(walk)
    yield from misanswered(walk)
    for code in ("GL2", "GL3"):
        yield from ground.unpromised(code)
    yield from circling(Ranking(ground), walk)
    yield from misread(ground)
    yield from quarrels(ground, budget)
    yield from parked_after_effects(ground)
    yield from unwritable(ground)
    for contract in ground.contracts.values():
        for child in () if contract is None else contract.children:
            if child.graph is not None and depth < NEST_MAX:
                inner = _proofs(child.graph, child.budget or budget, depth + 1)
                yield from (_under(child.name, one) for one in inner)


def _under(child: str, found: Finding | Unknown) -> Finding | Unknown:
    """Return what was found of a child, as something about its parent."""
    if isinstance(found, Unknown):
        return Unknown(found.code, f"in the child {child!r}: {found.reason}")
    node = f"{child}/{found.node}" if found.node else child
    return replace(found, node=node, place=f"{found.place} of the child {child!r}")
