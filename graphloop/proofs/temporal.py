"""GL12: which temporal rules hold whatever happens, which can be broken, which need the monitor.

The automaton of each rule is walked beside the graph. Nodes and outcomes are in the table, so what
they do to a rule is certain. Which tools a model calls is not: at a gate, at a node that runs
tools, and at one that promises nothing, any tools may run and any approvals be given, or none. A
rule that holds whatever runs there, and whatever a conversation that is handed in says has run
before, is proven; one that is broken though nothing runs is violated, with the shortest way to show
it; of any other, only the monitor can keep the run to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar, final

from ..contract import Cap, Contract
from ..graph import NodeGraph
from ..outcomes import Outcome
from ..rules import (
    AtMost,
    Automaton,
    Followed,
    Rules,
    TemporalRule,
    automaton_of,
    describe_rule,
    entered,
    taken,
    to_be_brought,
    words_of,
)
from .ground import END, Ground, Trail, Way, led_to, search, trail
from .report import Finding, Unknown
from .rule_visits import Most
from .unseen import Unseen
from .walker import Barred

__all__ = ["LINES_MAX", "RULES", "Decision", "Status", "decided", "rules_given", "temporal"]

S = TypeVar("S")

RULES: Final = "rules"
"""The option of a graph's runs that holds their rules."""

LINES_MAX: Final = 200_000
"""How many lines are walked for all rules together; then a search proves nothing, and says so.

Each bound that is counted along counts as a line more.
"""

LINES_MIN: Final = 20_000
"""How many lines are walked for one rule, however many there are."""

AROUND: Final = "\0"
"""Where a way begins that comes back to a node."""

_DENIES: Final = "Only the monitor can decide; it denies such a call."
_TELLS: Final = "Only the monitor can decide; it tells, for no gate can stop that."

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


def rules_given(graph: NodeGraph[S]) -> Rules:
    """Return the temporal rules of a graph, and those that its runs are given."""
    given = graph.run_options.get(RULES)
    return graph.rules & given if isinstance(given, Rules) else graph.rules


def temporal(
    ground: Ground[S], rules: Rules, most: Most[S] | None = None
) -> tuple[tuple[Finding, ...], tuple[Unknown, ...]]:
    """Return the findings about rules that can be broken, and what only the monitor can decide."""
    told: list[Finding | Unknown] = []
    lines = _lines(rules)
    for one in decided(ground, rules, most):
        if one.status == "violated":
            told.append(
                ground.told(partial(_broken, ground, one, lines), partial(_told, ground, one.rule))
            )
        elif one.status == "unknown":
            reason = f"{one.reason}{to_be_brought(one.rule, ground.graph.tool_names or ())}"
            told.append(Unknown("GL12", f"rule {describe_rule(one.rule)!r}: {reason}"))
    findings = tuple([one for one in told if isinstance(one, Finding)])
    return findings, tuple([one for one in told if isinstance(one, Unknown)])


def _broken(ground: Ground[S], decision: Decision, lines: int, barred: Barred) -> Trail | None:
    """Return a shortest way that breaks a rule without what is barred."""
    if not barred:
        return decision.walked
    product = _Product(ground, automaton_of(decision.rule), lines, barred)
    found = product.walk(tools=False)
    return None if found.breach is None else found.walked


def _told(ground: Ground[S], rule: TemporalRule, walked: Trail) -> Finding:
    node = walked[-1].target if walked else ground.graph.start
    return ground.finding(
        "GL12",
        f"the rule {describe_rule(rule)!r} can be broken.",
        f"lead every way to {node!r} so that the rule holds, or change the rule.",
        node=node if node in ground.graph.nodes else "",
        walked=walked,
        place=f"node {node!r}",
    )


def decided(ground: Ground[S], rules: Rules, most: Most[S] | None = None) -> tuple[Decision, ...]:
    """Return what can be said of each rule, whose words have been looked up.

    Raises:
        ConfigError: a word has not been looked up (`names.resolve`).
    """
    lines = _lines(rules)
    visits = Most(ground) if most is None else most
    return tuple([_decided(_Product(ground, automaton_of(rule), lines), visits) for rule in rules])


