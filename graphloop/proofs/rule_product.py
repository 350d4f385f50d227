"""RuleProduct: the product graph of a graph and the automaton of a temporal rule.

The table does not show which tools a model calls, which calls people approve, or which tools ran
before a conversation was handed to a run. The search assumes that any or none of these happen.
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
"""A name that stands for all tools that the rule does not name."""

BEFORE_CYCLE: Final = "\0"
"""An artificial first state for the search of a cycle through a node."""

_Word: TypeAlias = Sequence[Happening]
"""A sequence of happenings, such as the start and the end of one tool call."""


@final
class HiddenEvents:
    """The automaton states of a rule after tool calls and approvals, which the table hides."""

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
        """Return `state` and all automaton states reachable by tool calls and approvals."""
        if state not in self._after:
            self._after[state] = self._reachable_states([state], self._words)
        return self._after[state]

    def before_the_run(self) -> frozenset[int]:
        """Return the automaton states in which a run with a handed-in conversation may start.

        Tool calls before the last question are applied first, then those after it. A conversation
        contains no approvals.
        """
        long_ago = [(earlier(tool),) for tool in self._tools]
        since = [past_call(tool, well=well) for tool in self._tools for well in (True, False)]
        return self._reachable_states(
            self._reachable_states([self._automaton.start], long_ago), since
        )

    def _reachable_states(self, states: Iterable[int], words: Sequence[_Word]) -> frozenset[int]:
        """Return all automaton states reachable by these happenings, in any order and number."""
        reached = set(states)
        todo = [*reached]
        while todo:
            state = todo.pop()
            new = {reduce(self._automaton.after, word, state) for word in words} - reached
            reached |= new
            todo += new
        return frozenset(reached)


_Bound: TypeAlias = tuple[str, type[Outcome], Cap]
"""A node, one of its outcomes, and the cap on that outcome in the node's contract."""


class _State(NamedTuple):
    """A state of the product: a node, the automaton's state, and the counters of caps."""

    node: str
    state: int
    counts: tuple[int, ...]


class RuleSearch(NamedTuple):
    """The result of a search for a violation of a temporal rule.

    Attributes:
        breach: the node at which the rule is violated; None if no violation was found.
        path: the path to that node.
        cut: whether the search stopped at its limit before it was complete.
    """

    breach: str | None
    path: TablePath
    cut: bool

    @property
    def holds(self) -> bool:
        """Whether the search was complete and found no path that violates the rule."""
        return self.breach is None and not self.cut


