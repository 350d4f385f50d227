"""Guards: the nodes that lost a guard between an earlier and a later version of a graph.

A guard is a node of kind `gate`, `check`, `human` or `stop`. A guard protects a node alone if it is
a dominator: it is on every path to the node. Several guards may also protect a node together, one
on each path. So the last guards on all paths to a node are compared too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import product
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
        self.guards = self.guards_of({"gate", "check", "human", "stop"})
        self.acting = frozenset(name for name in graph.reached if self._acts(name))
        self.guarded = self.acting | self.guards_of({"gate", "check", "human"})
        self.guarded |= {END} & {*graph.parents}

    def guards_of(self, kinds: Set[Kind]) -> frozenset[str]:
        """Return the reachable nodes of these kinds that are guards."""
        nodes = self.graph.nodes
        known = [name for name in self.graph.reached if nodes[name].kind in kinds]
        return frozenset(name for name in known if is_guard(nodes[name]))

    def _acts(self, name: str) -> bool:
        """Return whether a node may run tools, start children or act on the world."""
        contract, kind = self.graph.contracts[name], self.graph.nodes[name].kind
        if contract is None:
            return name not in self.guards and kind not in BOOKKEEPING
        return contract.tools or bool(contract.children) or kind in {"execute", "graph", "act"}


def _lost_dominators(old: _Side[S], new: _Side[S]) -> Iterator[tuple[list[str], Change]]:
    """Yield the nodes that lost the same dominators, with the change that describes the loss."""
    lost: dict[tuple[str, ...], list[str]] = {}
    for node in old.dominance.reached:
        gone = old.dominance.before(node) - new.dominance.before(node)
        if gone and node in new.dominance.reached:
            kinds = {name: old.graph.nodes[name].kind for name in old.dominance.reached[:-1]}
            missed = [name for name in kinds if name in gone]
            missed = [n for n in missed if node in old.acting or kinds[n] not in BOOKKEEPING]
            lost.setdefault(tuple(missed), []).append(node)
    for guards, nodes in lost.items():
        if guards:
            nodes.sort(key=lambda name: name not in new.acting)
            path = new.dominance.around(nodes[0], guards[0])
            said = f"{_reachable(nodes)} without {_list(guards, 'or')}"
            yield nodes, Change("weaker", "guard", said, nodes[0]).along(path)


def _new_exits(old: _Side[S], new: _Side[S], node: str) -> Iterator[Change]:
    """Yield a change for each path to `node` whose last guard is new, or that has no guard."""
    judges = old.guards_of({"check", "human"})
    stops = [judges if node == END else side.guards | side.acting for side in (old, new)]
    was, now = _last_exits(old, node, stops[0]), _last_exits(new, node, stops[0] & stops[1])
    for (guard, outcome), path in now.items():
        if (guard, outcome) in was:
            continue
        if guard == node and outcome:
            said = f"`{node}` can be visited again with no guard between"
        elif outcome:
            said = f"{_reachable([node])} by a new way, from `{guard} -{outcome}->`"
        else:
            names = [*dict.fromkeys(name for name, outcome in was if outcome)]
            said = f"{_reachable([node])} without {_list(names, 'or')}" if names else ""
        into = new.graph.path_to(guard)
        yield Change("weaker", "guard", said, node).along((*into, *path))


def _last_exits(side: _Side[S], node: str, guards: Set[str]) -> dict[Exit, TablePath]:
    """Return the last exit of a guard on each path to `node`, with a shortest path from that guard.

    A path from the start without a guard counts as an exit of the start with the outcome "".
    """
    into: dict[str, list[Arc]] = {}
    for name in side.graph.reached:
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


def gate_changes(
    owner: str, old: tuple[Rule, ...], new: tuple[Rule, ...], added: Set[str] = frozenset()
) -> Iterator[Change]:
    """Yield a change for each tool that the old and new rules of a gate decide differently.

    Args:
        owner: the gate's description, for messages.
        old: the rules of the gate in the earlier graph.
        new: the rules of the gate in the later graph.
        added: the tools that only the later graph has; they are not compared.
    """
    if old == new:
        return
    if not old or not new:
        said = f"{owner} has no rules any more" if old else f"{owner} has rules now"
        yield Change("weaker" if old else "stronger", "gate", said)
        return
    changes: list[Change] = []
    seen: set[tuple[str, str]] = set()
    patterns = [tool for rule in (*old, *new) for tool in rule.tools if "*" in tool]
    both = [a.replace("*", b.replace("*", "x")) for a, b in product(patterns, repeat=2)]
    for tool in dict.fromkeys((*sample_tools((*old, *new)), *both)):
        was, now = decide(old, tool, ()).verdict, decide(new, tool, ()).verdict
        exact = any(tool in rule.tools for rule in (*old, *new))
        if was != now and tool not in added and (exact or (was, now) not in seen):
            softer = STRICTNESS[now] < STRICTNESS[was]
            said = f"{owner} may {VERBS[now]} {tool!r}, and did {VERBS[was]} it before"
            changes.append(Change("weaker" if softer else "stronger", "gate", said))
            seen.add((was, now))
    # Sample names cannot compare conditions, time limits or patterns with `?` and `[`. Report such
    # a difference as weaker, since it may be.
    times = [{rule.ttl_s for rule in rules} for rules in (old, new)]
    odd = any(set("?[") & set(tool) for rule in (*old, *new) for tool in rule.tools)
    decided = times[0] == times[1] and not odd and not any(r.condition for r in (*old, *new))
    if not decided or not changes:
        said = f"{owner} has other rules: {written(old)} -> {written(new)}"
        changes.append(Change("changed" if decided else "weaker", "gate", said))
    yield from changes


def _reachable(nodes: Sequence[str]) -> str:
    """Return the start of a message: these nodes become reachable, or a run can end."""
    inner = [name for name in nodes if name != END]
    if not inner:
        return "a run can end"
    said = f"{_list(inner, 'and')} {'becomes' if len(inner) == 1 else 'become'} reachable"
    return f"{said}, and a run can end," if END in nodes else said


def _list(nodes: Iterable[str], joint: str) -> str:
    """Return names in backquotes, joined by commas, with `joint` before the last."""
    names = [f"`{name}`" for name in nodes]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {joint} {names[-1]}"
