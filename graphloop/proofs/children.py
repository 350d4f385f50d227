"""Children: side by side, joined, and no freer than their parent (GL7-GL9).

The kernel keeps three promises: a parent waits with a parked child, the gates of a run hold in its
children, and a child spends what its parent has remaining. So two things remain to be proven: a
join asks for no more runs than there are, and no node gives a child more than its parent has. The
options of an agent are for runs of its own as well, and claim nothing of its parent's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from ..contract import ChildContract, Contract
from ..policy import Rule, decide
from ..spending import Budget
from .nested import gate_rules
from .proof_graph import ProofGraph, quote_names
from .report import Finding, Unknown

__all__ = ["WILDCARDS", "find_child_conflicts", "tools_of", "weaker"]

S = TypeVar("S")

STRICTNESS: Final = {"allow": 0, "ask": 1, "deny": 2}
WILDCARDS: Final = frozenset("*?[")
LIMITS: Final = ("tokens", "usd", "seconds", "tool_calls", "agent_calls")
ANY_TOOL: Final = "any other tool"


def find_child_conflicts(
    ground: ProofGraph[S], budget: Budget | None, gates: Iterable[tuple[Rule, ...]] = ()
) -> Iterator[Finding | Unknown]:
    """Yield where children get in each other's way, or may do more than their parent.

    Args:
        ground: the parent.
        budget: what the parent may spend, if that is known.
        gates: the rules of the gates above the parent, which hold in its runs as well.
    """
    for code in ("GL7", "GL8", "GL9"):
        yield from ground.unknown_without_contracts(code)
    own = gate_rules([ground.nodes[name] for name in ground.reached])
    rules = tuple(dict.fromkeys((*own, *gates)))
    for name in ground.reached:
        contract = ground.contracts[name]
        if contract is None:
            continue
        yield from _writers(ground, name, contract)
        for child in contract.children:
            yield from _needs(ground, name, child)
            yield from _budget(ground, name, child, budget)
            yield from _gate(ground, name, child, rules)


def _writers(ground: ProofGraph[S], name: str, contract: Contract) -> Iterator[Finding | Unknown]:
    """GL7."""
    side_by_side = [one for one in contract.children if one.many]
    dark = tuple(one.name for one in side_by_side if one.writes is None)
    if dark:
        yield Unknown(
            "GL7",
            f"the fields that {quote_names(dark)} of {name!r} write are not known.",
        )
    writers: dict[str, list[str]] = {}
    for one in side_by_side:
        for field in sorted(one.writes or ()):
            writers.setdefault(field, []).append(one.name)
    for field, names in writers.items():
        yield ground.finding(
            "GL7",
            f"{quote_names(tuple(names))} may write {field!r} of the state side by side.",
            f"declare a reducer for {field!r}, or let only one child write it.",
            node=name,
            path=ground.run_to(name),
        )


def _needs(ground: ProofGraph[S], name: str, child: ChildContract) -> Iterator[Finding]:
    """GL8."""
    if child.runs is not None and child.needs > child.runs:
        yield ground.finding(
            "GL8",
            f"waits for {child.needs} runs of {child.name!r}, and starts {child.runs}.",
            f"wait for {child.runs} at most.",
            node=name,
            path=ground.run_to(name),
        )


def _budget(
    ground: ProofGraph[S], name: str, child: ChildContract, budget: Budget | None
) -> Iterator[Finding]:
    """GL9: what a child may spend."""
    if child.budget is None or budget is None:
        return
    for limit in LIMITS:
        own, above = getattr(child.budget, limit), getattr(budget, limit)
        if own is not None and above is not None and own > above:
            yield ground.finding(
                "GL9",
                f"the child {child.name!r} may spend {own:,} {limit}, its parent {above:,}.",
                f"give the child a budget of at most {above:,} {limit}.",
                node=name,
                path=ground.run_to(name),
            )


def _gate(
    ground: ProofGraph[S], name: str, child: ChildContract, above: tuple[tuple[Rule, ...], ...]
) -> Iterator[Finding | Unknown]:
    """GL9: what a child may do."""
    own = child.gate_rules
    if own is None:
        return
    for rules in above:
        if own == rules:
            continue
        if any(rule.condition for rule in (*own, *rules)):
            yield Unknown(
                "GL9",
                f"the gates of {child.name!r} and of its parent ask functions, which cannot be "
                "compared.",
            )
            continue
        tool = weaker(own, rules)
        if tool is not None:
            verdicts = decide(own, tool, ()).verdict, decide(rules, tool, ()).verdict
            yield ground.finding(
                "GL9",
                f"the gate of the child {child.name!r} would {verdicts[0]} {tool!r}, that of its "
                f"parent would {verdicts[1]}.",
                "let the child's gate be as strict as its parent's, or give it none.",
                node=name,
                path=ground.run_to(name),
            )
        elif any(
            WILDCARDS & set(one) and one != "*" for rule in (*own, *rules) for one in rule.tools
        ):
            yield Unknown(
                "GL9",
                f"the patterns of the gates of {child.name!r} and of its parent may overlap in "
                "ways that are not compared.",
            )


def weaker(own: tuple[Rule, ...], above: tuple[Rule, ...]) -> str | None:
    """Return a tool that the child's gate treats more kindly than its parent's, if one is found."""
    for tool in tools_of((*above, *own)):
        mine, theirs = decide(own, tool, ()).verdict, decide(above, tool, ()).verdict
        if STRICTNESS[mine] < STRICTNESS[theirs]:
            return tool
    return None


def tools_of(rules: tuple[Rule, ...]) -> tuple[str, ...]:
    """Return a tool for each name and each pattern of rules, and one that no name is meant for."""
    patterns = dict.fromkeys(one for rule in rules for one in rule.tools)
    tools = [one for one in patterns if not WILDCARDS & set(one)]
    tools += [one.replace("*", "x").replace("?", "x") for one in patterns if "[" not in one]
    return (*dict.fromkeys(tools), ANY_TOOL)