class RuleProduct(Generic[S]):
    """The product graph of a graph and the automaton of a temporal rule.

    Args:
        graph: the graph.
        automaton: the automaton of the rule.
        arcs_max: the most transitions that the searches of this product may visit in total.
    """

    def __init__(self, graph: ProofGraph[S], automaton: Automaton, arcs_max: int) -> None:
        self.graph = graph
        self.automaton = automaton
        self.hidden = HiddenEvents(automaton)
        self.bounds = _reachable_caps(graph)
        self._remaining = self._arcs_max = arcs_max
        self._excluded = Exclusions()
        self._counted: tuple[_Bound, ...] = ()
        self._cut = False

    @cached_property
    def rows(self) -> Mapping[str, Sequence[tuple[Arc, Sequence[Happening]]]]:
        """The transitions out of each node, each with its happenings that the rule names."""
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
        """The nodes from which a run can reach no happening that the rule names."""
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
        """Search for a violation on paths that are not excluded, with a renewed search limit."""
        self._remaining, self._excluded = self._arcs_max, excluded
        return self.search(tools=False)

    def search(self, *, tools: bool, first: Collection[int] | None = None) -> RuleSearch:
        """Search for a shortest path that violates the rule and respects the caps of contracts.

        Counters enlarge the product, so a cap is counted only after a found path exceeded it.

        Args:
            tools: whether tool calls and approvals, which the table hides, may happen.
            first: the automaton states in which the run may start; the start state by default.
        """
        starts = [self.automaton.start] if first is None else sorted(first)
        while True:
            result = self._search_once(starts, tools=tools)
            exceeded = self.exceeded(result.path)
            if result.breach is None or exceeded is None:
                return result
            self._counted += (exceeded,)

    def _search_once(self, starts: Iterable[int], *, tools: bool) -> RuleSearch:
        """Return the result of one search, which counts only the caps in `_counted`."""
        node, counts = self.graph.start, (0,) * len(self._counted)
        first = [self.automaton.after(state, entered(node)) for state in starts]
        self._cut = False
        path = shortest_path(
            [_State(node, state, counts) for state in first],
            lambda at: self._arcs_from(at, tools=tools),
            lambda at, _: self._is_breach(at, tools=tools),
            self._excluded,
        )
        if path is None:
            return RuleSearch(None, (), self._cut)
        return RuleSearch(path[-1].target if path else node, path, self._cut)

    def _arcs_from(self, at: _State, *, tools: bool) -> Iterator[tuple[Arc, _State]]:
        """Yield the transitions out of a state of the product; none after the search limit."""
        if at.node == END:
            return
        # From an irrelevant node, only reaching END in an owing state violates the rule.
        if at.node in self.irrelevant and at.state not in self.automaton.owing:
            return
        states = [at.state]
        if tools and self.acts(at.node):
            states = sorted(self.hidden.after(at.state))
        row = self.rows[at.node]
        self._remaining -= len(row) * (len(self._counted) + len(states))
        if self._remaining < 0:
            self._cut = True
            return
        for arc, word in row:
            counts = self._counts_after(self._counted, arc, at.counts) if self._counted else ()
            if counts is not None:
                for state in states:
                    after = reduce(self.automaton.after, word, state)
                    yield arc, _State(arc.target, after, counts)

    def _is_breach(self, at: _State, *, tools: bool) -> bool:
        """Return whether a state violates the rule, or a tool call or approval there may do so."""
        broken = self.automaton.broken
        if at.state == broken or (at.node == END and at.state in self.automaton.owing):
            return True
        return tools and self.acts(at.node) and broken in self.hidden.after(at.state)

    def repeated(self) -> RuleSearch | None:
        """Return a path that visits a node more often than an `at_most` rule allows, if any.

        The path repeats a shortest cycle. It does not count if it exceeds a cap.
        """
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
        """Return the first cap (a contract's limit on an outcome) that a path exceeds, if any."""
        times = Counter((arc.source, arc.outcome) for arc in path)
        # For speed, count only the caps of transitions that the path takes too often.
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
        """Return the counters of caps (limits on outcomes) after a transition; None if too high."""
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
        """Return whether tools may run, or people may approve calls, at a node."""
        node = self.graph.nodes.get(name)
        if node is None:
            return False
        contract = self.graph.contracts[name]
        if contract is None or node.kind in {"gate", "execute"}:
            return True
        # A node of kind `human` asks about an answer, so it approves no call.
        return contract.tools or (contract.asks and node.kind != "human")


def _reachable_caps(graph: ProofGraph[S]) -> tuple[_Bound, ...]:
    """Return the caps (limits on outcomes) of reachable nodes, except for impossible outcomes."""
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
    """Return the counter of a cap (a limit on an outcome) after a transition; None if exceeded.

    The lowest bit says whether a counted move happened since the outcome was last taken. The other
    bits count how often it was taken. In doubt the counter stays lower, which rules out less.

    Args:
        cap: the cap.
        count: the counter before the transition.
        contract: the contract of the transition's node.
        outcome: the outcome of the transition.
        is_own: whether `cap` is the cap of this transition.
    """
    times, moved = divmod(count, 2)
    if is_own and (moved or not cap.counts):
        times, moved = times + 1, 0
        if times > cap.times:
            return None
    if contract is None:
        # A node without a contract may make any move, so it may reset the counter.
        return 0 if cap.resets or cap.counts else 2 * times
    may_move = contract.may_move(outcome)
    if may_move & cap.resets or (cap.counts and "again" in may_move):
        return 0
    # A node that takes up calls of a handed-in conversation may leave by `Calls` without a move.
    if contract.moved(outcome) & cap.counts and not (outcome is Calls and contract.takes_up_calls):
        moved = 1
    return 2 * times + moved
