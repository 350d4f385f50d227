"""Checking: each property of a graph, decided before it runs.

Walks the table that the engine executes, so a proof is about what runs. All proofs run, and all
findings are reported at once; what cannot be decided is unknown, with its reason.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from ..graph import NodeGraph, names_of
from ..policy import Named
from ..rules import Rules, resolve_words, rules_of
from ..spending import Budget
from .arguments import graph_given, reasons, tool_names
from .calls import CallProduct
from .children import find_child_conflicts
from .gates import find_idle_rules
from .lone_graph import proven
from .nested import Nested, Uses, nested, unknown_children
from .proof_graph import ProofGraph
from .report import Finding, Ignore, Report, Unknown, aside_in, claims, set_aside
from .temporal import temporal
from .visits import VisitBounds

__all__ = ["check"]

S = TypeVar("S")

NO_RULES: Final = Unknown("GL12", "no rules are given: pass them with `rules`.")


def check(
    graph: NodeGraph[S],
    rules: Rules | Iterable[Rules] = (),
    *,
    ignore: Ignore | None = None,
    budget: Budget | None = None,
    tools: Iterable[str | Named] = (),
) -> Report:
    """Return what is proven about `graph`, and a shortest witness for what does not hold.

    Args:
        graph: the graph; the graphs of its children, as far as they are known, are proven too.
        rules: temporal rules of your own (`graphloop.rules`), beside the graph's.
        ignore: why findings are set aside, by node and code: `{("node", "GL6"): "reason"}`,
            beside what the graph says itself. A node of a child is `child/node`; an empty name is
            the graph as a whole, and `child/` a child as a whole.
        budget: what a run may spend, for what its children claim.
        tools: all tools, or their names, that its runs may call, if the graph does not know them:
            then the names in rules are looked up.

    Raises:
        ConfigError: a rule has a word that means nothing in this graph, or an argument is not what
            it should be.
    """
    asked = reasons(ignore)
    uses = nested(graph_given("check", graph), budget, asked)
    excuses = {
        (f"{one.prefix}{node}", code): why
        for one in uses.told
        for (node, code), why in one.graph.ignore.items()
    } | asked
    grounds = _grounds(uses.told)
    ground = grounds[uses.told[0].graph_key]
    known = tool_names("check: `tools`", tools)
    kept = _kept(uses.told, rules_of(rules), known)
    found: list[Finding | Unknown] = [*find_idle_rules(CallProduct(ground), known)] if known else []
    found += [one for use in _proven(uses.told, grounds, kept, aside_in(excuses)) for one in use]
    found += _untold(uses)
    if not any(kept):
        found.append(NO_RULES)
    found = [claims(one, excuses) for one in found]
    told = {one.prefix for one in uses.told} if uses.left_out else None
    findings, aside = set_aside([one for one in found if isinstance(one, Finding)], excuses, told)
    findings = tuple([ground.with_line(one) for one in findings])
    unknown = [one for one in found if isinstance(one, Unknown)]
    report = Report.of(graph.name, findings, unknown, aside)
    return replace(report, never_taken=ground.never_taken)


def _grounds(graphs: Iterable[Nested]) -> dict[Hashable, ProofGraph[Any]]:
    """Return each graph ready to be proven, once."""
    grounds: dict[Hashable, ProofGraph[Any]] = {}
    for one in graphs:
        if one.graph_key not in grounds:
            grounds[one.graph_key] = ProofGraph(one.graph)
    return grounds


def _kept(graphs: Iterable[Nested], asked: Rules, tools: tuple[str, ...]) -> list[Rules]:
    """Return the rules that each graph's runs keep; of the first, those that are asked about too.

    Raises:
        ConfigError: a word means nothing in its graph.
    """
    kept: list[Rules] = []
    for one in graphs:
        rules = one.rules if one.path else one.rules & asked
        known = tools if tools and not one.path else None
        kept.append(resolve_words(rules, names_of(one.graph, known)))
    return kept


def _proven(
    graphs: Iterable[Nested],
    grounds: Mapping[Hashable, ProofGraph[Any]],
    kept: Iterable[Rules],
    aside: frozenset[str],
) -> Iterator[list[Finding | Unknown]]:
    """Yield what is found of each use of a graph; each graph is proven once."""
    known: dict[Hashable, list[Finding | Unknown]] = {}
    most: dict[Hashable, VisitBounds[Any]] = {}
    for one, rules in zip(graphs, kept, strict=True):
        key, from_above = one.graph_key, one.bounds
        by_rules = key, rules.rules
        ground = grounds[key]
        if key not in known:
            most[key] = VisitBounds(ground)
            known[key] = list(proven(most[key], aside))
        if from_above not in known:
            known[from_above] = list(find_child_conflicts(ground, one.budget, one.gates))
        if by_rules not in known:
            wrong, open_ = temporal(ground, rules, most[key])
            known[by_rules] = [*map(ground.with_line, wrong), *open_]
        found = (*known[key], *known[from_above], *unknown_children(one), *known[by_rules])
        yield [*map(one.told, found)]


def _untold(uses: Uses) -> Iterator[Unknown]:
    """Yield what is not known of uses that are not looked at: of the first, as a sample."""
    bounds = {one.bounds for one in uses.told}
    ruled = {one.ruled for one in uses.told}
    held = [one for one in uses.beyond if one.bounds not in bounds]
    kept = [one for one in uses.beyond if one.ruled not in ruled]
    arcs = "by way of other gates or with other budgets"
    for code, untold, other in (("GL9", held, arcs), ("GL12", kept, "with other rules")):
        for one in untold[:1]:
            reason = (
                f"graph {one.graph.name!r} is run in more places than are looked at, {other}: "
                "check what runs it by itself."
            )
            yield Unknown(code, reason)
