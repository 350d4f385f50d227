"""The sets of places that all reach each other: what every proof about cycles begins with."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar, cast

import networkx as nx

if TYPE_CHECKING:
    # networkx's own class is not subscriptable; only its stubs are generic.
    Lines = nx.DiGraph[Hashable]
else:
    Lines = nx.DiGraph

__all__ = ["circles", "groups"]

Q = TypeVar("Q", bound=Hashable)


def groups(places: Iterable[Q], lines: Iterable[tuple[Q, Q]]) -> Iterator[tuple[Q, ...]]:
    """Yield the sets of places that all reach each other, in the order of `places`."""
    drawn = Lines()
    drawn.add_nodes_from(places)
    drawn.add_edges_from(lines)
    order = {place: number for number, place in enumerate(drawn)}
    found = [
        tuple(sorted(group, key=order.__getitem__))
        for group in nx.strongly_connected_components(drawn)
    ]
    # networkx gives back the very places that it was given.
    yield from cast("list[tuple[Q, ...]]", sorted(found, key=lambda group: order[group[0]]))


def circles(places: Iterable[Q], lines: Iterable[tuple[Q, Q]]) -> Iterator[tuple[Q, ...]]:
    """Yield those of the sets in which there is a way around."""
    every = list(lines)
    alone = {one for one, other in every if one == other}
    for group in groups(places, every):
        if len(group) > 1 or alone.intersection(group):
            yield group
