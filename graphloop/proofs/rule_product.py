"""RuleProduct: the product of a graph with the automaton of a temporal rule.

The table does not show which tools a model calls, what people answer, or what ran before a
conversation was handed in. The search assumes that any of these may happen, or none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar, final

from ..contract import Cap, Contract
from ..outcomes import Calls, Outcome
from ..rules import (
    AtMost,
    Automaton,
    Happening,
    approved_call,
    earlier,
    entered,
    past_call,
    ran,
    returned,
    taken,
    words_of,
)
from .proof_graph import END, Arc, ProofGraph, TablePath, breadth_first, path_to, shortest_path
from .run_search import Exclusions

__all__ = ["HiddenEvents", "RuleProduct", "RuleSearch"]

S = TypeVar("S")

ANY_OTHER_TOOL: Final = "\0"
"""A tool that no rule names; it stands for all of these."""

BEFORE_CYCLE: Final = "\0"
"""The state at which a search for a cycle through a node begins."""

_Word: TypeAlias = Sequence[Happening]
"""Happenings in a row, with no other happening between."""


@final
class HiddenEvents:
    """The states of a rule's automaton after happenings that the table does not show."""

    def __init__(self, automaton: Automaton) -> None:
        parts = [word.partition(":") for word in automaton.words]
        tools = {name for kind, _, name in parts if kind in {"tool", "approval"}}
        self._automaton = automaton
        self._tools = sorted({*tools, ANY_OTHER_TOOL})
        self._words: list[_Word] = [
            (happening,)
            for tool in self._tools
            for happening in (
                ran(tool),
                approved_call(tool),
                returned(tool, well=True),
                returned(tool, well=False),
            )
            if automaton.letter(happening)
        ]
        self._after: dict[int, frozenset[int]] = {}

    @property
    def matter(self) -> bool:
        """Whether a tool or an approval may change the state of the automaton."""
        return bool(self._words)

    def after(self, state: int) -> frozenset[int]:
        """Return the states that tools and approvals may lead to from a state."""
        if state not in self._after:
            self._after[state] = self._closure([state], self._words)
        return self._after[state]

    def before_the_run(self) -> frozenset[int]:
        """Return the states that a run with a handed-in conversation may begin in.

        What ran before the last question comes first; no approval is part of a conversation.
        """
        long_ago = [(earlier(tool),) for tool in self._tools]
        since = [past_call(tool, well=well) for tool in self._tools for well in (True, False)]
        return self._closure(self._closure([self._automaton.start], long_ago), since)

    def _closure(self, states: Iterable[int], words: Sequence[_Word]) -> frozenset[int]:
        """Return the fixed point of states that these words, in any order, lead to."""
        reached = set(states)
        todo = [*reached]
        while todo:
            state = todo.pop()
            new = {reduce(self._automaton.after, word, state) for word in words} - reached
            reached |= new
            todo += new
        return frozenset(reached)


_Bound: TypeAlias = tuple[str, type[Outcome], Cap]
"""A node, an outcome, and the bound that the node promises for it."""


class _State(NamedTuple):
    """A state of the product: a node, a state of the automaton, and the counters of bounds."""

    node: str
    state: int
    counts: tuple[int, ...]


class RuleSearch(NamedTuple):
    """The result of a search through the product.

    Attributes:
        breach: the node at which the rule is violated; None if the search found none.
        path: the path to that node.
        cut: whether the search gave up.
    """

    breach: str | None
    path: TablePath
    cut: bool

    @property
    def holds(self) -> bool:
        """Whether the whole product was searched and no path violates the rule."""
        return self.breach is None and not self.cut


