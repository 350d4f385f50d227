"""Guards: nodes that can be reached past a guard now.

A guard is a node that keeps something from happening: a gate, a check, a person, a stop. The
dominators of both graphs tell which nodes always came first. Several guards may stand before a node
together, one on each way to it: so the nearest guards of all ways are compared as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import product
from typing import Final, Generic, TypeAlias, TypeVar

import networkx as nx

from ..node_protocol import Kind
from ..outcomes import Aborted, Failed
from ..policy import Rule, decide
from .children import STRICTNESS, tools_of
from .ground import END, Ground, Trail, Way, circles, search, trail
from .written_changes import Change, is_guard, written

__all__ = ["Dominance", "answering", "gate_changes", "lost_guards"]

S = TypeVar("S")

Letter: TypeAlias = tuple[str, str]
"""A guard, or a node that acts, and its outcome; the start has none."""

NAMED_MAX: Final = 4
"""How many nodes a message names."""

BOOKKEEPING: Final[frozenset[Kind]] = frozenset({"prepare", "model", "append"})
"""Kinds that guard nothing: a node of them is missed only before something that acts."""

VERBS: Final = {"allow": "allow", "ask": "ask about", "deny": "deny"}


def lost_guards(old: Ground[S], new: Ground[S]) -> Iterator[Change]:
    """Yield the nodes that act, guard or end a run with less before them, or act newly."""
    was, now = _Side(old), _Side(new)
    told = {node: change for nodes, change in _order(was, now) for node in nodes}
    yield from dict.fromkeys(told.values())
    for node in (*new.graph.nodes, END):
        if node in was.guarded and node in now.guarded and node not in told:
            yield from _new_ways(was, now, node)
    for name in new.graph.nodes:
        if name in now.acting - was.acting:
            said = "acts, and did not" if name in old.graph.nodes else "is new, and acts"
            yield Change("weaker", "acts", f"`{name}` {said}", name).along(new.trail(name))


class _Side(Generic[S]):
    """A graph of the two, with its dominators."""

    def __init__(self, ground: Ground[S]) -> None:
        self.ground = ground
        self.passed = Dominance(ground, answers=True)
        self.guards = self.of_kinds({"gate", "check", "human", "stop"})
        self.acting = frozenset([name for name in ground.reached if self._acts(name)])
        ends = {END} & {*ground.parents}
        self.guarded = self.acting | self.of_kinds({"gate", "check", "human"}) | ends

    def of_kinds(self, kinds: Set[Kind]) -> frozenset[str]:
        """Return the guards of some kinds that runs arrive at."""
        nodes = self.ground.graph.nodes
        every = [one for one in self.ground.reached if nodes[one].kind in kinds]
        return frozenset([one for one in every if is_guard(nodes[one])])

    def lines(self) -> dict[str, list[Way]]:
        """Return the lines of the table into each node, but for ends without an answer."""
        found: dict[str, list[Way]] = {}
        for name in self.ground.reached:
            for outcome, target in self.ground.graph.table[name].items():
                if target != END or outcome not in {Aborted, Failed}:
                    found.setdefault(target, []).append(Way(name, outcome, target))
        return found

    def _acts(self, name: str) -> bool:
        """Whether something of consequence may happen at a node; at one that says nothing, yes."""
        promised, kind = self.ground.contracts[name], self.ground.graph.nodes[name].kind
        if promised is None:
            return name not in self.guards and kind not in BOOKKEEPING
        return promised.tools or bool(promised.children) or kind in {"execute", "graph", "act"}


def _order(old: _Side[S], new: _Side[S]) -> Iterator[tuple[list[str], Change]]:
    """Yield the nodes that can be reached without what always came before them."""
    lost: dict[tuple[str, ...], list[str]] = {}
    for node in old.passed.reached:
        gone = old.passed.before(node) - new.passed.before(node)
        if gone and node in new.passed.reached:
            kinds = {one: old.ground.graph.nodes[one].kind for one in old.passed.reached[:-1]}
            kept = [one for one in kinds if one in gone]
            kept = [one for one in kept if node in old.acting or kinds[one] not in BOOKKEEPING]
            lost.setdefault(tuple(kept), []).append(node)
    for guards, nodes in lost.items():
        if guards:
            nodes.sort(key=lambda name: name not in new.acting)
            walked = new.passed.around(nodes[0], guards[0])
            said = f"{_becomes(nodes)} without {_names(guards, 'or')}"
            yield nodes, Change("weaker", "guard", said, nodes[0]).along(walked)


def _new_ways(old: _Side[S], new: _Side[S], node: str) -> Iterator[Change]:
    """Yield the ways to a node on which another guard is nearest than before, or none."""
    judges = old.of_kinds({"check", "human"})
    stops = [judges if node == END else one.guards | one.acting for one in (old, new)]
    was, now = _nearest(old, node, stops[0]), _nearest(new, node, stops[0] & stops[1])
    for letter, walked in now.items():
        if letter in was:
            continue
        if letter[0] == node and letter[1]:
            said = f"`{node}` can be visited again with no guard between"
        elif letter[1]:
            said = f"{_becomes([node])} by a new way, from `{letter[0]} -{letter[1]}->`"
        else:
            names = [*dict.fromkeys(name for name, outcome in was if outcome)]
            said = f"{_becomes([node])} without {_names(names, 'or')}" if names else ""
        into = new.ground.trail(letter[0])
        yield Change("weaker", "guard", said, node).along((*into, *walked))


def _nearest(side: _Side[S], node: str, guards: Set[str]) -> dict[Letter, Trail]:
    """Return what comes last on the ways to a node, each with a shortest way from there."""
    lines, start = side.lines(), side.ground.graph.start

    def back(name: str) -> Iterator[tuple[Way, str]]:
        ways = lines.get(name, ())
        return ((way, way.source) for way in ways if way.source not in guards)

    met = search([node], back)
    found: dict[Letter, Trail] = {}
    for name in met:
        walked = trail(met, name)[::-1]
        if name == start:
            found[start, ""] = walked
        for way in lines.get(name, ()):
            if way.source in guards:
                found.setdefault((way.source, way.word), (way, *walked))
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


Line: TypeAlias = tuple[str, str]

_BEGIN = ("begin",)


_OWN: Final = __name__.partition(".")[0]


def answering(ground: Ground[S]) -> Mapping[str, tuple[Way, ...]]:
    """Return the lines out of each node, but for those by which a run ends without an answer.

    A node of this library that leaves by `aborted` or `failed` has said why the run ends, so the
    text before it is no answer. Of other nodes that is unknown.
    """
    nodes = ground.graph.nodes
    own = {name for name, node in nodes.items() if type(node).__module__.split(".")[0] == _OWN}
    return {
        name: tuple([way for way in ways if not (name in own and _breaks_off(way))])
        for name, ways in ground.ways.items()
    }


def _breaks_off(way: Way) -> bool:
    return way.target == END and way.outcome in {Aborted, Failed}


class Dominance(Generic[S]):
    """The nodes that every way passes, by the lines that may be taken.

    Attributes:
        ground: the graph.
    """

    def __init__(self, ground: Ground[S], *, answers: bool = False) -> None:
        """Draw the tree.

        Args:
            ground: the graph.
            answers: whether a run that ends without an answer is left out.
        """
        self.ground = ground
        self._ways = answering(ground) if answers else ground.ways
        self._tree = _tree(_lines(self._ways), ground.graph.start, None)
        self._around = _around(ground, self._ways)

    @property
    def reached(self) -> tuple[str, ...]:
        """The nodes that runs arrive at, and END, in the order of the table."""
        names = (*self.ground.graph.nodes, END)
        return tuple(name for name in names if name in self._tree)

    def before(self, node: str) -> frozenset[str]:
        """Return what every run has passed that arrives at `node`; nothing if none does."""
        return _above(self._tree, node)

    def between(self, node: str) -> frozenset[str] | None:
        """Return what every run passes between two visits of `node`; None if it has but one."""
        around = self.around_of(node)
        if not around or node not in self._tree:
            return None
        return _above(_tree(around, None, node), node)

    def around_of(self, node: str) -> frozenset[Line]:
        """Return all lines of ways from `node` back to it; two graphs may have the same."""
        return self._around.get(node, frozenset())

    def around(self, node: str, avoided: str) -> Trail:
        """Return a shortest way to `node` that does not pass `avoided`; empty if there is none."""
        start = self.ground.graph.start
        return () if start == avoided else self._led([(start, None)], node, avoided)

    def round_trip(self, node: str, avoided: str = "") -> Trail:
        """Return a shortest way from the start to `node`, and back to it without `avoided`."""
        back: Trail = ()
        for way in self._ways.get(node, ()):
            if way.target == avoided:
                continue
            led = self._led([(way.target, None)], node, avoided)
            if (led or way.target == node) and (not back or len(led) + 1 < len(back)):
                back = (way, *led)
        return (*self.ground.trail(node), *back) if back else ()

    def _led(self, starts: list[tuple[str, None]], node: str, avoided: str) -> Trail:
        def steps(name: str) -> Iterator[tuple[Way, str]]:
            ways = self._ways.get(name, ())
            return ((way, way.target) for way in ways if way.target != avoided)

        found = search([name for name, _ in starts], steps)
        return trail(found, node) if node in found else ()


def _lines(lines: Mapping[str, tuple[Way, ...]]) -> Iterator[Line]:
    return ((way.source, way.target) for ways in lines.values() for way in ways)


def _around(ground: Ground[S], ways: Mapping[str, tuple[Way, ...]]) -> dict[str, frozenset[Line]]:
    """Return for each node that can be come back to the lines by which that is."""
    lines = [*_lines(ways)]
    part = {
        name: place
        for place, names in enumerate(circles(ground.graph.nodes, _inner(lines)))
        for name in names
    }
    within: dict[int, list[Line]] = {}
    for source, target in lines:
        if source in part and part[source] == part.get(target):
            within.setdefault(part[source], []).append((source, target))
    kept = {place: frozenset(some) for place, some in within.items()}
    return {name: kept[place] for name, place in part.items()}


def _inner(lines: Iterable[Line]) -> Iterator[Line]:
    return (line for line in lines if line[1] != END)


def _tree(lines: Iterable[Line], start: str | None, behind: str | None) -> dict[object, object]:
    """Return the immediate dominator of all that can be come to, from the start or behind a node.

    What begins is in it with itself, or None, as its own.
    """
    drawn: nx.DiGraph[object] = nx.DiGraph()
    if start is not None:
        drawn.add_edge(_BEGIN, start)
    drawn.add_edges_from(
        (_BEGIN if source == behind else source, target) for source, target in lines
    )
    return dict(nx.immediate_dominators(drawn, _BEGIN))


def _above(tree: dict[object, object], node: str) -> frozenset[str]:
    found: list[str] = []
    at = tree.get(node)
    while isinstance(at, str) and at != node:
        found.append(at)
        at = tree.get(at)
    return frozenset(found)