def _lines(rules: Rules) -> int:
    """Return how many lines are walked for each of some rules, whenever a way is looked for."""
    return max(LINES_MIN, LINES_MAX // max(1, len(rules)))


def _decided(product: _Product[S], most: Most[S]) -> Decision:
    """Decide a rule: first by what is known of visits, then by walking."""
    rule = product.automaton.rule
    certain = product.repeated()
    if certain is None and most.keeps(rule):
        return Decision(rule, "proven")
    certain = certain or product.walk(tools=False)
    if certain.breach is not None:
        return Decision(rule, "violated", certain.walked, certain.breach)
    loose, handed_in = product.walk(tools=True), False
    if loose.holds:
        begun = product.unseen.before_the_run() - {product.automaton.start}
        loose, handed_in = product.walk(tools=True, begun=begun), True
    if loose.holds:
        return Decision(rule, "proven")
    if loose.breach is None or certain.cut:
        reason = "there are too many places to look at. The monitor watches the rule."
        return Decision(rule, "unknown", loose.walked, loose.breach or "", reason)
    reason = _reason(rule, loose.breach, handed_in=handed_in)
    return Decision(rule, "unknown", loose.walked, loose.breach, reason)


def _reason(rule: TemporalRule, node: str, *, handed_in: bool) -> str:
    """Return why only the monitor can decide, and what it does about it."""
    unseen = "which tools run is not in the graph"
    if isinstance(rule, Followed):
        ends = f"{unseen}: the run may end at {node!r} while it is owed."
        if handed_in:
            ends = (
                "a conversation that is handed in may owe it, and the run may end at "
                f"{node!r} without."
            )
        return f"{ends} {_TELLS}"
    match rule.what.partition(":")[0]:
        case "tool":
            return f"{unseen}: at {node!r} one may run that breaks it. {_DENIES}"
        case "approval":
            return f"{unseen}: at {node!r} one may be approved that breaks it. {_DENIES}"
        case _:
            return f"{unseen}, and the rule hangs on them at {node!r}. {_TELLS}"


_Bounded: TypeAlias = tuple[str, type[Outcome], Cap]
"""A bound that a node promises on one of its outcomes."""


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
    """A graph and a rule, walked side by side over so many lines at most."""

    def __init__(
        self, ground: Ground[S], automaton: Automaton, lines: int, barred: Barred | None = None
    ) -> None:
        self.ground = ground
        self.automaton = automaton
        self.unseen = Unseen(automaton)
        self.caps = _caps(ground)
        self.lines = lines
        self.barred = barred or Barred()

    def walk(self, *, tools: bool, begun: Collection[int] | None = None) -> _Walk:
        """Walk all ways, the shortest first, until one breaks the rule that nodes may go.

        The bounds that nodes promise only rule ways out, so none is counted before a way is found
        that it rules out.

        Args:
            tools: whether any tools may run and any approvals be given where that can be.
            begun: the states that a run may begin in; that of a new one if not given.
        """
        starts = [self.automaton.start] if begun is None else sorted(begun)
        caps: list[_Bounded] = []
        while True:
            found = self._walked(starts, tuple(caps), tools=tools)
            broken = self.refused(found.walked)
            if found.breach is None or broken is None:
                return found
            caps.append(broken)

    def _walked(self, starts: Iterable[int], caps: tuple[_Bounded, ...], *, tools: bool) -> _Walk:
        node, counts = self.ground.graph.start, (0,) * len(caps)
        states = [self.automaton.after(one, entered(node)) for one in starts]
        walk = _Steps(self, caps, tools=tools)
        places = [_Place(node, state, counts) for state in states]
        walked = led_to(
            places, walk.steps, lambda place, _: self.breaks(place, tools=tools), self.barred
        )
        if walked is None:
            return _Walk(None, (), walk.cut)
        return _Walk(walked[-1].target if walked else node, walked, walk.cut)

    def repeated(self) -> _Walk | None:
        """Return the shortest way that visits a node too often, unless a bound rules it out."""
        rule, ground = self.automaton.rule, self.ground
        kind, _, node = words_of(rule)[0].partition(":")
        if not isinstance(rule, AtMost) or rule.per or kind != "node" or node not in ground.parents:
            return None

        def steps(name: str) -> Iterable[tuple[Way, str]]:
            ways = ground.ways.get(node if name == AROUND else name, ())
            return ((way, way.target) for way in ways)

        found = search([AROUND], steps)
        if node not in found:
            return None
        walked = (*ground.trail(node), *trail(found, node) * rule.times)
        return _Walk(node, walked, cut=False) if self.refused(walked) is None else None

    def refused(self, walked: Trail) -> _Bounded | None:
        """Return the first bound that a node on a way promises and the way does not keep to."""
        taken_so_often = Counter((way.source, way.outcome) for way in walked)
        # A bound can be exceeded only by a line that is taken more often than it allows.
        caps = tuple([cap for cap in self.caps if taken_so_often[cap[:2]] > cap[2].times])
        counts: tuple[int, ...] = (0,) * len(caps)
        for way in walked if caps else ():
            after = self.counted(caps, way, counts)
            if after is None:
                return next(
                    cap
                    for cap, count in zip(caps, counts, strict=True)
                    if self.counted((cap,), way, (count,)) is None
                )
            counts = after
        return None

    def counted(
        self, caps: tuple[_Bounded, ...], way: Way, counts: tuple[int, ...]
    ) -> tuple[int, ...] | None:
        """Return the counters after a line was taken; None if a bound rules that out."""
        contract = self.ground.contracts[way.source]
        after: list[int] = []
        for (source, outcome, cap), count in zip(caps, counts, strict=True):
            is_own = way.source == source and way.outcome is outcome
            new = _count(cap, count, contract, way.outcome, is_own=is_own)
            if new is None:
                return None
            after.append(new)
        return tuple(after)

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
            place.node == END and place.state in automaton.owing
        ):
            return True
        return (
            tools and self.acts(place.node) and automaton.broken in self.unseen.after(place.state)
        )


class _Steps(Generic[S]):
    """The lines out of each place, until too many have been walked."""

    def __init__(self, product: _Product[S], caps: tuple[_Bounded, ...], *, tools: bool) -> None:
        self.product = product
        self.caps = caps
        self.tools = tools
        self.cut = False

    def steps(self, place: _Place) -> Iterable[tuple[Way, _Place]]:
        """Yield where each line out of a place leads."""
        product = self.product
        if place.node == END:
            return
        states = [place.state]
        if self.tools and product.acts(place.node):
            states = sorted(product.unseen.after(place.state))
        ways = product.ground.ways[place.node]
        product.lines -= len(ways) * (len(self.caps) + len(states))
        if product.lines < 0:
            self.cut = True
            return
        for way in ways:
            counts = product.counted(self.caps, way, place.counts)
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


def _caps(ground: Ground[S]) -> tuple[_Bounded, ...]:
    """Return the bounds of all nodes that runs arrive at, but those that leave no line."""
    held: list[_Bounded] = []
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
    # By these a run may once leave without having moved anything.
    if contract.moved(outcome) & cap.counts and outcome not in contract.at_first:
        moved = 1
    return 2 * taken_before + moved
