"""GL12: which temporal rules hold whatever happens, which can be broken, which need the monitor.

The automaton of each rule is walked beside the graph. Nodes and outcomes are in the table, so what
they do to a rule is certain. Which tools a model calls is not: at a gate, at a node that runs
tools, and at one that promises nothing, any tools may run and any approvals be given, or none. A
rule that holds whatever runs there is proven; one that is broken though nothing runs is violated,
with the shortest way to show it; of any other, only the monitor can keep the run to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar, final

from ..contract import Cap, Contract
from ..outcomes import Outcome
from ..temporal import Rules, TemporalRule, describe_rule, words_of
from ..temporal_automata import (
    Automaton,
    Happening,
    approval_of,
    automaton_of,
    entered,
    ran,
    taken,
)
from .ground import END, Ground, Trail, Way, search, trail
from .report import Finding, Unknown

__all__ = ["PLACES_MAX", "Decision", "Status", "decided", "temporal"]

S = TypeVar("S")

PLACES_MAX: Final = 200_000
"""After how many places of graph and automaton a search is given up, and nothing is proven.

Where bounds are counted along, each four of them count as a place more.
"""

SOME_TOOL: Final = "\0"
"""A tool that no rule names, for it stands for all of them."""

Status: TypeAlias = Literal["proven", "violated", "unknown"]


@final
@dataclass(frozen=True, slots=True)
class Decision:
    """What can be said of a rule before a run.

    Attributes:
        rule: the rule.
        status: whether it holds, can be broken, or neither is known.
        walked: a shortest way that breaks it, or may do so; empty where it is proven.
        node: where that ends; empty where it is proven.
        reason: why nothing is known; empty otherwise.
    """

    rule: TemporalRule
    status: Status
    walked: Trail = ()
    node: str = ""
    reason: str = ""


def temporal(ground: Ground[S], rules: Rules) -> tuple[tuple[Finding, ...], tuple[Unknown, ...]]:
    """Return the findings about rules that can be broken, and what only the monitor can decide."""
    findings: list[Finding] = []
    unknowns: list[Unknown] = []
    for one in decided(ground, rules):
        said = describe_rule(one.rule)
        if one.status == "violated":
            findings.append(
                ground.finding(
                    "GL12",
                    f"the rule {said!r} can be broken.",
                    f"lead every way to {one.node!r} so that the rule holds, or change the rule.",
                    node=one.node if one.node in ground.graph.nodes else "",
                    walked=one.walked,
                    place=f"node {one.node!r}",
                )
            )
        elif one.status == "unknown":
            unknowns.append(Unknown("GL12", f"rule {said!r}: {one.reason}"))
    return tuple(findings), tuple(unknowns)


def decided(ground: Ground[S], rules: Rules) -> tuple[Decision, ...]:
    """Return what can be said of each rule, whose words have been looked up.

    Raises:
        ConfigError: a word has not been looked up (`temporal_names.resolve`).
    """
    return tuple([_decided(_Product(ground, automaton_of(rule))) for rule in rules])


def _decided(product: _Product[S]) -> Decision:
    """Decide a rule: first without the nodes' bounds, which only ever rule ways out."""
    rule = product.automaton.rule
    loose = product.walk(tools=True, bounded=False)
    if loose.holds:
        return Decision(rule, "proven")
    certain = product.walk(tools=False, bounded=False)
    if certain.breach is not None and not product.keeps(certain.walked):
        certain = product.walk(tools=False, bounded=True)
    if certain.breach is not None:
        return Decision(rule, "violated", certain.walked, certain.breach)
    if loose.breach is None or not product.keeps(loose.walked):
        loose = product.walk(tools=True, bounded=True)
        if loose.holds:
            return Decision(rule, "proven")
    if loose.breach is None or certain.cut:
        reason = "there are too many places to look at. The monitor watches the rule."
        return Decision(rule, "unknown", loose.walked, loose.breach or "", reason)
    reason = (
        f"which tools run is not in the graph: at {loose.breach!r} one may run that breaks it. "
        "Only the monitor can decide; it denies such a call."
    )
    if words_of(rule)[0].partition(":")[0] != "tool":
        reason = (
            f"which tools run is not in the graph, and the rule hangs on them at {loose.breach!r}. "
            "Only the monitor can decide; it tells, for no gate can stop that."
        )
    return Decision(rule, "unknown", loose.walked, loose.breach, reason)


class _Place(NamedTuple):
    """Where a walk is: at a node, in a state of the rule, with what each bound has counted."""

    node: str
    state: int
    counts: tuple[int, ...]


class _Walk(NamedTuple):
    """What a walk has come to: the node where the rule is broken, if it is, and the way there."""

    breach: str | None
    walked: Trail
    cut: bool

    @property
    def holds(self) -> bool:
        """Whether every way was walked, and none breaks the rule."""
        return self.breach is None and not self.cut


