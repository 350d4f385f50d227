"""Verdict: what the changes of a graph mean, decided by the proofs of both.

A pair of nodes of which the one was always passed before the other, and is not any more; a property
that was proven; a bound that grew: each is told with a shortest way that shows it. What got weaker
stands first. Names are identity: a node that was renamed is another node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeAlias, TypeVar, final

from ..graph import Graph
from ..node_protocol import Kind, Node
from ..outcomes import Outcome
from ..temporal import Rules
from .bound import bound
from .calls import CallWalk
from .check import check
from .cycles import Cycle, unbounded
from .dominance import Dominance
from .given_changes import given_changes
from .ground import END, Ground, Trail, Way
from .guarding import unguarded
from .most import Bound
from .newcomers import newcomers
from .parameter_changes import is_guard, parameter_changes
from .ranking import Ranking
from .report import Finding, Report
from .rule_changes import rule_effects
from .softened import softened

__all__ = ["Consequence", "Effect", "consequences"]

S = TypeVar("S")

Effect: TypeAlias = Literal["weaker", "changed", "stronger"]

Pair: TypeAlias = tuple[str, str]

NAMED_MAX: Final = 4
BOOKKEEPING: Final[frozenset[Kind]] = frozenset({"prepare", "model", "append"})
"""Kinds that guard nothing: that one of them is not passed matters before something acts."""

TOLD: Final = frozenset({"GL4", "GL12"})
"""The properties that have proofs of their own here."""

BOUNDS: Final = {
    "model_calls": "model calls",
    "tool_calls": "tool calls",
    "tokens": "tokens",
    "usd": "US dollars",
}


@final
@dataclass(frozen=True, slots=True)
class Consequence:
    """One thing that is true of the later graph and was not of the earlier, or the reverse.

    Attributes:
        effect: whether the later graph promises less, more, or something else.
        subject: what it is about: `order`, `repetition`, `guards` (of which any one was passed),
            `acts` (what acts and did not), `cycle`, `bound`, `rules` (of gates), `node` (what it
            is, and its parameters), `given` (what runs are given beside the table), or the code of
            a property; temporal rules are GL12.
        message: what it is, in words.
        pairs: for an order or guards, each node that is not passed any more (or now is), and before
            what; for what acts, the node twice.
        witness: the nodes of a shortest way of the later graph that shows it; else empty.
        outcomes: the outcomes along it, one fewer than it has nodes.
    """

    effect: Effect
    subject: str
    message: str
    pairs: tuple[Pair, ...] = ()
    witness: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The witness in words."""
        steps = zip(self.outcomes, self.witness[1:], strict=True)
        return "".join([*self.witness[:1], *(f" -{way}-> {node}" for way, node in steps)])

    def __str__(self) -> str:
        lines = [f"{self.effect}: {self.message}"]
        return "\n".join([*lines, f"  witness: {self.path}"] if self.witness else lines)


def consequences(
    before: Graph[S], after: Graph[S], rules: tuple[Rules, Rules] | None = None
) -> tuple[Consequence, ...]:
    """Return what it means that `before` has become `after`; what got weaker first.

    Args:
        before: the earlier graph.
        after: the later graph.
        rules: the temporal rules of both; the graphs' own if not given.
    """
    old, new = _Side(before), _Side(after)
    given = rules or (before.rules, after.rules)
    passed = [*_order(old, new), *_repetition(old, new)]
    found = [
        *(
            _told(one.effect, "GL12", one.message, one.walked)
            for one in rule_effects(old.ground, new.ground, *given)
        ),
        *passed,
        *_cycles(old, new),
        *_newcomers(old, new),
        *_guarding(old, new, passed),
        *_bounds(old.bound, new.bound),
        *_nodes(old, new),
        *_given(before, after),
        *(Consequence(*one) for one in softened(before, after)),
        *_properties(old.report, new.report),
    ]
    rank: Mapping[Effect, int] = {"weaker": 0, "changed": 1, "stronger": 2}
    return tuple(sorted(found, key=lambda one: rank[one.effect]))


class _Side(Generic[S]):
    """One of the two graphs, with all that the proofs know of it."""

    def __init__(self, graph: Graph[S]) -> None:
        self.graph = graph
        self.ground = Ground(graph)
        self.passed = Dominance(self.ground, answers=True)
        self.report: Report = check(graph)
        self.bound: Bound = bound(graph)
        reached = bool(self.ground.reached)
        self.cycles: tuple[Cycle, ...] = (
            unbounded(Ranking(self.ground), CallWalk(self.ground)) if reached else ()
        )
        self.lines = {(one.source, one.outcome, one.target) for one in graph.edges}
        self.acting = frozenset([one for one in self.ground.reached if self.acts(one)])

    def kind(self, name: str) -> Kind | None:
        """Return the kind of a node; None for END, and for what is not there."""
        node = self.graph.nodes.get(name)
        return None if node is None else node.kind

    def acts(self, name: str) -> bool:
        """Whether something of consequence may happen at a node."""
        node = self.graph.nodes.get(name)
        if node is None:
            return False
        contract = self.ground.contracts[name]
        told = contract is not None and not (contract.tools or contract.agents or contract.children)
        return node.kind in {"execute", "graph", "act"} or not told


