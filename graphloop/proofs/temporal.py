"""Temporal: decides each temporal rule before a run (GL12).

The product of the graph with the rule's automaton is searched twice. Nodes and outcomes are in the
table, so what they do to a rule is certain. Tools are not: at a gate, at a node that runs tools,
and at a node without a contract, any tools may run and any approvals be given, or none. A rule that
holds whatever runs there, and whatever ran before a handed-in conversation, is proven. A rule that
is violated although nothing runs is violated. Every other rule is unknown: only the monitor of a
run can decide it.
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
"""The key of a graph's own rules in its `run_options`."""

ARCS_MAX: Final = 200_000
"""The arcs that are searched for all rules together; a larger search proves nothing.

A counted bound costs as much as one more arc.
"""

ARCS_MIN: Final = 20_000
"""The arcs that are searched for each rule, however many rules there are."""

DENIES: Final = "Only the monitor can decide; it denies such a call."
TELLS: Final = "Only the monitor can decide; it tells, for no gate can stop that."

Status: TypeAlias = Literal["proven", "violated", "unknown"]


@final
@dataclass(frozen=True, slots=True)
class RuleDecision:
    """The verdict on a rule before a run.

    Attributes:
        rule: the rule.
        status: whether the rule holds, can be violated, or neither is known.
        path: a shortest path that violates the rule, or may; empty if the rule is proven.
        node: the last node of the path; empty if the rule is proven.
        reason: why the rule is unknown; empty otherwise.
    """

    rule: TemporalRule
    status: Status
    path: TablePath = ()
    node: str = ""
    reason: str = ""


def rules_given(graph: NodeGraph[S]) -> Rules:
    """Return the temporal rules of a graph, with those in its run options."""
    given = graph.run_options.get(RULES)
    return graph.rules & given if isinstance(given, Rules) else graph.rules


def temporal(
    graph: ProofGraph[S], rules: Rules, visits: VisitBounds[S] | None = None
) -> Iterator[Finding | Unknown]:
    """Yield a result for each rule that is not proven."""
    for product, decision in _decisions(graph, rules, visits):
        rule = decision.rule
        if decision.status == "unknown":
            reason = f"{decision.reason}{to_be_brought(rule, graph.node_graph.tool_names or ())}"
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
    """Return the verdict on each rule; the words of the rules must be resolved.

    Raises:
        ConfigError: a word is not resolved (`resolve_words`).
    """
    return tuple(decision for _, decision in _decisions(graph, rules, visits))


def _decisions(
    graph: ProofGraph[S], rules: Rules, visits: VisitBounds[S] | None
) -> Iterator[tuple[RuleProduct[S], RuleDecision]]:
    arcs = max(ARCS_MIN, ARCS_MAX // max(1, len(rules)))
    bounds = VisitBounds(graph) if visits is None else visits
    for rule in rules:
        product = RuleProduct(graph, automaton_of(rule), arcs)
        yield product, _decided(product, bounds)


def _decided(product: RuleProduct[S], visits: VisitBounds[S]) -> RuleDecision:
    """Decide a rule by the bounds on visits if they suffice, else by search."""
    rule = product.automaton.rule
    certain = product.repeated()
    if certain is None and visits.keeps(rule):
        return RuleDecision(rule, "proven")
    certain = certain or product.search(tools=False)
    if certain.breach is not None:
        return RuleDecision(rule, "violated", certain.path, certain.breach)
    possible, handed_in = product.search(tools=True), False
    if possible.holds:
        begun = product.hidden.before_the_run() - {product.automaton.start}
        possible, handed_in = product.search(tools=True, begun=begun), True
    if possible.holds:
        return RuleDecision(rule, "proven")
    if possible.breach is None or certain.cut:
        reason = "there are too many places to look at. The monitor watches the rule."
    else:
        reason = _reason(rule, possible.breach, handed_in=handed_in)
    return RuleDecision(rule, "unknown", possible.path, possible.breach or "", reason)


def _reason(rule: TemporalRule, node: str, *, handed_in: bool) -> str:
    """Return why only the monitor can decide a rule, and what the monitor does."""
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
