"""Children: parallel writes, joins, gates and budgets of child runs (GL7-GL9).

At run time, a parent waits for a parked child, its gates apply to its children, and a child spends
only the parent's remaining budget. Three properties are proven before the run. Parallel children
write different fields (GL7). A join requires at most as many runs as the node starts (GL8). No node
gives a child a weaker gate or a larger budget than its parent's (GL9).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Final, TypeVar

from ..contract import ChildContract, Contract
from ..policy import Rule, decide
from ..spending import Budget
from ..states import reduced_fields
from .nested import gate_rules
from .proof_graph import ProofGraph, quote_names
from .report import Finding, Unknown

__all__ = ["STRICTNESS", "WILDCARDS", "find_child_conflicts", "sample_tools"]

S = TypeVar("S")

STRICTNESS: Final = {"allow": 0, "ask": 1, "deny": 2}
WILDCARDS: Final = frozenset("*?[")
LIMITS: Final = ("tokens", "usd", "seconds", "tool_calls", "agent_calls")
ANY_TOOL: Final = "any other tool"


def find_child_conflicts(
    graph: ProofGraph[S], budget: Budget | None, gates: Iterable[tuple[Rule, ...]] = ()
) -> Iterator[Finding | Unknown]:
    """Yield findings and unknowns about conflicts of children and their parent (GL7-GL9).

    Args:
        graph: the graph of the parent.
        budget: the budget of the parent; None if unknown.
        gates: the gate rules of the parent's ancestors, which also apply to the parent's runs.
    """
    for code in ("GL7", "GL8", "GL9"):
        yield from graph.unknown_without_contracts(code)
    own = gate_rules([graph.nodes[name] for name in graph.reached])
    rules = tuple(dict.fromkeys((*own, *gates)))
    reduced = reduced_fields(getattr(graph.node_graph, "state_type", None))
    for name in graph.reached:
        contract = graph.contracts[name]
        if contract is None:
            continue
        yield from _parallel_writes(graph, name, contract, reduced)
        for child in contract.children:
            for code, message, fix in (*_starving_join(child), *_budget_claims(child, budget)):
                yield graph.finding(code, message, fix, node=name, path=graph.run_to(name))
            yield from _gate_claims(graph, name, child, rules)


def _parallel_writes(
    graph: ProofGraph[S], name: str, contract: Contract, reduced: frozenset[str]
) -> Iterator[Finding | Unknown]:
    """Yield a finding for each field that parallel children of one node may both write (GL7).

    Fields with a reducer (`reduced`) are left out: the results are combined in branch order.
    """
    parallel = [child for child in contract.children if child.many]
    silent = tuple(child.name for child in parallel if child.writes is None)
    if silent:
        reason = f"the fields that {quote_names(silent)} of {name!r} write are not known."
        yield Unknown("GL7", reason)
    writers: dict[str, list[str]] = {}
    for child in parallel:
        for field in sorted((child.writes or frozenset()) - reduced):
            # A child with several runs counts twice: its own runs write side by side.
            writers.setdefault(field, []).extend([child.name] * (2 if child.runs != 1 else 1))
    for field, names in writers.items():
        if len(names) == 1:
            continue
        words = quote_names(tuple(dict.fromkeys(names)))
        yield graph.finding(
            "GL7",
            f"{words} may write {field!r} of the state side by side.",
            f"declare a reducer for {field!r} (`Annotated[…, reduce(…)]`), or let only one child "
            "write it.",
            node=name,
            path=graph.run_to(name),
        )


def _starving_join(child: ChildContract) -> Iterator[tuple[str, str, str]]:
    """Yield code, message and fix if a join needs more runs than the node starts (GL8)."""
    if child.runs is not None and child.needs > child.runs:
        message = f"waits for {child.needs} runs of {child.name!r}, and starts {child.runs}."
        yield "GL8", message, f"wait for {child.runs} at most."


def _budget_claims(child: ChildContract, budget: Budget | None) -> Iterator[tuple[str, str, str]]:
    """Yield code, message and fix for each limit above the parent's `budget` (GL9)."""
    for limit in LIMITS if child.budget and budget else ():
        own, parents = getattr(child.budget, limit), getattr(budget, limit)
        if own is not None and parents is not None and own > parents:
            yield (
                "GL9",
                f"the child {child.name!r} may spend {own:,} {limit}, its parent {parents:,}.",
                f"give the child a budget of at most {parents:,} {limit}.",
            )


def _gate_claims(
    graph: ProofGraph[S], name: str, child: ChildContract, parents: tuple[tuple[Rule, ...], ...]
) -> Iterator[Finding | Unknown]:
    """Yield a finding if a child's gate decides a tool less strictly than a gate above it (GL9)."""
    own = child.gate_rules
    for rules in parents if own is not None else ():
        if own is None or own == rules:
            continue
        both = (*own, *rules)
        if any(rule.condition for rule in both):
            yield Unknown(
                "GL9",
                f"the gates of {child.name!r} and of its parent ask functions, which cannot be "
                "compared.",
            )
            continue
        verdicts = [
            (tool, decide(own, tool, ()).verdict, decide(rules, tool, ()).verdict)
            for tool in sample_tools((*rules, *own))
        ]
        looser = [entry for entry in verdicts if STRICTNESS[entry[1]] < STRICTNESS[entry[2]]]
        patterns = [tool for rule in both for tool in rule.tools if tool != "*"]
        if looser:
            tool, verdict, verdict_above = looser[0]
            yield graph.finding(
                "GL9",
                f"the gate of the child {child.name!r} would {verdict} {tool!r}, that of its "
                f"parent would {verdict_above}.",
                "let the child's gate be as strict as its parent's, or give it none.",
                node=name,
                path=graph.run_to(name),
            )
        elif any(WILDCARDS & set(pattern) for pattern in patterns):
            yield Unknown(
                "GL9",
                f"the patterns of the gates of {child.name!r} and of its parent may overlap in "
                "ways that are not compared.",
            )


def sample_tools(rules: tuple[Rule, ...]) -> tuple[str, ...]:
    """Return sample tool names for gate rules.

    The names are those in the rules, one that matches each pattern, one that matches both of two
    patterns, and one that no rule names.
    """
    patterns = dict.fromkeys(tool for rule in rules for tool in rule.tools)
    tools = [pattern for pattern in patterns if not WILDCARDS & set(pattern)]
    tools += [
        pattern.replace("*", "x").replace("?", "x") for pattern in patterns if "[" not in pattern
    ]
    starred = [pattern for pattern in patterns if "*" in pattern]
    tools += [a.replace("*", b.replace("*", "x")) for a, b in product(starred, repeat=2)]
    return (*dict.fromkeys(tools), ANY_TOOL)