class RuleProduct(Generic[S]):
    """The product of a graph with a rule's automaton.

    Args:
        graph: the graph.
        automaton: the automaton.
        arcs_max: the number of arcs after which all searches together give up.
    """

    def __init__(self, graph: ProofGraph[S], automaton: Automaton, arcs_max: int) -> None:
        self.graph = graph
        self.automaton = automaton
        self.hidden = HiddenEvents(automaton)
        self.bounds = _bounds(graph)
        self._left = self._arcs_max = arcs_max
        self._excluded = Exclusions()
        self._counted: tuple[_Bound, ...] = ()
        self._cut = False

    @cached_property
    def rows(self) -> Mapping[str, Sequence[tuple[Arc, Sequence[Happening]]]]:
        """The arcs out of each node, with the happenings that the rule names."""
        matters = self.automaton.letter
        entries = {
            name: list(filter(matters, [entered(name)])) for name in (*self.graph.reached, END)
        }
        return {
            name: [
                (arc, [*filter(matters, [taken(name, arc.word)]), *entries[arc.target]])
                for arc in self.graph.arcs[name]
            ]
            for name in self.graph.reached
        }

    @cached_property
    def irrelevant(self) -> frozenset[str]:
        """The nodes from which no path leads to a happening that the rule names."""
        sources: dict[str, list[str]] = {}
        relevant: dict[str, None] = {}
        for name, row in self.rows.items():
            if any(word for _, word in row) or (self.hidden.matter and self.acts(name)):
                relevant[name] = None
            for arc, _ in row:
                sources.setdefault(arc.target, []).append(name)
        todo = list(relevant)
        while todo:
            new = [name for name in sources.get(todo.pop(), ()) if name not in relevant]
            relevant.update(dict.fromkeys(new))
            todo += new
        return frozenset(self.rows) - relevant.keys()

    def without(self, excluded: Exclusions) -> RuleSearch:
        """Search all paths that are not excluded, with the full number of arcs."""
        self._left, self._excluded = self._arcs_max, excluded
        return self.search(tools=False)

    def search(self, *, tools: bool, begun: Collection[int] | None = None) -> RuleSearch:
        """Search for a shortest path that violates the rule and keeps the promised bounds.

        A bound only rules paths out, so it is counted after a path exceeded it, not before.

        Args:
            tools: whether hidden events may happen.
            begun: the states of the automaton to begin in; the start state by default.
        """
        starts = [self.automaton.start] if begun is None else sorted(begun)
        while True:
            result = self._search(starts, tools=tools)
            exceeded = self.exceeded(result.path)
            if result.breach is None or exceeded is None:
                return result
            self._counted += (exceeded,)

    def _search(self, starts: Iterable[int], *, tools: bool) -> RuleSearch:
        node, counts = self.graph.start, (0,) * len(self._counted)
        begun = [self.automaton.after(state, entered(node)) for state in starts]
        self._cut = False
        path = shortest_path(
            [_State(node, state, counts) for state in begun],
            lambda at: self._arcs_from(at, tools=tools),
            lambda at, _: self._is_breach(at, tools=tools),
            self._excluded,
        )
        if path is None:
            return RuleSearch(None, (), self._cut)
        return RuleSearch(path[-1].target if path else node, path, self._cut)

    def _arcs_from(self, at: _State, *, tools: bool) -> Iterator[tuple[Arc, _State]]:
        """Yield the arcs out of a state, until the number of arcs is used up."""
        if at.node == END:
            return
        # An irrelevant node can only violate a rule that is owed, by leading to END.
        if at.node in self.irrelevant and at.state not in self.automaton.owing:
            return
        states = [at.state]
        if tools and self.acts(at.node):
            states = sorted(self.hidden.after(at.state))
        row = self.rows[at.node]
        self._left -= len(row) * (len(self._counted) + len(states))
        if self._left < 0:
            self._cut = True
            return
        for arc, word in row:
            counts = self._counts_after(self._counted, arc, at.counts) if self._counted else ()
            if counts is not None:
                for state in states:
                    after = reduce(self.automaton.after, word, state)
                    yield arc, _State(arc.target, after, counts)

    def _is_breach(self, at: _State, *, tools: bool) -> bool:
        """Return whether the rule is violated in a state, or a hidden event may violate it."""
        broken = self.automaton.broken
        if at.state == broken or (at.node == END and at.state in self.automaton.owing):
            return True
        return tools and self.acts(at.node) and broken in self.hidden.after(at.state)

    def repeated(self) -> RuleSearch | None:
        """Return the shortest path that visits a node too often, unless a bound rules it out."""
        rule, graph = self.automaton.rule, self.graph
        kind, _, node = words_of(rule)[0].partition(":")
        if not isinstance(rule, AtMost) or rule.per or kind != "node" or node not in graph.parents:
            return None
        parents = breadth_first(
            [BEFORE_CYCLE],
            lambda name: graph.arcs_from(node if name == BEFORE_CYCLE else name),
        )
        if node not in parents:
            return None
        path = (*graph.path_to(node), *path_to(parents, node) * rule.times)
        return RuleSearch(node, path, cut=False) if self.exceeded(path) is None else None

    def exceeded(self, path: TablePath) -> _Bound | None:
        """Return the first promised bound that a path exceeds."""
        times = Counter((arc.source, arc.outcome) for arc in path)
        # Only an arc that a path takes more often than allowed can exceed a bound.
        bounds = tuple(bound for bound in self.bounds if times[bound[:2]] > bound[2].times)
        counts: tuple[int, ...] = (0,) * len(bounds)
        for arc in path if bounds else ():
            after = self._counts_after(bounds, arc, counts)
            if after is None:
                pairs = zip(bounds, counts, strict=True)
                return next(
                    bound for bound, n in pairs if self._counts_after((bound,), arc, (n,)) is None
                )
            counts = after
        return None

    def _counts_after(
        self, bounds: tuple[_Bound, ...], arc: Arc, counts: tuple[int, ...]
    ) -> tuple[int, ...] | None:
        """Return the counters of bounds after an arc; None if a bound rules the arc out."""
        contract = self.graph.contracts[arc.source]
        after: list[int] = []
        for (source, outcome, cap), count in zip(bounds, counts, strict=True):
            is_own = arc.source == source and arc.outcome is outcome
            new = _count_after(cap, count, contract, arc.outcome, is_own=is_own)
            if new is None:
                return None
            after.append(new)
        return tuple(after)

    def acts(self, name: str) -> bool:
        """Return whether tools may run, or approvals be given, at a node."""
        node = self.graph.nodes.get(name)
        if node is None:
            return False
        contract = self.graph.contracts[name]
        if contract is None or node.kind in {"gate", "execute"}:
            return True
        # A node that asks a person about an answer lets no call through.
        return contract.tools or (contract.asks and node.kind != "human")


