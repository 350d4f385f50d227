"""Difference: how a graph differs from an earlier one, and what that means."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Final, TypeAlias, TypeVar, final

from ..graph import Graph
from ..temporal import Rules, rules_of
from .heirs import heirs, namesakes
from .table_changes import TableChanges, table_changes
from .temporal import rules_given
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
        children: the differences of graphs that both run as a child, by the child's name; one
            that several run stands at each of them.
    """

    before: str
    after: str
    changes: TableChanges
    verdict: tuple[Consequence, ...]
    # Told as text, each once; a `repr` would tell each at every place.
    children: tuple[tuple[str, Difference], ...] = field(default=(), repr=False)

    @property
    def weaker(self) -> bool:
        """Whether the later graph promises less in anything, its children included."""
        every: list[Difference] = [self]
        found = {id(self)}
        for here in every:
            new = [child for _, child in here.children if id(child) not in found]
            found |= {id(child) for child in new}
            every += new
        return any(one.effect == "weaker" for here in every for one in here.verdict)

    @property
    def none(self) -> bool:
        """Whether nothing differs that anybody can see, down to the last parameter."""
        differs = self.before != self.after or self.verdict or self.children
        return self.changes.none and not differs

    def to_json(self) -> str:
        """Return a JSON object with `weaker` and the fields of this class.

        Of a child that was told already, `same_as` names it: the names that lead to it.
        """
        return json.dumps(_builtins(self, (), {}), indent=2, ensure_ascii=False)

    def __str__(self) -> str:
        """Return what it means, then what was changed, then the same of the children."""
        return "\n".join(_lines(self, (), {}))


Paths: TypeAlias = dict[int, tuple[str, ...]]
"""Where differences were told first, by their identities: the names that lead there."""


def _lines(one: Difference, path: tuple[str, ...], told: Paths) -> Iterator[str]:
    """Yield the lines that tell a difference; of a child that was told, where."""
    told[id(one)] = path
    names = f"{one.before!r} -> {one.after!r}" if one.before != one.after else one.after
    if one.none:
        yield f"graph {names}: no difference"
        return
    yield f"graph {names}: {'weaker' if one.weaker else 'not weaker'}"
    for each in one.verdict:
        yield from (f"  {line}" for line in str(each).splitlines())
    if not one.changes.none:
        yield ""
        yield from (f"  {line}" for line in one.changes.lines())
    for name, child in one.children:
        yield ""
        known = told.get(id(child))
        if known is None:
            yield f"in the child {name!r}:"
            yield from (f"  {line}" for line in _lines(child, (*path, name), told))
        else:
            yield f"in the child {name!r}: the same as in {'/'.join(known)!r}, above"


def difference(
    before: Graph[S],
    after: Graph[S],
    rules: Rules | Iterable[Rules] = (),
    *,
    rules_before: Rules | Iterable[Rules] | None = None,
) -> Difference:
    """Return how `after` differs from `before`, and what that means.

    Args:
        before: the earlier graph.
        after: the later graph.
        rules: temporal rules of your own, beside the graphs'.
        rules_before: those of the earlier graph, if they were others.
    """
    new = rules_of(rules)
    old = new if rules_before is None else rules_of(rules_before)
    sides = rules_given(before) & old, rules_given(after) & new
    return _Comparing().compared(before, after, sides)


class _Comparing:
    """Compares graphs, each pair of them once, however many ways lead to it."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Difference] = {}

    def compared(
        self, before: Graph[S], after: Graph[S], rules: tuple[Rules, Rules], depth: int = 0
    ) -> Difference:
        """Return the difference of two graphs, with those of their children."""
        inner: dict[str, Difference] = {}
        unseen: list[Consequence] = []
        for name, old, new in _same(before, after):
            if old is None or new is None:
                unseen += [one for one in _known_of(name, old, new) if one not in unseen]
            elif depth < NEST_MAX:
                inner[_label(name, inner)] = self._once(old, new, depth + 1)
            elif old is not new:
                unseen.append(_too_deep(name))
        for heir in heirs(before, after):
            old, new = heir.before.graph, heir.after.graph
            who = f"{heir.after.name} of {heir.node}"
            if old is None or new is None:
                said = (
                    f"`{heir.node}` runs the agent {heir.after.name!r}, and ran "
                    f"{heir.before.name!r}, which nobody can compare"
                )
                unseen.append(Consequence("weaker", "given", said))
            elif depth < NEST_MAX:
                inner[_label(who, inner)] = self._once(old, new, depth + 1)
            elif old is not new:
                unseen.append(_too_deep(who))
        return Difference(
            before.name,
            after.name,
            table_changes(before, after, rules),
            tuple(sorted([*consequences(before, after, rules), *unseen], key=_rank)),
            tuple((name, one) for name, one in inner.items() if not one.none),
        )

    def _once(self, old: Graph[object], new: Graph[object], depth: int) -> Difference:
        key = id(old), id(new)
        if key not in self._known:
            self._known[key] = self.compared(old, new, (rules_given(old), rules_given(new)), depth)
        return self._known[key]


def _rank(one: Consequence) -> int:
    return ("weaker", "changed", "stronger").index(one.effect)


def _too_deep(name: str) -> Consequence:
    said = f"the agent {name!r} is more than {NEST_MAX} graphs deep, and was not compared"
    return Consequence("weaker", "given", said)


def _known_of(
    name: str, old: Graph[object] | None, new: Graph[object] | None
) -> Iterator[Consequence]:
    """Yield that the graph of an agent is not known any more, or is now."""
    if new is None and old is not None:
        said = f"nobody knows the graph of the agent {name!r} any more"
        yield Consequence("weaker", "given", said)
    elif old is None and new is not None:
        said = f"the graph of the agent {name!r} is known, and nobody can compare it"
        yield Consequence("changed", "given", said)


def _same(
    before: Graph[S], after: Graph[S]
) -> Iterator[tuple[str, Graph[object] | None, Graph[object] | None]]:
    """Yield the graphs that both run under one name: of nodes, and the agents; each pair once.

    Of a name that several have, the node is named as well.
    """
    told: set[tuple[str, int, int]] = set()
    pairs = [(node, new.name, old.graph, new.graph) for node, old, new in namesakes(before, after)]
    agents, agents_now = before.agents, after.agents
    pairs += [("", one, agents[one], agents_now[one]) for one in agents_now if one in agents]
    names: set[str] = set()
    for node, name, old, new in pairs:
        key = name, id(old), id(new)
        if key not in told:
            told.add(key)
            yield f"{name} of {node}" if node and name in names else name, old, new
            names.add(name)


def _label(name: str, taken: Container[str]) -> str:
    """Return a name that no other child has, so that none hides another."""
    number = 2
    label = name
    while label in taken:
        label, number = f"{name} ({number})", number + 1
    return label


def _builtins(one: Difference, path: tuple[str, ...], told: Paths) -> dict[str, object]:
    told[id(one)] = path
    children: dict[str, object] = {}
    for name, child in one.children:
        known = told.get(id(child))
        children[name] = (
            _builtins(child, (*path, name), told)
            if known is None
            else {"weaker": child.weaker, "same_as": known}
        )
    return {
        "weaker": one.weaker,
        "before": one.before,
        "after": one.after,
        "changes": asdict(one.changes),
        "verdict": [asdict(each) for each in one.verdict],
        "children": children,
    }
