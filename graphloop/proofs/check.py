"""check: decide what can be decided about a graph before it runs.

Walks the table that the engine executes, so a proof is about what runs. All proofs run, and all
findings are reported at once; what cannot be decided is unknown, with its reason.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Final, TypeVar

from ..graph import Graph
from ..spending import Budget
from ..temporal import Rules, rules_of
from ..temporal_names import names_of, resolve
from .agreement import disagreements
from .answers import misanswered
from .arguments import graph_given, reasons
from .calls import CallWalk
from .children import quarrels
from .cycles import circling
from .data import misread
from .gates import ungated
from .ground import Ground
from .nested import Nested, nested, nobody_knows
from .parks import parked_after_effects
from .ranking import Ranking
from .reachability import traps, unreachable
from .report import Finding, Report, Unknown
from .serialisable import unwritable
from .stretches import long_stretches
from .suppression import Ignore, aside_in, claimed, set_aside
from .temporal import temporal

__all__ = ["check"]

S = TypeVar("S")

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
        ignore: why findings are set aside, by node and code: `{("node", "GL6"): "reason"}`,
            beside what the graph says itself. A node of a child is `child/node`; an empty name is
            the graph as a whole.
        budget: what a run may spend, for what its children claim.

    Raises:
        ConfigError: a rule has a word that means nothing in this graph, or an argument is not what
            it should be.
    """
    graphs, asked = nested(graph_given("check", graph), budget), reasons(ignore)
    excuses = {
        (f"{one.prefix}{node}", code): why
        for one in graphs
        for (node, code), why in one.graph.ignore.items()
    } | asked
    found = [one for use in _proven(graphs, aside_in(excuses)) for one in use]
    given = graph.rules & rules_of(rules)
    if len(given):
        wrong, open_ = temporal(Ground(graph), resolve(given, names_of(graph)))
        found += [*wrong, *open_]
    else:
        found.append(NO_RULES)
    found = [claimed(one, excuses) for one in found]
    findings, aside = set_aside([one for one in found if isinstance(one, Finding)], excuses)
    unknown = [one for one in found if isinstance(one, Unknown)]
    return Report.of(graph.name, findings, unknown, aside)


def _proven(graphs: Iterable[Nested], aside: frozenset[str]) -> Iterator[list[Finding | Unknown]]:
    """Yield what is found of each use of a graph; each graph is proven once."""
    known: dict[Hashable, list[Finding | Unknown]] = {}
    for one in graphs:
        if one.key not in known:
            known[one.key] = list(_proofs(one.graph, one.budget, aside))
        yield [*map(one.told, known[one.key]), *map(one.told, nobody_knows(one))]


def _proofs(
    graph: Graph[S], budget: Budget | None, aside: frozenset[str]
) -> Iterator[Finding | Unknown]:
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
    ranking = Ranking(ground)
    yield from circling(ranking, walk, aside)
    yield from long_stretches(ranking)
    yield from misread(ground)
    yield from quarrels(ground, budget)
    yield from parked_after_effects(ground)
    yield from unwritable(ground)