def _order(old: _Side[S], new: _Side[S]) -> Iterator[Consequence]:
    """Yield what can be come to without what always came before it, and the reverse."""
    here = [name for name in old.passed.reached if name in new.passed.reached]
    lost: list[Pair] = []
    won: list[Pair] = []
    for node in here:
        was, now = old.passed.before(node), new.passed.before(node)
        less, more = was - now, now - was
        lost += [(one, node) for one in old.passed.reached if one in less] if less else []
        won += [(one, node) for one in new.passed.reached if one in more] if more else []
    for weak in (True, False):
        some = [pair for pair in lost if _guards(old, *pair) is weak]
        for guards, nodes in _grouped(some):
            walked = new.passed.around(_shown(new, nodes), guards[0])
            yield _told(
                "weaker" if weak else "changed",
                "order",
                f"{_becomes(_acting_first(new, nodes))} without {_names(guards, 'or')}",
                walked,
                [pair for pair in some if pair[0] in guards],
            )
    for guards, nodes in _grouped([pair for pair in won if _guards(new, *pair)]):
        yield Consequence(
            "stronger",
            "order",
            f"{_names(nodes, 'and')} {_verb(nodes, 'is', 'are')} reached only after "
            f"{_names(guards, 'and')}",
            tuple((one, node) for one in guards for node in nodes),
        )


def _repetition(old: _Side[S], new: _Side[S]) -> Iterator[Consequence]:
    """Yield what acts and can be come back to without what always came between."""
    here = frozenset(old.passed.reached)
    for node in new.passed.reached:
        if node not in here or node not in new.acting:
            continue
        if old.passed.around_of(node) == new.passed.around_of(node):
            continue
        was, now = old.passed.between(node), new.passed.between(node)
        if now is None:
            continue
        if was is None:
            walked = new.passed.round_trip(node)
            said = f"`{node}` can be visited more than once in a run"
            yield _told("weaker", "repetition", said, walked, [(node, node)])
            continue
        # What need not be passed at all any more was told already.
        gone = was - now - (old.passed.before(node) - new.passed.before(node))
        guards = [
            one for one in old.passed.reached if one in gone and old.kind(one) not in BOOKKEEPING
        ]
        if guards:
            walked = new.passed.round_trip(node, guards[0])
            said = f"`{node}` can be visited again without {_names(guards, 'or')}"
            yield _told("weaker", "repetition", said, walked, [(one, node) for one in guards])


def _guarding(old: _Side[S], new: _Side[S], passed: Iterable[Consequence]) -> Iterator[Consequence]:
    """Yield what can be come to with less before it, where no single node says so already."""
    told = {pair for one in passed if one.effect == "weaker" for pair in one.pairs}
    shown: set[Way] = set()
    for loss in unguarded(old.ground, new.ground, old.acting & new.acting, told):
        if loss.nodes == (END,) and loss.behind in shown:
            continue
        shown |= {*loss.walked}
        where = ""
        if loss.behind is not None:
            where = f" behind `{loss.behind.source} -{loss.behind.word}->`"
            where += f" and {loss.more} more" if loss.more else ""
        without = f" without {_names(loss.guards, 'or')}" if loss.guards else ", and did not before"
        pairs = [(guard, node) for guard in loss.guards for node in loss.nodes]
        said = f"{_becomes(loss.nodes)}{where}{without}"
        yield _told("weaker", "guards", said, loss.walked, pairs)


def _newcomers(old: _Side[S], new: _Side[S]) -> Iterator[Consequence]:
    """Yield what acts and did not."""
    for one in newcomers(old.ground, new.ground, old.acting, new.acting):
        effect: Effect = "weaker" if one.weaker else "changed"
        yield _told(effect, "acts", one.message, one.walked, [(one.node, one.node)])


def _cycles(old: _Side[S], new: _Side[S]) -> Iterator[Consequence]:
    """Yield the cycles that have lost their bound, or come without one, and those that got one."""
    was = {one.words for one in old.cycles}
    for cycle in new.cycles:
        if cycle.words in was:
            continue
        ways = {(way.source, way.word, way.target) for way in cycle.around}
        said = "loses its bound" if ways <= old.lines else "is new, and nothing bounds it"
        walked = (*cycle.into, *cycle.around)
        yield _told("weaker", "cycle", f"the cycle {cycle.words} {said}", walked)
    now = {one.words for one in new.cycles}
    for cycle in old.cycles:
        if cycle.words not in now:
            yield Consequence("stronger", "cycle", f"the cycle {cycle.words} is bounded, or gone")


def _bounds(old: Bound, new: Bound) -> Iterator[Consequence]:
    for field, words in BOUNDS.items():
        was: float | None = getattr(old, field)
        now: float | None = getattr(new, field)
        if was == now:
            continue
        less = was is not None and (now is None or now > was)
        said = f"worst-case {words} {_number(was)} -> {_number(now)}"
        yield Consequence("weaker" if less else "stronger", "bound", said)


