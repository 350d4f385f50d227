"""given_changes: what is different about what the runs of two graphs are given beside the table.

Instructions, tools, a budget, how approvals are asked for, what of the checker is set aside: each
by its name, compared as the parameters of nodes are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeVar

from ..graph import Graph
from ..temporal import Rules
from .parameter_change import ParameterChange
from .parameter_changes import compared, option_changes

__all__ = ["given_changes", "rules_given"]

S = TypeVar("S")

RULES: Final = "rules"


def rules_given(graph: Graph[S]) -> Rules:
    """Return the temporal rules of a graph, and those that its runs are given."""
    given = graph.facts.get(RULES)
    return graph.rules & given if isinstance(given, Rules) else graph.rules


def given_changes(before: Graph[S], after: Graph[S]) -> Iterator[ParameterChange]:
    """Yield what differs of what two graphs' runs are given, and of what is set aside.

    Of temporal rules, their order alone: what becomes of each is told with the proofs.
    """
    yield from _ignored(before.ignore, after.ignore)
    kept, kept_now = tuple(rules_given(before)), tuple(rules_given(after))
    if kept != kept_now and set(kept) == set(kept_now):
        yield ParameterChange(RULES, ("one order",), ("another order",), "changed", comparable=True)
    old, new = before.facts, after.facts
    for name in dict.fromkeys([*old, *new]):
        if name != RULES:
            yield from option_changes(name, name, old.get(name), new.get(name))


def _ignored(
    old: Mapping[tuple[str, str], str], new: Mapping[tuple[str, str], str]
) -> Iterator[ParameterChange]:
    come = [one for one in new if one not in old]
    gone = [one for one in old if one not in new]
    if come:
        yield ParameterChange("ignore", (), tuple(map(_aside, come)), "weaker", comparable=True)
    if gone:
        yield ParameterChange("ignore", tuple(map(_aside, gone)), (), "stronger", comparable=True)
    for key in [one for one in new if one in old and old[one] != new[one]]:
        yield from compared(f"ignore {_aside(key)}", old[key], new[key], guards=False)
    if not come and not gone and list(old) != list(new):
        sides = tuple(map(_aside, old)), tuple(map(_aside, new))
        yield ParameterChange("ignore", *sides, "changed", comparable=True)


def _aside(key: tuple[str, str]) -> str:
    node, code = key
    return f"{code} of {node or 'the graph'}"
