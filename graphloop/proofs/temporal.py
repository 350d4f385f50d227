"""Temporal: rules that hold, break, or need the monitor (GL12).

The automaton of each rule is walked beside the graph. Nodes and outcomes are in the table, so what
they do to a rule is certain. Which tools a model calls is not: at a gate, at a node that runs
tools, and at one that promises nothing, any tools may run and any approvals be given, or none. A
rule that holds whatever runs there, and whatever a conversation that is handed in says has run
before, is proven; one that is broken though nothing runs is violated, with the shortest way to show
it; of any other, only the monitor can keep the run to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, TypeAlias, TypeVar, final

from ..graph import NodeGraph
from ..rules import Followed, Rules, TemporalRule, automaton_of, describe_rule, to_be_brought
from .proof_graph import ProofGraph, TablePath
from .report import Finding, Unknown
from .rule_walk import RuleProduct
from .run_search import Exclusions
from .visits import VisitBounds

__all__ = ["LINES_MAX", "RULES", "RuleDecision", "Status", "decided", "rules_given", "temporal"]

S = TypeVar("S")

RULES: Final = "rules"
"""The option of a graph's runs that holds their rules."""

LINES_MAX: Final = 200_000
"""How many lines are walked for all rules together; then a search proves nothing, and says so.

Each bound that is counted along counts as a line more.
"""

LINES_MIN: Final = 20_000
"""How many lines are walked for one rule, however many there are."""

_DENIES: Final = "Only the monitor can decide; it denies such a call."
_TELLS: Final = "Only the monitor can decide; it tells, for no gate can stop that."

Status: TypeAlias = Literal["proven", "violated", "unknown"]


@final
@dataclass(frozen=True, slots=True)
class RuleDecision:
    """The verdict on a rule before a run.

    Attributes:
        rule: the rule.
        status: whether it holds, can be broken, or neither is known.
        walked: a shortest way that breaks it, or may do so; empty where it is proven.
        node: where that ends; empty where it is proven.
        reason: why nothing is known; empty otherwise.
    """

    rule: TemporalRule
    status: Status
    path: TablePath = ()
    node: str = ""
    reason: str = ""


def rules_given(graph: NodeGraph[S]) -> Rules:
    """Return the temporal rules of a graph, and those that its runs are given."""
    given = graph.run_options.get(RULES)
    return graph.rules & given if isinstance(given, Rules) else graph.rules


def temporal(
    ground: ProofGraph[S], rules: Rules, most: VisitBounds[S] | None = None
) -> tuple[tuple[Finding, ...], tuple[Unknown, ...]]:
    """Return the findings about rules that can be broken, and what only the monitor can decide."""
    told: list[Finding | Unknown] = []
    products = _products(ground, rules)
    visits = VisitBounds(ground) if most is None else most
    for product in products:
        one = _decided(product, visits)
        if one.status == "violated":
            told.append(
                ground.confirmed(partial(_broken, product, one), partial(_told, ground, one.rule))
            )
        elif one.status == "unknown":
            reason = f"{one.reason}{to_be_brought(one.rule, ground.node_graph.tool_names or ())}"
            told.append(Unknown("GL12", f"rule {describe_rule(one.rule)!r}: {reason}"))
    findings = tuple([one for one in told if isinstance(one, Finding)])
    return findings, tuple([one for one in told if isinstance(one, Unknown)])


def _broken(
    product: RuleProduct[S], decision: RuleDecision, barred: Exclusions
) -> TablePath | None:
    """Return a shortest way that breaks a rule without what is barred."""
    if not barred:
        return decision.path
    found = product.without(barred)
    return None if found.breach is None else found.path


def _told(ground: ProofGraph[S], rule: TemporalRule, path: TablePath) -> Finding:
    node = path[-1].target if path else ground.start
    return ground.finding(
        "GL12",
        f"the rule {describe_rule(rule)!r} can be broken.",
        f"lead every way to {node!r} so that the rule holds, or change the rule.",
        node=node if node in ground.nodes else "",
        path=path,
        place=f"node {node!r}",
    )


def decided(
    ground: ProofGraph[S], rules: Rules, most: VisitBounds[S] | None = None
) -> tuple[RuleDecision, ...]:
    """Return what can be said of each rule, whose words have been looked up.

    Raises:
        ConfigError: a word has not been looked up (`names.resolve`).
    """
    visits = VisitBounds(ground) if most is None else most
    return tuple([_decided(product, visits) for product in _products(ground, rules)])


def _products(ground: ProofGraph[S], rules: Rules) -> Iterator[RuleProduct[S]]:
    """Yield the graph with each rule, which share the lines that may be walked."""
    lines = max(LINES_MIN, LINES_MAX // max(1, len(rules)))
    return (RuleProduct(ground, automaton_of(rule), lines) for rule in rules)


def _decided(product: RuleProduct[S], most: VisitBounds[S]) -> RuleDecision:
    """Decide a rule: first by what is known of visits, then by walking."""
    rule = product.automaton.rule
    certain = product.repeated()
    if certain is None and most.keeps(rule):
        return RuleDecision(rule, "proven")
    certain = certain or product.walk(tools=False)
    if certain.breach is not None:
        return RuleDecision(rule, "violated", certain.path, certain.breach)
    loose, handed_in = product.walk(tools=True), False
    if loose.holds:
        begun = product.unseen.before_the_run() - {product.automaton.start}
        loose, handed_in = product.walk(tools=True, begun=begun), True
    if loose.holds:
        return RuleDecision(rule, "proven")
    if loose.breach is None or certain.cut:
        reason = "there are too many places to look at. The monitor watches the rule."
        return RuleDecision(rule, "unknown", loose.path, loose.breach or "", reason)
    reason = _reason(rule, loose.breach, handed_in=handed_in)
    return RuleDecision(rule, "unknown", loose.path, loose.breach, reason)


def _reason(rule: TemporalRule, node: str, *, handed_in: bool) -> str:
    """Return why only the monitor can decide, and what it does about it."""
    unseen = "which tools run is not in the graph"
    if isinstance(rule, Followed):
        ends = f"{unseen}: the run may end at {node!r} while it is owed."
        if handed_in:
            ends = (
                "a conversation that is handed in may owe it, and the run may end at "
                f"{node!r} without."
            )
        return f"{ends} {_TELLS}"
    match rule.what.partition(":")[0]:
        case "tool":
            return f"{unseen}: at {node!r} one may run that breaks it. {_DENIES}"
        case "approval":
            return f"{unseen}: at {node!r} one may be approved that breaks it. {_DENIES}"
        case _:
            return f"{unseen}, and the rule hangs on them at {node!r}. {_TELLS}"
