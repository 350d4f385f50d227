"""Heirs: which child a node runs now in the place of an earlier one.

A child is known by its name and by the node that runs it. One node may run several of one name;
those are held to each other in their order. Where a node runs one of another name, that one is held
to what the earlier one promised: else a gate would be got rid of by renaming what it is in.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple, TypeAlias, TypeVar

from ..contract import ChildContract
from ..graph import Graph
from .nested import children_of

__all__ = ["Heir", "heirs", "namesakes"]

S = TypeVar("S")

Children: TypeAlias = dict[str, list[ChildContract]]
"""The children that nodes run, by the node's name."""


class Heir(NamedTuple):
    """A child of a node, and the one that it ran before."""

    node: str
    before: ChildContract
    after: ChildContract


def namesakes(before: Graph[S], after: Graph[S]) -> Iterator[Heir]:
    """Yield the children of one name that both graphs run, each pair once.

    One that its node did not run before is held to another of its name: to one that nothing has
    taken the place of, if there is one.
    """
    return _once(_namesakes(_by_node(before), _by_node(after)))


def heirs(before: Graph[S], after: Graph[S]) -> Iterator[Heir]:
    """Yield the children that nodes of both graphs run in the place of others, each pair once."""
    return _once(_heirs(_by_node(before), _by_node(after)))


def _namesakes(was: Children, now: Children) -> Iterator[Heir]:
    free: dict[str, list[ChildContract]] = {}
    every: dict[str, ChildContract] = {}
    for node, children in was.items():
        for child in children:
            every.setdefault(child.name, child)
        for child in _unpaired(children, now.get(node, [])):
            free.setdefault(child.name, []).append(child)
    for node, children in now.items():
        earlier = was.get(node, [])
        come = _unpaired(children, earlier)
        for child in children:
            if not any(child is one for one in come):
                yield Heir(node, _nth(earlier, child.name, _place(children, child)), child)
            elif child.name in every:
                left = free.get(child.name)
                yield Heir(node, left.pop(0) if left else every[child.name], child)


def _heirs(was: Children, now: Children) -> Iterator[Heir]:
    for node in [one for one in now if one in was]:
        gone, come = _unpaired(was[node], now[node]), _unpaired(now[node], was[node])
        for one, other in zip(gone, come, strict=False):
            yield Heir(node, one, other)


def _unpaired(some: list[ChildContract], others: list[ChildContract]) -> list[ChildContract]:
    """Return the children of a node of whose name the other graph's node runs fewer."""
    names = [one.name for one in others]
    return [one for one in some if _place(some, one) >= names.count(one.name)]


def _place(children: list[ChildContract], child: ChildContract) -> int:
    """Return how many of its name stand before a child."""
    same = [one for one in children if one.name == child.name]
    return next(place for place, one in enumerate(same) if one is child)


def _nth(children: list[ChildContract], name: str, place: int) -> ChildContract:
    return [one for one in children if one.name == name][place]


def _once(pairs: Iterable[Heir]) -> Iterator[Heir]:
    told: set[Hashable] = set()
    for one in pairs:
        key = _key(one.before), _key(one.after)
        if key not in told:
            told.add(key)
            yield one


def _key(child: ChildContract) -> Hashable:
    return child.name, id(child.graph), child.gate_rules, child.budget


def _by_node(graph: Graph[S]) -> Children:
    found: Children = {}
    for node, child in children_of(graph):
        found.setdefault(node, []).append(child)
    return found
