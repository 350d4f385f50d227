"""Temporal: decides each temporal rule before a run (GL12).

The proof searches the product graph of the graph and the rule's automaton. The table shows nodes
and outcomes, but no tool calls. Any tool calls and approvals, or none, may happen at a gate, at a
node that runs tools, and at a node without a contract. A rule is violated if a path breaks it
without any tool call. A rule is proven if no path breaks it, whatever tools run there, or ran
before a conversation that is handed to the run. Every other rule is unknown, and only the monitor
of a run can decide it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar, final

from ..graph import NodeGraph
from ..rules import Followed, Rules, TemporalRule, automaton_of, describe_rule, to_be_brought
from .proof_graph import ProofGraph, TablePath
from .report import Finding, Unknown
from .rule_product import RuleProduct
from .run_search import Exclusions
from .visits import VisitBounds

__all__ = ["ARCS_MAX", "RULES", "RuleDecision", "Status", "decided", "rules_given", "temporal"]

S = TypeVar("S")

RULES: Final = "rules"
"""The key in `surroundings.options` of a graph under which its own rules are stored."""

ARCS_MAX: Final = 200_000
"""The most transitions to search for all rules together; beyond these, a rule stays unknown.

A transition counts once more for each cap (limit on an outcome) that the search tracks.
"""

ARCS_MIN: Final = 20_000
"""The fewest transitions to allow for each rule, even if there are many rules."""

DENIES: Final = "Only the monitor can decide; it denies such a call."
TELLS: Final = "Only the monitor can decide; it tells, for no gate can stop that."

Status: TypeAlias = Literal["proven", "violated", "unknown"]


@final
@dataclass(frozen=True, slots=True)
class RuleDecision:
    """Whether a temporal rule is proven, violated or unknown before a run.

    Attributes:
        rule: the rule.
        status: whether the rule always holds, can be violated, or is undecided.
        path: a shortest path that violates the rule, or may violate it; empty for a proven rule.
        node: the last node of the path; empty for a proven rule.
        reason: why the rule is undecided; empty for a proven or violated rule.
    """

    rule: TemporalRule
    status: Status
    path: TablePath = ()
    node: str = ""
    reason: str = ""


def rules_given(graph: NodeGraph[S]) -> Rules:
    """Return a graph's temporal rules together with the rules in its run options."""
    given = graph.surroundings.options.get(RULES)
    return graph.rules & given if isinstance(given, Rules) else graph.rules


def temporal(
    graph: ProofGraph[S], rules: Rules, visits: VisitBounds[S] | None = None
) -> Iterator[Finding | Unknown]:
    """Yield a finding for each rule that can be violated, and an unknown for undecided rules."""
    for product, decision in _decide_rules(graph, rules, visits):
        rule = decision.rule
        if decision.status == "unknown":
            known = graph.node_graph.surroundings.tool_names or ()
            reason = f"{decision.reason}{to_be_brought(rule, known)}"
            yield Unknown("GL12", f"rule {describe_rule(rule)!r}: {reason}")
        elif decision.status == "violated":

            def path_without(
                excluded: Exclusions,
                product: RuleProduct[S] = product,
                known: TablePath = decision.path,
            ) -> TablePath | None:
                if not excluded:
                    return known
                result = product.without(excluded)
                return None if result.breach is None else result.path

            def finding_of(path: TablePath, rule: TemporalRule = rule) -> Finding:
                node = path[-1].target if path else graph.start
                return graph.finding(
                    "GL12",
                    f"the rule {describe_rule(rule)!r} can be broken.",
                    f"lead every way to {node!r} so that the rule holds, or change the rule.",
                    node=node if node in graph.nodes else "",
                    path=path,
                    place=f"node {node!r}",
                )

            yield graph.confirmed(path_without, finding_of)


def decided(
    graph: ProofGraph[S], rules: Rules, visits: VisitBounds[S] | None = None
) -> tuple[RuleDecision, ...]:
    """Return a decision on each temporal rule: proven, violated or unknown.

    Raises:
        ConfigError: a word of a rule was not resolved with `resolve_words`.
    """
    return tuple(decision for _, decision in _decide_rules(graph, rules, visits))


def _decide_rules(
    graph: ProofGraph[S], rules: Rules, visits: VisitBounds[S] | None
) -> Iterator[tuple[RuleProduct[S], RuleDecision]]:
    """Yield each rule's product graph and decision."""
    arcs = max(ARCS_MIN, ARCS_MAX // max(1, len(rules)))
    bounds = VisitBounds(graph) if visits is None else visits
    for rule in rules:
        product = RuleProduct(graph, automaton_of(rule), arcs)
        yield product, _decide_rule(product, bounds)


def _decide_rule(product: RuleProduct[S], visits: VisitBounds[S]) -> RuleDecision:
    """Return the decision on a rule, by upper bounds of visits if they suffice, else by search."""
    rule = product.automaton.rule
    certain = product.repeated()
    if certain is None and visits.keeps(rule):
        return RuleDecision(rule, "proven")
    certain = certain or product.search(tools=False)
    if certain.breach is not None:
        return RuleDecision(rule, "violated", certain.path, certain.breach)
    possible, handed_in = product.search(tools=True), False
    if possible.holds:
        first = product.hidden.before_the_run() - {product.automaton.start}
        possible, handed_in = product.search(tools=True, first=first), True
    if possible.holds:
        return RuleDecision(rule, "proven")
    if possible.breach is None or certain.cut:
        reason = "there are too many places to look at. The monitor watches the rule."
    else:
        reason = _why_monitored(rule, possible.breach, handed_in=handed_in)
    return RuleDecision(rule, "unknown", possible.path, possible.breach or "", reason)


def _why_monitored(rule: TemporalRule, node: str, *, handed_in: bool) -> str:
    """Return, as text, why only the monitor can decide a rule, and how the monitor reacts."""
    hidden = "which tools run is not in the graph"
    if isinstance(rule, Followed) and handed_in:
        return (
            "a conversation that is handed in may owe it, and the run may end at "
            f"{node!r} without. {TELLS}"
        )
    if isinstance(rule, Followed):
        return f"{hidden}: the run may end at {node!r} while it is owed. {TELLS}"
    match rule.what.partition(":")[0]:
        case "tool":
            return f"{hidden}: at {node!r} one may run that breaks it. {DENIES}"
        case "approval":
            return f"{hidden}: at {node!r} one may be approved that breaks it. {DENIES}"
        case _:
            return f"{hidden}, and the rule hangs on them at {node!r}. {TELLS}"
