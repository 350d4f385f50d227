"""Components: the strongly connected components of a graph.

The search is Gabow's path-based one ("Path-based depth-first search for strong and biconnected
components", 2000), with a stack of its own: a recursion would end at a path of a thousand nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

__all__ = ["cyclic_components", "strong_components"]

Q = TypeVar("Q", bound=Hashable)


def strong_components(states: Iterable[Q], arcs: Iterable[tuple[Q, Q]]) -> Iterator[tuple[Q, ...]]:
    """Yield the strongly connected components of a graph, in the order of `states`."""
    targets: dict[Q, list[Q]] = {state: [] for state in states}
    for source, target in arcs:
        targets.setdefault(source, []).append(target)
        targets.setdefault(target, [])
    order = {state: number for number, state in enumerate(targets)}
    components = [tuple(sorted(group, key=order.__getitem__)) for group in _components_of(targets)]
    yield from sorted(components, key=lambda component: order[component[0]])


def cyclic_components(states: Iterable[Q], arcs: Iterable[tuple[Q, Q]]) -> Iterator[tuple[Q, ...]]:
    """Yield the strongly connected components of a graph that contain a cycle."""
    pairs = list(arcs)
    if not pairs:
        return
    loops = {source for source, target in pairs if source == target}
    for component in strong_components(states, pairs):
        if len(component) > 1 or loops.intersection(component):
            yield component


def _components_of(targets: Mapping[Q, Sequence[Q]]) -> Iterator[list[Q]]:
    """Yield each strongly connected component once, in no particular order."""
    number: dict[Q, int] = {}
    done: set[Q] = set()
    visited: list[Q] = []  # The states on no finished component, by the order of their visit.
    firsts: list[int] = []  # The numbers of the states that may be the first of a component.
    path: list[tuple[Q, Iterator[Q]]] = []

    def visit(state: Q) -> None:
        firsts.append(len(number))
        number[state] = len(number)
        visited.append(state)
        path.append((state, iter(targets[state])))

    for start in targets:
        if start not in number:
            visit(start)
        while path:
            state, following = path[-1]
            target = next(following, None)
            if target is not None and target not in number:
                visit(target)
            elif target is not None:
                while target not in done and firsts[-1] > number[target]:
                    firsts.pop()
            else:
                path.pop()
                if firsts[-1] == number[state]:
                    firsts.pop()
                    component = [visited.pop()]
                    while component[-1] != state:
                        component.append(visited.pop())
                    done.update(component)
                    yield component
