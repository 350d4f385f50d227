"""given_changes: what is different about what the runs of two graphs are given beside the table.

Instructions, tools, a budget, how approvals are asked for, what of the checker is set aside: each
by its name, compared as the parameters of nodes are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from ..graph import Graph
from .parameter_change import ParameterChange
from .parameter_changes import compared, options_changes
from .temporal import RULES, rules_given

__all__ = ["given_changes"]

S = TypeVar("S")


def given_changes(before: Graph[S], after: Graph[S]) -> Iterator[ParameterChange]:
    """Yield what differs of what two graphs' runs are given, and of what is set aside.

    Of temporal rules, their order alone: what becomes of each is told with the proofs.
    """
    yield from _ignored(before.ignore, after.ignore)
    kept, kept_now = tuple(rules_given(before)), tuple(rules_given(after))
    if kept != kept_now and set(kept) == set(kept_now):
        yield ParameterChange(RULES, ("one order",), ("another order",), "changed", comparable=True)
    old, new = (
        {name: one for name, one in side.facts.items() if name != RULES} for side in (before, after)
    )
    yield from options_changes("", old, new)


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