def _bounds(graph: ProofGraph[S]) -> tuple[_Bound, ...]:
    """Return the bounds that reachable nodes promise for outcomes that they may leave by."""
    return tuple(
        (node, outcome, cap)
        for node in graph.reached
        if (contract := graph.contracts[node]) is not None
        for outcome, cap in contract.caps.items()
        if not cap.never
    )


def _count_after(
    cap: Cap, count: int, contract: Contract | None, outcome: type[Outcome], *, is_own: bool
) -> int | None:
    """Return the counter of a bound after an arc; None if the bound rules the arc out.

    The lowest bit says whether something has moved since the outcome was last taken; the other bits
    count. In doubt the counter stays lower, which rules out less.
    """
    times, moved = divmod(count, 2)
    if is_own and (moved or not cap.counts):
        times, moved = times + 1, 0
        if times > cap.times:
            return None
    if contract is None:
        # A node without a contract may reset any counter that can be reset.
        return 0 if cap.resets or cap.counts else 2 * times
    may_move = contract.may_move(outcome)
    if may_move & cap.resets or (cap.counts and "again" in may_move):
        return 0
    # A handed-in conversation may leave once by `Calls` without having moved anything.
    if contract.moved(outcome) & cap.counts and not (outcome is Calls and contract.takes_up_calls):
        moved = 1
    return 2 * times + moved
