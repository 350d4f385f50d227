"""Checking: `check`, which proves or refutes the properties of a graph before it runs.

All proofs use the transition table that the engine executes, and one report has all findings. A
property that cannot be decided is reported as unknown, with the reason.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from ..errors import ConfigError
from ..graph import NodeGraph, names_of
from ..policy import Named
from ..rules import Rules, resolve_words, rules_of
from ..spending import Budget
from .calls import CallProduct
from .children import find_child_conflicts
from .gates import find_idle_rules
from .lone_graph import prove
from .nested import GraphUse, graph_uses, unknown_children
from .proof_graph import ProofGraph
from .report import (
    Finding,
    Ignore,
    PicturedGraphs,
    Report,
    Unknown,
    claims,
    cycles_set_aside,
    suppress,
)
from .temporal import temporal
from .visits import VisitBounds

__all__ = ["check"]

S = TypeVar("S")


def check(
    graph: NodeGraph[S],
    rules: Rules | Iterable[Rules] = (),
    *,
    ignore: Ignore | None = None,
    budget: Budget | None = None,
    tools: Iterable[str | Named] = (),
) -> Report:
    """Return a report of the proven properties of `graph`, and of each fault with a witness path.

    Args:
        graph: the graph; the known graphs of its children are checked too.
        rules: temporal rules (`graphloop.rules`) in addition to the graph's own rules.
        ignore: reasons for suppressing findings, by node and code: `{("node", "GL6"): "reason"}`,
            in addition to the graph's own. The name of a child's node is `child/node`, of a whole
            child `child/`, and of the whole graph the empty string.
        budget: the budget of a run; the budgets of children are compared with it.
        tools: the tools that runs may call, or their names, if the graph does not list its tools.
            Tool names in rules are then checked against these.

    Raises:
        ConfigError: a word of a rule names nothing in this graph, or `tools` is a single text.
    """
    asked = dict(ignore or {})
    uses = graph_uses(graph, budget, asked)
    ignored = {
        (f"{use.prefix}{node}", code): why
        for use in uses.reported
        for (node, code), why in use.graph.ignore.items()
    } | asked
    graphs: dict[Hashable, ProofGraph[Any]] = {}
    for use in uses.reported:
        if use.graph_key not in graphs:
            graphs[use.graph_key] = ProofGraph(use.graph)
    outermost = graphs[uses.reported[0].graph_key]
    known = _tool_names(tools)
    kept = _rules_by_use(uses.reported, rules_of(rules), known)
    results: list[Finding | Unknown] = []
    if known:
        results += find_idle_rules(CallProduct(outermost), known)
    results += _results_of_uses(uses.reported, graphs, kept, cycles_set_aside(ignored))
    if uses.beyond:
        reason = (
            f"graph {uses.beyond.graph.name!r} is run in more places than are looked at, with "
            "other gates, budgets or rules: check what runs it by itself."
        )
        results += [Unknown("GL9", reason), Unknown("GL12", reason)]
    if not any(kept):
        results.append(Unknown("GL12", "no rules are given: pass them with `rules`."))
    results = [claims(result, ignored) for result in results]
    prefixes = None if uses.complete else {use.prefix for use in uses.reported}
    findings = [result for result in results if isinstance(result, Finding)]
    counted, suppressed = suppress(findings, ignored, prefixes)
    unknown = [result for result in results if isinstance(result, Unknown)]
    faults = map(outermost.with_line, counted)
    return Report.of(graph.name, faults, unknown, suppressed, PicturedGraphs(graph))


def _tool_names(given: Iterable[str | Named]) -> tuple[str, ...]:
    """Return the names of tools that are given as objects or as names."""
    if isinstance(given, str):  # A type checker accepts a text: it is an iterable of letters.
        raise ConfigError(
            f"check: `tools`: expected tools or their names, found {given!r:.80}. Fix: tools=[...]"
        )
    return tuple(tool if isinstance(tool, str) else tool.name for tool in given)


def _rules_by_use(uses: Iterable[GraphUse], asked: Rules, tools: tuple[str, ...]) -> list[Rules]:
    """Return the resolved temporal rules of each use of a graph, in order.

    Args:
        uses: the checked graph first, then the graphs of its children.
        asked: the `rules` argument of `check`; these apply to the checked graph only.
        tools: the `tools` argument of `check`, as names.

    Raises:
        ConfigError: a word of a rule names nothing in its graph.
    """
    return [
        resolve_words(use.rules, names_of(use.graph, None))
        if use.path
        else resolve_words(use.rules & asked, names_of(use.graph, tools or None))
        for use in uses
    ]


def _results_of_uses(
    uses: Iterable[GraphUse],
    graphs: Mapping[Hashable, ProofGraph[Any]],
    kept: Iterable[Rules],
    aside: frozenset[str],
) -> Iterator[Finding | Unknown]:
    """Yield the findings and unknowns of each use of a graph; each graph is proven only once.

    Args:
        uses: the uses: each a graph, and the child names that lead to it.
        graphs: the graphs, by `graph_key` of a use.
        kept: the temporal rules of each use.
        aside: the nodes whose unbounded cycles (GL4) are suppressed.
    """
    known: dict[Hashable, list[Finding | Unknown]] = {}
    visits: dict[Hashable, VisitBounds[Any]] = {}
    for use, rules in zip(uses, kept, strict=True):
        key, rule_key = use.graph_key, (use.graph_key, rules.rules)
        graph = graphs[key]
        if key not in known:
            visits[key] = VisitBounds(graph)
            known[key] = list(prove(visits[key], aside))
        if use.child_key not in known:
            known[use.child_key] = list(find_child_conflicts(graph, use.budget, use.gates))
        if rule_key not in known:
            known[rule_key] = [*map(graph.with_line, temporal(graph, rules, visits[key]))]
        results = *known[key], *known[use.child_key], *unknown_children(use), *known[rule_key]
        yield from map(use.in_outermost, results)
