"""Guards: the nodes that lost a guard between an earlier and a later version of a graph.

A guard is a node of kind `gate`, `check`, `human` or `stop`. A guard protects a node alone if it is
a dominator: it is on every path to the node. Several guards may also protect a node together, one
on each path. So the last guards on all paths to a node are compared too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Final, Generic, TypeAlias, TypeVar

from ..node_protocol import Kind
from ..outcomes import Aborted, Failed
from ..policy import Rule, decide
from .children import STRICTNESS, sample_tools
from .dominance import Dominance
from .parameter_changes import Change, is_guard, written
from .proof_graph import END, Arc, ProofGraph, TablePath, breadth_first, path_to

__all__ = ["gate_changes", "lost_guards"]

S = TypeVar("S")

Exit: TypeAlias = tuple[str, str]
"""A node and the name of the outcome by which a path leaves it; "" if a path only starts there."""

BOOKKEEPING: Final[frozenset[Kind]] = frozenset({"prepare", "model", "append"})
"""Kinds that are no guards. A lost dominator of these kinds matters only before acting nodes."""

VERBS: Final = {"allow": "allow", "ask": "ask about", "deny": "deny"}


def lost_guards(old: ProofGraph[S], new: ProofGraph[S]) -> Iterator[Change]:
    """Yield a change for each node that lost a guard, and for each node that newly acts."""
    was, now = _Side(old), _Side(new)
    lost = {node: change for nodes, change in _lost_dominators(was, now) for node in nodes}
    yield from dict.fromkeys(lost.values())
    for node in (*new.nodes, END):
        if node in was.guarded and node in now.guarded and node not in lost:
            yield from _new_exits(was, now, node)
    for name in new.nodes:
        if name in now.acting - was.acting:
            said = "acts, and did not" if name in old.nodes else "is new, and acts"
            yield Change("weaker", "acts", f"`{name}` {said}", name).along(new.path_to(name))


class _Side(Generic[S]):
    """The earlier or the later of two graphs, with its dominators, guards and acting nodes."""

    def __init__(self, graph: ProofGraph[S]) -> None:
        self.graph = graph
        self.dominance = Dominance(graph, answers=True)
        kinds = {name: graph.nodes[name].kind for name in graph.reached}
        self.guards = {name: kind for name, kind in kinds.items() if is_guard(graph.nodes[name])}
        self.acting = frozenset(name for name in graph.reached if self._may_act(name))
        kept = (name for name, kind in self.guards.items() if kind != "stop")
        self.guarded = self.acting.union(kept, {END} & {*graph.parents})

    def stops(self, node: str) -> frozenset[str]:
        """Return the nodes that may be the last guard of `node`; only a judge guards an answer."""
        judges = (name for name, kind in self.guards.items() if kind in {"check", "human"})
        return frozenset(judges) if node == END else self.acting.union(self.guards)

    def _may_act(self, name: str) -> bool:
        """Return whether a node may run tools, start children or act on the world."""
        contract, kind = self.graph.contracts[name], self.graph.nodes[name].kind
        if contract is None:
            return name not in self.guards and kind not in BOOKKEEPING
        return contract.tools or bool(contract.children) or kind in {"execute", "graph", "act"}


def _lost_dominators(old: _Side[S], new: _Side[S]) -> Iterator[tuple[list[str], Change]]:
    """Yield the nodes that lost the same guards (dominators), with the change that tells of it."""
    lost: dict[tuple[bool, tuple[str, ...]], list[str]] = {}
    for node in old.dominance.reached:
        gone = old.dominance.before(node) - new.dominance.before(node)
        missed = [name for name in old.graph.nodes if name in gone]
        if node not in old.acting:
            missed = [name for name in missed if old.graph.nodes[name].kind not in BOOKKEEPING]
        if missed and node in new.dominance.reached:
            lost.setdefault((node == END, tuple(missed)), []).append(node)
    for (_, guards), nodes in lost.items():
        nodes.sort(key=lambda name: name not in new.acting)
        path = new.dominance.around(nodes[0], guards[0])
        said = f"{_list_reachable(nodes)} without {_join_names(guards, 'or')}"
        yield nodes, Change("weaker", "guard", said, nodes[0]).along(path)


def _new_exits(old: _Side[S], new: _Side[S], node: str) -> Iterator[Change]:
    """Yield a change for each path to `node` whose last guard is new, or that has no guard."""
    stops = old.stops(node)
    was, now = _last_exits(old, node, stops), _last_exits(new, node, stops & new.stops(node))
    for guard, outcome in [way for way in now if way not in was]:
        if guard == node and outcome:
            said = f"`{node}` can be visited again with no guard between"
        elif outcome:
            said = f"{_list_reachable([node])} by a new way, from `{guard} -{outcome}->`"
        else:
            guards = dict.fromkeys(name for name, outcome in was if outcome)
            said = f"{_list_reachable([node])} without {_join_names(guards, 'or')}"
        path = (*new.graph.path_to(guard), *now[guard, outcome])
        yield Change("weaker", "guard", said, node).along(path)


def _last_exits(side: _Side[S], node: str, guards: Set[str]) -> dict[Exit, TablePath]:
    """Return the last exit of a guard on each path to `node`, with a shortest path from that guard.

    A path from the start without a guard counts as an exit of the start with the outcome "".
    """
    into: dict[str, list[Arc]] = {}
    for name in side.graph.reached:
        # The whole row: a contract may rule an outcome out in one of the two graphs only.
        for outcome, target in side.graph.table[name].items():
            # A run that ends by Aborted or Failed has no answer to guard.
            if target != END or outcome not in {Aborted, Failed}:
                into.setdefault(target, []).append(Arc(name, outcome, target))

    def arcs_from(name: str) -> Iterator[tuple[Arc, str]]:
        return ((arc, arc.source) for arc in into.get(name, ()) if arc.source not in guards)

    parents = breadth_first([node], arcs_from)
    exits: dict[Exit, TablePath] = {}
    for name in parents:
        path = path_to(parents, name)[::-1]
        if name == side.graph.start:
            exits[name, ""] = path
        for arc in into.get(name, ()):
            if arc.source in guards:
                exits.setdefault((arc.source, arc.word), (arc, *path))
    return exits


def gate_changes(owner: str, old: tuple[Rule, ...], new: tuple[Rule, ...]) -> Iterator[Change]:
    """Yield a change for each tool that the old and new rules of a gate decide differently.

    Args:
        owner: the gate's description, for messages.
        old: the rules of the gate in the earlier graph.
        new: the rules of the gate in the later graph.
    """
    if old == new:
        return
    if not old or not new:
        said = f"{owner} has no rules any more" if old else f"{owner} has rules now"
        yield Change("weaker" if old else "stronger", "gate", said)
        return
    changes: list[Change] = []
    seen: set[tuple[str, str]] = set()
    named = {tool for rule in (*old, *new) for tool in rule.tools}
    for tool in sample_tools((*old, *new)):
        was, now = decide(old, tool, ()).verdict, decide(new, tool, ()).verdict
        if was != now and (tool in named or (was, now) not in seen):
            softer = STRICTNESS[now] < STRICTNESS[was]
            said = f"{owner} may {VERBS[now]} {tool!r}, and did {VERBS[was]} it before"
            changes.append(Change("weaker" if softer else "stronger", "gate", said))
            seen.add((was, now))
    # Sample names cannot compare conditions, time limits or patterns with `?` and `[`. Report such
    # a difference as weaker, since it may be.
    odd = any(set("?[") & set(tool) for tool in named) or any(r.condition for r in (*old, *new))
    decided = not odd and {rule.ttl_s for rule in old} == {rule.ttl_s for rule in new}
    if not decided or not changes:
        said = f"{owner} has other rules: {written(old)} -> {written(new)}"
        changes.append(Change("changed" if decided else "weaker", "gate", said))
    yield from changes


def _list_reachable(nodes: Sequence[str]) -> str:
    """Return the start of a message: these nodes become reachable, or a run can end."""
    if nodes == [END]:
        return "a run can end"
    return f"{_join_names(nodes, 'and')} {'becomes' if len(nodes) == 1 else 'become'} reachable"


def _join_names(nodes: Iterable[str], joint: str) -> str:
    """Return names in backquotes, joined by commas, with `joint` before the last."""
    names = [f"`{name}`" for name in nodes] or ["a guard"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {joint} {names[-1]}"
