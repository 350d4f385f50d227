"""TableChanges: what was added to a graph, removed from it, and led elsewhere. Names are identity.

Says what differs and no more; what it means is `verdict`'s to decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, TypeVar, final

from ..graph import Edge, Graph
from ..nodes.gate import Gate
from ..policy import describe
from ..temporal import Rules
from .given_changes import given_changes
from .parameter_changes import parameter_changes
from .rule_changes import RuleChange, rule_changes

__all__ = ["NodeChange", "Rewired", "TableChanges", "table_changes"]

S = TypeVar("S")

NO_RULES: Final = ("no rules",)


@final
@dataclass(frozen=True, slots=True)
class Rewired:
    """An outcome of a node that led to `before` and now leads to `after`."""

    source: str
    outcome: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.source} -{self.outcome}-> {self.after} (was {self.before})"


@final
@dataclass(frozen=True, slots=True)
class NodeChange:
    """What is different about a node that both graphs have: `what`, and each side in words.

    Of what runs are given beside the table, the node is empty.
    """

    node: str
    what: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    def __str__(self) -> str:
        gone = [f"- {one}" for one in self.before if one not in self.after]
        come = [f"+ {one}" for one in self.after if one not in self.before]
        changed = ", ".join([*gone, *come]) or "another order"
        return ": ".join([*filter(None, (self.node, self.what)), changed])


@final
@dataclass(frozen=True, slots=True)
class TableChanges:
    """How the tables of two graphs differ, in the order of the tables.

    Attributes:
        start: the names of both starts, if they differ.
        nodes_added: nodes that only the later graph has.
        nodes_removed: nodes that only the earlier graph has.
        nodes_changed: nodes of another kind, class, rules or options.
        edges_added: lines that only the later graph has.
        edges_removed: lines that only the earlier graph has.
        rewired: outcomes that both have, and that lead elsewhere.
        rules_added: temporal rules that only the later one has.
        rules_removed: temporal rules that only the earlier one has.
        rules_changed: rules about the same happening that say something else.
        given_changed: what runs are given beside the table: instructions, tools, a budget.
    """

    start: tuple[str, str] | None = None
    nodes_added: tuple[str, ...] = ()
    nodes_removed: tuple[str, ...] = ()
    nodes_changed: tuple[NodeChange, ...] = ()
    edges_added: tuple[Edge, ...] = ()
    edges_removed: tuple[Edge, ...] = ()
    rewired: tuple[Rewired, ...] = ()
    rules_added: tuple[str, ...] = ()
    rules_removed: tuple[str, ...] = ()
    rules_changed: tuple[RuleChange, ...] = ()
    given_changed: tuple[NodeChange, ...] = ()

    @property
    def none(self) -> bool:
        """Whether nothing differs."""
        return self == TableChanges()

    def lines(self) -> Iterator[str]:
        """Yield a line a change: `+` added, `-` removed, `~` changed."""
        if self.start is not None:
            yield f"~ start {self.start[1]} (was {self.start[0]})"
        yield from (f"- node {one}" for one in self.nodes_removed)
        yield from (f"+ node {one}" for one in self.nodes_added)
        yield from (f"~ node {one}" for one in self.nodes_changed)
        yield from (f"- {_line(one)}" for one in self.edges_removed)
        yield from (f"+ {_line(one)}" for one in self.edges_added)
        yield from (f"~ {one}" for one in self.rewired)
        yield from (f"- rule {one}" for one in self.rules_removed)
        yield from (f"+ rule {one}" for one in self.rules_added)
        yield from (f"~ rule {one}" for one in self.rules_changed)
        yield from (f"~ {one}" for one in self.given_changed)


def table_changes(
    before: Graph[S], after: Graph[S], rules: tuple[Rules, Rules] | None = None
) -> TableChanges:
    """Return how the table of `after` differs from that of `before`, and its temporal rules.

    Args:
        before: the earlier graph.
        after: the later graph.
        rules: the rules of both; the graphs' own if not given.
    """
    added, removed, changed = rule_changes(*(rules or (before.rules, after.rules)))
    old = {(one.source, one.outcome): one for one in before.edges}
    new = {(one.source, one.outcome): one for one in after.edges}
    return TableChanges(
        start=None if before.start == after.start else (before.start, after.start),
        nodes_added=tuple(name for name in after.nodes if name not in before.nodes),
        nodes_removed=tuple(name for name in before.nodes if name not in after.nodes),
        nodes_changed=tuple(_node_changes(before, after)),
        edges_added=tuple(one for way, one in new.items() if way not in old),
        edges_removed=tuple(one for way, one in old.items() if way not in new),
        rewired=tuple(
            Rewired(*way, old[way].target, one.target)
            for way, one in new.items()
            if way in old and old[way].target != one.target
        ),
        rules_added=added,
        rules_removed=removed,
        rules_changed=changed,
        given_changed=tuple(
            [
                NodeChange("", one.name, one.before, one.after)
                for one in given_changes(before, after)
            ]
        ),
    )


def _node_changes(before: Graph[S], after: Graph[S]) -> Iterator[NodeChange]:
    for name, new in after.nodes.items():
        old = before.nodes.get(name)
        if old is None:
            continue
        if old.kind != new.kind:
            yield NodeChange(name, "kind", (old.kind,), (new.kind,))
        elif type(old).__qualname__ != type(new).__qualname__:
            yield NodeChange(name, "class", (type(old).__name__,), (type(new).__name__,))
        if isinstance(old, Gate) and isinstance(new, Gate) and old.rules != new.rules:
            yield NodeChange(name, "rules", _rules(old), _rules(new))
        if type(old).__qualname__ == type(new).__qualname__ and old.kind == new.kind:
            for one in parameter_changes(old, new):
                yield NodeChange(name, one.name, one.before, one.after)


def _rules(gate: Gate) -> tuple[str, ...]:
    """Return a line a rule, with its reason, which models read."""
    if not gate.rules:
        return NO_RULES
    lines = describe(gate.rules)
    more = [f" ({one.reason!r})" if one.reason else "" for one in gate.rules]
    return tuple(map("".join, zip_longest(lines, more, fillvalue="")))


def _line(edge: Edge) -> str:
    return f"{edge.source} -{edge.outcome}-> {edge.target}"
