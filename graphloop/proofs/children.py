"""GL7, GL8 and GL9: children that run side by side, joins, and what children may do.

That a parked child does not starve its join is the kernel's doing: the parent waits with it, and
goes on when it is answered. What is left to prove is that a join asks for no more than there is.
That a child run is bound by its parents' gates and by what their budgets have left is the
kernel's doing as well; a node that gives a child more than that is found here. What an agent's own
options say is made for runs of its own, too, and claims nothing of its parent's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from ..contract import ChildContract, Contract
from ..policy import Rule, decide
from ..spending import Budget
from .ground import Ground, named
from .nested import gate_rules
from .report import Finding, Unknown

__all__ = ["WILDCARDS", "quarrels", "tools_of", "weaker"]

S = TypeVar("S")

STRICTNESS: Final = {"allow": 0, "ask": 1, "deny": 2}
WILDCARDS: Final = frozenset("*?[")
LIMITS: Final = ("tokens", "usd", "seconds", "tool_calls", "agent_calls")
ANY_TOOL: Final = "any other tool"


def quarrels(
    ground: Ground[S], budget: Budget | None, gates: Iterable[tuple[Rule, ...]] = ()
) -> Iterator[Finding | Unknown]:
    """Yield where children get in each other's way, or may do more than their parent.

    Args:
        ground: the parent.
        budget: what the parent may spend, if that is known.
        gates: the rules of the gates above the parent, which hold in its runs as well.
    """
    for code in ("GL7", "GL8", "GL9"):
        yield from ground.unpromised(code)
    own = gate_rules([ground.graph.nodes[name] for name in ground.reached])
    rules = tuple(dict.fromkeys((*own, *gates)))
    for name in ground.reached:
        contract = ground.contracts[name]
        if contract is None:
            continue
        yield from _writers(ground, name, contract)
        yield from _join(ground, name, contract)
        for child in contract.children:
            yield from _budget(ground, name, child, budget)
            yield from _gate(ground, name, child, rules)


def _writers(ground: Ground[S], name: str, contract: Contract) -> Iterator[Finding | Unknown]:
    """GL7."""
    if contract.join is None:
        return
    children = contract.children
    side_by_side = [one for one in children if len(children) > 1 or one.many]
    dark = tuple(one.name for one in side_by_side if one.writes is None)
    if dark:
        yield Unknown("GL7", f"nobody says what the children {named(dark)} of {name!r} write.")
    writers: dict[str, list[str]] = {}
    for one in side_by_side:
        for field in sorted(one.writes or ()):
            writers.setdefault(field, []).extend([one.name] * (2 if one.many else 1))
    for field, names in writers.items():
        if len(names) > 1 and field not in contract.reducers:
            yield ground.finding(
                "GL7",
                f"{named(tuple(dict.fromkeys(names)))} may write {field!r} of the state side by "
                "side.",
                f"declare a reducer for {field!r}, or let only one child write it.",
                node=name,
                walked=ground.run_to(name),
            )


def _join(ground: Ground[S], name: str, contract: Contract) -> Iterator[Finding]:
    """GL8."""
    if contract.join is None:
        return
    runs = [one.runs for one in contract.children]
    most = sum(one for one in runs if one is not None)
    needs = contract.needs or 0
    if None not in runs and needs > most:
        yield ground.finding(
            "GL8",
            f"waits for {needs} of its children, and there are {most}.",
            f"wait for {most} at most.",
            node=name,
            walked=ground.run_to(name),
        )


def _budget(
    ground: Ground[S], name: str, child: ChildContract, budget: Budget | None
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
                walked=ground.run_to(name),
            )


def _gate(
    ground: Ground[S], name: str, child: ChildContract, above: tuple[tuple[Rule, ...], ...]
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
                f"the gates of {child.name!r} and of its parent ask functions, which nobody can "
                "compare.",
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
                walked=ground.run_to(name),
            )
        elif any(
            WILDCARDS & set(one) and one != "*" for rule in (*own, *rules) for one in rule.tools
        ):
            yield Unknown(
                "GL9",
                f"the patterns of the gates of {child.name!r} and of its parent may overlap in "
                "ways that nobody has compared.",
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
