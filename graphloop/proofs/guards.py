"""Guards: nodes that can be reached past a guard now.

A guard is a node that keeps something from happening: a gate, a check, a person, a stop. The
dominators of both graphs tell which nodes always came first. Several guards may stand before a node
together, one on each way to it: so the nearest guards of all ways are compared as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import product
from typing import Final, Generic, TypeAlias, TypeVar

from ..node_protocol import Kind
from ..outcomes import Aborted, Failed
from ..policy import Rule, decide
from .children import STRICTNESS, tools_of
from .dominance import Dominance
from .proof_graph import END, Arc, ProofGraph, TablePath, breadth_first, path_to
from .written_changes import Change, is_guard, written

__all__ = ["gate_changes", "lost_guards"]

S = TypeVar("S")

Letter: TypeAlias = tuple[str, str]
"""A guard, or a node that acts, and its outcome; the start has none."""

NAMED_MAX: Final = 4
"""How many nodes a message names."""

BOOKKEEPING: Final[frozenset[Kind]] = frozenset({"prepare", "model", "append"})
"""Kinds that guard nothing: a node of them is missed only before something that acts."""

VERBS: Final = {"allow": "allow", "ask": "ask about", "deny": "deny"}


def lost_guards(old: ProofGraph[S], new: ProofGraph[S]) -> Iterator[Change]:
    """Yield the nodes that act, guard or end a run with less before them, or act newly."""
    was, now = _Side(old), _Side(new)
    told = {node: change for nodes, change in _order(was, now) for node in nodes}
    yield from dict.fromkeys(told.values())
    for node in (*new.nodes, END):
        if node in was.guarded and node in now.guarded and node not in told:
            yield from _new_ways(was, now, node)
    for name in new.nodes:
        if name in now.acting - was.acting:
            said = "acts, and did not" if name in old.nodes else "is new, and acts"
            yield Change("weaker", "acts", f"`{name}` {said}", name).along(new.path_to(name))


class _Side(Generic[S]):
    """A graph of the two, with its dominators."""

    def __init__(self, ground: ProofGraph[S]) -> None:
        self.ground = ground
        self.passed = Dominance(ground, answers=True)
        self.guards = self.of_kinds({"gate", "check", "human", "stop"})
        self.acting = frozenset([name for name in ground.reached if self._acts(name)])
        ends = {END} & {*ground.parents}
        self.guarded = self.acting | self.of_kinds({"gate", "check", "human"}) | ends

    def of_kinds(self, kinds: Set[Kind]) -> frozenset[str]:
        """Return the guards of some kinds that runs arrive at."""
        nodes = self.ground.nodes
        every = [one for one in self.ground.reached if nodes[one].kind in kinds]
        return frozenset([one for one in every if is_guard(nodes[one])])

    def lines(self) -> dict[str, list[Arc]]:
        """Return the lines of the table into each node, but for ends without an answer."""
        found: dict[str, list[Arc]] = {}
        for name in self.ground.reached:
            for outcome, target in self.ground.table[name].items():
                if target != END or outcome not in {Aborted, Failed}:
                    found.setdefault(target, []).append(Arc(name, outcome, target))
        return found

    def _acts(self, name: str) -> bool:
        """Whether something of consequence may happen at a node; at one that says nothing, yes."""
        promised, kind = self.ground.contracts[name], self.ground.nodes[name].kind
        if promised is None:
            return name not in self.guards and kind not in BOOKKEEPING
        return promised.tools or bool(promised.children) or kind in {"execute", "graph", "act"}


def _order(old: _Side[S], new: _Side[S]) -> Iterator[tuple[list[str], Change]]:
    """Yield the nodes that can be reached without what always came before them."""
    lost: dict[tuple[str, ...], list[str]] = {}
    for node in old.passed.reached:
        gone = old.passed.before(node) - new.passed.before(node)
        if gone and node in new.passed.reached:
            kinds = {one: old.ground.nodes[one].kind for one in old.passed.reached[:-1]}
            kept = [one for one in kinds if one in gone]
            kept = [one for one in kept if node in old.acting or kinds[one] not in BOOKKEEPING]
            lost.setdefault(tuple(kept), []).append(node)
    for guards, nodes in lost.items():
        if guards:
            nodes.sort(key=lambda name: name not in new.acting)
            path = new.passed.around(nodes[0], guards[0])
            said = f"{_becomes(nodes)} without {_names(guards, 'or')}"
            yield nodes, Change("weaker", "guard", said, nodes[0]).along(path)


def _new_ways(old: _Side[S], new: _Side[S], node: str) -> Iterator[Change]:
    """Yield the ways to a node on which another guard is nearest than before, or none."""
    judges = old.of_kinds({"check", "human"})
    stops = [judges if node == END else one.guards | one.acting for one in (old, new)]
    was, now = _nearest(old, node, stops[0]), _nearest(new, node, stops[0] & stops[1])
    for letter, path in now.items():
        if letter in was:
            continue
        if letter[0] == node and letter[1]:
            said = f"`{node}` can be visited again with no guard between"
        elif letter[1]:
            said = f"{_becomes([node])} by a new way, from `{letter[0]} -{letter[1]}->`"
        else:
            names = [*dict.fromkeys(name for name, outcome in was if outcome)]
            said = f"{_becomes([node])} without {_names(names, 'or')}" if names else ""
        into = new.ground.path_to(letter[0])
        yield Change("weaker", "guard", said, node).along((*into, *path))


def _nearest(side: _Side[S], node: str, guards: Set[str]) -> dict[Letter, TablePath]:
    """Return what comes last on the ways to a node, each with a shortest way from there."""
    lines, start = side.lines(), side.ground.start

    def back(name: str) -> Iterator[tuple[Arc, str]]:
        arcs = lines.get(name, ())
        return ((arc, arc.source) for arc in arcs if arc.source not in guards)

    met = breadth_first([node], back)
    found: dict[Letter, TablePath] = {}
    for name in met:
        path = path_to(met, name)[::-1]
        if name == start:
            found[start, ""] = path
        for arc in lines.get(name, ()):
            if arc.source in guards:
                found.setdefault((arc.source, arc.word), (arc, *path))
    return found


def gate_changes(
    owner: str, old: tuple[Rule, ...], new: tuple[Rule, ...], come: Set[str] = frozenset()
) -> Iterator[Change]:
    """Yield what the rules of a gate decide otherwise, by the names of tools.

    Args:
        owner: the gate in words.
        old: its earlier rules.
        new: its later rules.
        come: the tools that are new, which no earlier rule was about.
    """
    if old == new:
        return
    if not old or not new:
        said = f"{owner} has no rules any more" if old else f"{owner} has rules now"
        yield Change("weaker" if old else "stronger", "gate", said)
        return
    found: list[Change] = []
    told: set[tuple[str, str]] = set()
    for tool in _samples((*old, *new)):
        was, now = decide(old, tool, ()), decide(new, tool, ())
        pair = was.verdict, now.verdict
        exact = any(tool in rule.tools for rule in (*old, *new))
        if pair[0] != pair[1] and tool not in come and (exact or pair not in told):
            softer = STRICTNESS[pair[1]] < STRICTNESS[pair[0]]
            said = f"{owner} may {VERBS[pair[1]]} {tool!r}, and did {VERBS[pair[0]]} it before"
            found.append(Change("weaker" if softer else "stronger", "gate", said))
            told.add(pair)
    # Names alone do not tell what a condition says, how long a question stays open, or what odd
    # patterns match.
    times = [{rule.ttl_s for rule in rules} for rules in (old, new)]
    odd = any(set("?[") & set(one) for rule in (*old, *new) for one in rule.tools)
    judged = times[0] == times[1] and not odd and not any(one.condition for one in (*old, *new))
    if not judged or not found:
        said = f"{owner} has other rules: {written(old)} -> {written(new)}"
        found.append(Change("changed" if judged else "weaker", "gate", said))
    yield from found


def _samples(rules: tuple[Rule, ...]) -> Iterable[str]:
    """Return a tool for each name and pattern of rules, and for each pair of patterns."""
    patterns = [one for rule in rules for one in rule.tools if "*" in one]
    pairs = product(patterns, repeat=2)
    both = [one.replace("*", other.replace("*", "x")) for one, other in pairs]
    return dict.fromkeys((*tools_of(rules), *both))


def _becomes(nodes: Sequence[str]) -> str:
    inner = [one for one in nodes if one != END]
    if not inner:
        return "a run can end"
    said = f"{_names(inner, 'and')} {'becomes' if len(inner) == 1 else 'become'} reachable"
    return f"{said}, and a run can end," if END in nodes else said


def _names(nodes: Sequence[str], joint: str) -> str:
    shown = [f"`{one}`" for one in nodes[:NAMED_MAX]]
    shown += [f"{len(nodes) - NAMED_MAX} more"] if len(nodes) > NAMED_MAX else []
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {joint} {shown[-1]}"