def _nodes(old: _Side[S], new: _Side[S]) -> Iterator[Consequence]:
    """Yield the nodes that are others under the same name, or have other parameters."""
    for name, now in new.graph.nodes.items():
        was = old.graph.nodes.get(name)
        if was is None:
            continue
        if type(was).__qualname__ != type(now).__qualname__ or was.kind != now.kind:
            weak = is_guard(was) or is_guard(now) or now.kind in {"execute", "graph", "act"}
            said = f"`{name}` is a {_sort(now)}, and was a {_sort(was)}"
            yield Consequence("weaker" if weak else "changed", "node", said)
            continue
        for one in parameter_changes(was, now):
            if not (now.kind == "graph" and _of_child(one.name)):
                yield Consequence(one.effect, "node", one.said(f"`{name}`"))


def _of_child(parameter: str) -> bool:
    """Whether it is a child's gate or budget, which are compared as what they let through."""
    names = parameter.split(".")
    return "budget" in names or ("gate" in names and "conditions" not in names)


def _given(before: Graph[S], after: Graph[S]) -> Iterator[Consequence]:
    for one in given_changes(before, after):
        yield Consequence(one.effect, "given", one.said("what runs are given"))


def _sort(node: Node[S, Outcome]) -> str:
    return f"{type(node).__qualname__} of kind {node.kind}"


def _properties(old: Report, new: Report) -> Iterator[Consequence]:
    """Yield what the checker finds now and did not, and the reverse.

    Cycles and temporal rules are told already.
    """
    was, now = ({_key(one): one for one in report.findings} for report in (old, new))
    for key, one in now.items():
        if key not in was and one.code not in TOLD:
            effect: Effect = "weaker" if one.severity == "error" else "changed"
            said = f"{one.code} fails at {one.place}: {one.message.rstrip('.')}"
            yield Consequence(effect, one.code, said, (), *_walked(one))
    for key, one in was.items():
        if key not in now and one.code not in TOLD:
            said = f"{one.code} at {one.place} is mended: {one.message.rstrip('.')}"
            yield Consequence("stronger", one.code, said)
    for unknown in new.unknown:
        if unknown.code in old.proven and unknown.code not in TOLD:
            said = f"{unknown.code} can no longer be decided: {unknown.reason.rstrip('.')}"
            yield Consequence("weaker", unknown.code, said)


def _guards(side: _Side[S], guard: str, node: str) -> bool:
    return side.kind(guard) not in BOOKKEEPING or side.acts(node)


def _grouped(pairs: Iterable[Pair]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield what has the same nodes behind it together, with these nodes."""
    behind: dict[str, list[str]] = {}
    for guard, node in pairs:
        behind.setdefault(guard, []).append(node)
    groups: dict[tuple[str, ...], list[str]] = {}
    for guard, nodes in behind.items():
        groups.setdefault(tuple(nodes), []).append(guard)
    return ((tuple(guards), nodes) for nodes, guards in groups.items())


def _acting_first(side: _Side[S], nodes: Sequence[str]) -> list[str]:
    return sorted(nodes, key=lambda one: not side.acts(one))


def _shown(side: _Side[S], nodes: Sequence[str]) -> str:
    """Return the node whose way is shown: one that acts, if there is one."""
    return next((one for one in nodes if side.acts(one)), nodes[0])


def _told(
    effect: Effect, subject: str, said: str, walked: Trail, pairs: Iterable[Pair] = ()
) -> Consequence:
    witness = (walked[0].source, *(way.target for way in walked)) if walked else ()
    ways = tuple(way.word for way in walked)
    return Consequence(effect, subject, said, tuple(pairs), witness, ways)


def _walked(finding: Finding) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return (finding.witness, finding.outcomes) if finding.outcomes else ((), ())


def _key(finding: Finding) -> tuple[str, str, str, str]:
    """Return what makes a finding the same: where it is, not its words; of no place, its words."""
    where = finding.node or finding.outcome
    return finding.code, finding.node, finding.outcome, "" if where else finding.message


def _becomes(nodes: Sequence[str]) -> str:
    if tuple(nodes) == (END,):
        return "a run can end"
    inner = [one for one in nodes if one != END]
    said = f"{_names(inner, 'and')} {_verb(inner, 'becomes', 'become')} reachable"
    return f"{said}, and a run can end," if END in nodes else said


def _names(nodes: Sequence[str], joint: str) -> str:
    shown = [f"`{one}`" for one in nodes[:NAMED_MAX]]
    more = len(nodes) - len(shown)
    if more > 0:
        shown.append(f"{more} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {joint} {shown[-1]}"


def _verb(nodes: Sequence[str], one: str, several: str) -> str:
    return one if len(nodes) == 1 else several


def _number(value: float | None) -> str:
    return "unbounded" if value is None else f"{value:,}"
