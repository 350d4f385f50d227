"""Difference: how a graph differs from an earlier one, and what that means."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final, TypeVar, final

from ..contract import contract_of
from ..graph import Graph
from .table_changes import TableChanges, table_changes
from .verdict import Consequence, consequences

__all__ = ["Difference", "difference"]

S = TypeVar("S")

NEST_MAX: Final = 16
"""How many graphs deep children are compared."""


@final
@dataclass(frozen=True, slots=True)
class Difference:
    """How two graphs differ; print it to read it.

    Attributes:
        before: the earlier graph's name.
        after: the later graph's name.
        changes: what was added, removed and led elsewhere.
        verdict: what that means, what got weaker first.
        children: the differences of graphs that both run as a child, by the child's name.
    """

    before: str
    after: str
    changes: TableChanges
    verdict: tuple[Consequence, ...]
    children: tuple[tuple[str, Difference], ...] = ()

    @property
    def weaker(self) -> bool:
        """Whether the later graph promises less in anything, its children included."""
        here = any(one.effect == "weaker" for one in self.verdict)
        return here or any(child.weaker for _, child in self.children)

    @property
    def none(self) -> bool:
        """Whether nothing differs that anybody can see."""
        return self.changes.none and not self.verdict and not self.children

    def to_json(self) -> str:
        """Return a JSON object with `weaker` and the fields of this class."""
        return json.dumps(_builtins(self), indent=2, ensure_ascii=False)

    def __str__(self) -> str:
        """Return what it means, then what was changed, then the same of the children."""
        names = f"{self.before!r} -> {self.after!r}" if self.before != self.after else self.after
        if self.none:
            return f"graph {names}: no difference"
        verdict = "weaker" if self.weaker else "not weaker"
        lines = [f"graph {names}: {verdict}"]
        for one in self.verdict:
            lines += [f"  {line}" for line in str(one).splitlines()]
        if not self.changes.none:
            lines += ["", *(f"  {line}" for line in self.changes.lines())]
        for name, child in self.children:
            lines += ["", f"in the child {name!r}:"]
            lines += [f"  {line}" for line in str(child).splitlines()]
        return "\n".join(lines)


def difference(before: Graph[S], after: Graph[S]) -> Difference:
    """Return how `after` differs from `before`, and what that means."""
    return _difference(before, after, 0)


def _difference(before: Graph[S], after: Graph[S], depth: int) -> Difference:
    was, now = _children(before), _children(after)
    inner = [
        (name, _difference(was[name], now[name], depth + 1))
        for name in now
        if name in was and depth < NEST_MAX
    ]
    return Difference(
        before.name,
        after.name,
        table_changes(before, after),
        consequences(before, after),
        tuple((name, one) for name, one in inner if not one.none),
    )


def _children(graph: Graph[S]) -> dict[str, Graph[object]]:
    contracts = [contract_of(node) for node in graph.nodes.values()]
    return {
        child.name: child.graph
        for contract in contracts
        if contract is not None
        for child in contract.children
        if child.graph is not None
    }


def _builtins(one: Difference) -> dict[str, object]:
    return {
        "weaker": one.weaker,
        "before": one.before,
        "after": one.after,
        "changes": asdict(one.changes),
        "verdict": [asdict(each) for each in one.verdict],
        "children": {name: _builtins(child) for name, child in one.children},
    }