class _Product(Generic[S]):
    """A graph and a rule, walked side by side."""

    def __init__(self, ground: Ground[S], automaton: Automaton) -> None:
        self.ground = ground
        self.automaton = automaton
        self.any_tools = _any_tools(automaton)
        self.caps = _caps(ground)
        self.closures: dict[int, frozenset[int]] = {}

    def walk(self, *, tools: bool, bounded: bool) -> _Walk:
        """Walk all ways, the shortest first.

        Args:
            tools: whether any tools may run and any approvals be given where that can be.
            bounded: whether nodes keep to the bounds that they promise.
        """
        automaton, start = self.automaton, self.ground.graph.start
        state = automaton.after(automaton.start, entered(start))
        walk = _Steps(self, tools=tools, bounded=bounded)
        first = _Place(start, state, (0,) * len(self.caps) if bounded else ())
        found = search([first], walk.steps)
        for place in found:
            if self.breaks(place, tools=tools):
                return _Walk(place.node, trail(found, place), walk.cut)
        return _Walk(None, (), walk.cut)

    def keeps(self, walked: Trail) -> bool:
        """Whether a way keeps to all that the nodes on it promise."""
        counts: tuple[int, ...] | None = (0,) * len(self.caps)
        for way in walked:
            counts = None if counts is None else self.counted(way, counts)
        return counts is not None

    def counted(self, way: Way, counts: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the counters after a line was taken; None if a bound rules that out."""
        contract = self.ground.contracts[way.source]
        after: list[int] = []
        for (source, outcome, cap), count in zip(self.caps, counts, strict=True):
            is_own = way.source == source and way.outcome is outcome
            new = _count(cap, count, contract, way.outcome, is_own=is_own)
            if new is None:
                return None
            after.append(new)
        return tuple(after)

    def closure(self, state: int) -> frozenset[int]:
        """Return the states that any tools and approvals can lead to from a state."""
        if state not in self.closures:
            seen, todo = {state}, [state]
            while todo:
                here = todo.pop()
                new = {self.automaton.after(here, one) for one in self.any_tools} - seen
                seen |= new
                todo += new
            self.closures[state] = frozenset(seen)
        return self.closures[state]

    def acts(self, node: str) -> bool:
        """Whether tools may run, or approvals be given, at a node."""
        found = self.ground.graph.nodes.get(node)
        if found is None:
            return False
        contract = self.ground.contracts[node]
        if contract is None or found.kind in {"gate", "execute"}:
            return True
        # Who asks a person about an answer, and not about calls, lets no call through.
        return contract.tools or (contract.asks and found.kind != "human")

    def breaks(self, place: _Place, *, tools: bool) -> bool:
        """Whether the rule is broken at a place, or can be by a tool that may run there."""
        automaton = self.automaton
        if place.state == automaton.broken or (
            place.node == END and place.state == automaton.owing
        ):
            return True
        return tools and self.acts(place.node) and automaton.broken in self.closure(place.state)


class _Steps(Generic[S]):
    """The lines out of each place, until there are too many places."""

    def __init__(self, product: _Product[S], *, tools: bool, bounded: bool) -> None:
        self.product = product
        self.tools = tools
        self.bounded = bounded
        self.left = PLACES_MAX
        self.price = 1 + (len(product.caps) // 4 if bounded else 0)
        self.found = False
        self.cut = False

    def steps(self, place: _Place) -> Iterable[tuple[Way, _Place]]:
        """Yield where each line out of a place leads."""
        product = self.product
        if self.found or place.node == END:
            return
        if product.breaks(place, tools=self.tools):
            # Places come in the order in which they are found: this is the nearest.
            self.found = True
            return
        self.left -= self.price
        if self.left < 0:
            self.cut = True
            return
        states: Iterable[int] = (place.state,)
        if self.tools and product.acts(place.node):
            states = sorted(product.closure(place.state))
        for way in product.ground.ways[place.node]:
            counts = product.counted(way, place.counts) if self.bounded else ()
            if counts is not None:
                yield from self._led(way, states, counts)

    def _led(
        self, way: Way, states: Iterable[int], counts: tuple[int, ...]
    ) -> Iterator[tuple[Way, _Place]]:
        automaton = self.product.automaton
        outcome, target = taken(way.source, way.word), entered(way.target)
        for state in states:
            after = automaton.after(automaton.after(state, outcome), target)
            yield way, _Place(way.target, after, counts)


def _any_tools(automaton: Automaton) -> tuple[Happening, ...]:
    """Return a happening for every tool and approval that the rule can tell from others."""
    kinds = [word.partition(":") for word in automaton.words]
    tools = {name for kind, _, name in kinds if kind in {"tool", "approval"}}
    names = sorted({*tools, SOME_TOOL})
    every = [made(name) for name in names for made in (ran, approval_of)]
    return tuple([one for one in every if automaton.letter(one)])


def _caps(ground: Ground[S]) -> tuple[tuple[str, type[Outcome], Cap], ...]:
    """Return the bounds of all nodes that runs arrive at, but those that leave no line."""
    held: list[tuple[str, type[Outcome], Cap]] = []
    for node in ground.reached:
        contract = ground.contracts[node]
        caps: Mapping[type[Outcome], Cap] = {} if contract is None else contract.caps
        held += [(node, outcome, cap) for outcome, cap in caps.items() if not cap.never]
    return tuple(held)


def _count(
    cap: Cap, count: int, contract: Contract | None, outcome: type[Outcome], *, is_own: bool
) -> int | None:
    """Return a bound's counter after a line was taken, or None if it rules that out.

    What is counted stands in the upper digits; the lowest says that something has moved on since
    the outcome was last taken. Every doubt leaves the counter lower: that rules out less.
    """
    taken_before, moved = divmod(count, 2)
    if is_own and (moved or not cap.counts):
        taken_before, moved = taken_before + 1, 0
        if taken_before > cap.times:
            return None
    if contract is None:
        # It may move anything on, but nothing sets back a counter that nothing resets.
        return 0 if cap.resets or cap.counts else 2 * taken_before
    may_move = contract.may_move(outcome)
    if may_move & cap.resets or (cap.counts and "again" in may_move):
        return 0
    if contract.moved(outcome) & cap.counts:
        moved = 1
    return 2 * taken_before + moved
