"""RunSearch: the search for a simulated run that follows a given path of the table.

The kernel's own `step` applies each simulated event, and the search drops a run that leaves the
path. So a run has really taken each witness that `check` reports. If no run takes a path, the
search asks the proof for another path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product, takewhile
from operator import eq, itemgetter
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar, cast, final

from ..contract import Cap, contract_of
from ..errors import GraphError
from ..events import Started
from ..graph import NodeGraph
from ..node_protocol import Leave, Node, Reaction
from ..outcomes import Outcome
from ..replay import overheard
from ..run import Run
from ..step import Step, begin, step
from ..values import Message
from .sample_answers import CONVERSATIONS, SETUPS, answers, functions_of, sample

if TYPE_CHECKING:
    from .proof_graph import Arc, TablePath

__all__ = ["NO_RUN", "TRIES", "Exclusions", "Mark", "RunSearch"]

S = TypeVar("S")

TRIES: Final = 8
"""The most paths that are simulated for one finding, by each method of exclusion."""

EVENTS_PATH: Final = 1_000
"""The most events simulated for one path, plus `EVENTS_ARC` for each of its transitions."""

EVENTS_ARC: Final = 3
"""The additional events that may be simulated for each transition of a path or table."""

EVENTS_GRAPH: Final = 30_000
"""The most events simulated for one graph, plus `EVENTS_ARC` for each of its transitions."""

EVENTS_FINDING: Final = 15_000
"""The most events simulated for one finding, plus half the number of the table's transitions."""

SHARED_MIN: Final = 100
"""The shortest common prefix of two paths for which cached runs of the first path are reused."""

RUNS_MAX: Final = 6
"""The most runs that are continued from one position of a path."""

ROUNDS_MAX: Final = 30
"""The largest sum of caps for which a path repeats a loop until the caps are used up."""

NO_RUN: Final = "no run of this way was found"

NO_CAPS: Final[Mapping[type[Outcome], Cap]] = {}

_ANY: Final = ""
"""The last transition in a `Mark` if no excluded pair begins with the actual transition."""

Mark: TypeAlias = "tuple[Arc | str | None, int, tuple[int, ...]]"
"""A state of `Exclusions`: the last transition, a trie node, and counts of capped outcomes."""

_Cell: TypeAlias = tuple[str, type[Outcome]]
"""A cell of the transition table: a node and an outcome."""


class _LeftPathError(Exception):
    """A simulated run left the path, or has taken all its transitions."""


@final
@dataclass
class Exclusions:
    """The paths that a search leaves out because no run took them, as an automaton over paths.

    Attributes:
        pairs: pairs of transitions of which the second may not directly follow the first; the first
            is None at the start of a path.
        prefixes: paths with which no path may begin.
        after: for a transition, some outcomes of its node and a number. The transition is allowed
            only after the node has left by these outcomes that number of times.
    """

    pairs: frozenset[tuple[Arc | None, Arc]] = frozenset()
    prefixes: tuple[TablePath, ...] = ()
    after: Mapping[Arc, tuple[frozenset[type[Outcome]], int]] = field(
        default_factory=dict["Arc", tuple[frozenset[type[Outcome]], int]]
    )

    def __post_init__(self) -> None:
        """Build a trie of the prefixes; 0 is its root, and -1 means outside the trie."""
        self._firsts = {before for before, _ in self.pairs}
        self._trie: dict[tuple[int, Arc], int] = {}
        self._ends: set[int] = set()
        for path in self.prefixes:
            at = 0
            for arc in path:
                at = self._trie.setdefault((at, arc), len(self._trie) + 1)
            self._ends.add(at)

    def __bool__(self) -> bool:
        return bool(self.pairs or self.prefixes or self.after)

    @property
    def start(self) -> Mark:
        """The mark (automaton state) of an empty path."""
        return None, 0 if self.prefixes else -1, (0,) * len(self.after)

    def extended(self, mark: Mark, arc: Arc) -> Mark | None:
        """Return the mark after one more transition; None if the longer path is excluded."""
        if not self:
            return mark
        last, at, counts = mark
        at = self._trie.get((at, arc), -1)
        if (last, arc) in self.pairs or at in self._ends:
            return None
        needed = self.after.get(arc)
        if needed and counts[[*self.after].index(arc)] < needed[1]:
            return None
        counts = tuple(
            min(times, count + (arc.source == late.source and arc.outcome in bounded))
            for count, (late, (bounded, times)) in zip(counts, self.after.items(), strict=True)
        )
        return (arc if arc in self._firsts or arc.target == "END" else _ANY), at, counts

    def allows(self, mark: Mark | None, path: TablePath) -> bool:
        """Return whether no transition of `path` is excluded after a path with this mark."""
        for arc in path:
            mark = None if mark is None else self.extended(mark, arc)
        return mark is not None


@final
@dataclass
class RunSearch(Generic[S]):
    """Simulates runs along paths of one graph.

    Attributes:
        graph: the graph.
        events: the number of events that may still be simulated; -1 for the default number.
    """

    graph: NodeGraph[S]
    events: int = -1
    _cells: Sequence[_Cell] = ()
    _at: int = 0
    _steered: bool = False
    _conversations: Sequence[Sequence[Message]] = ()
    _runs: dict[int, Run[S]] = field(default_factory=dict[int, "Run[S]"])
    _failed: dict[int, set[TablePath]] = field(default_factory=dict[int, "set[TablePath]"])

    def __post_init__(self) -> None:
        """Wrap the graph, so that `_count_transition` sees each transition of a simulated run."""

        def observe(node: Node[S, Outcome], reaction: Reaction[S, Outcome]) -> None:
            if isinstance(reaction, Leave):
                self._count_transition((node.name, type(reaction.outcome)))

        self._size = sum(map(len, self.graph.table.values()))
        if self.events < 0:
            self.events = EVENTS_GRAPH + EVENTS_ARC * self._size
        self._observed = overheard(self.graph, observe)
        self._state = _initial_state(self.graph)
        self._functions = functions_of(self.graph)

    def _count_transition(self, cell: _Cell) -> None:
        """Count a transition of a run; raise if it is off the path, or the path's last one."""
        if cell != self._cells[self._at]:
            raise _LeftPathError
        self._at += 1
        if self._at == len(self._cells):
            raise _LeftPathError

    def first_run(self, path_without: Callable[[Exclusions], TablePath | None]) -> TablePath | None:
        """Return the first path that a simulated run takes; None if the search finds none.

        Args:
            path_without: returns a path that is not excluded; None if no such path is left.
        """
        least = max(0, self.events - EVENTS_FINDING - self._size // 2)
        for exclude in (_exclude_pair, self._exclude_until_bound):
            excluded = Exclusions()
            for _ in range(TRIES):
                path = path_without(excluded)
                # The search takes from the budget of events: six visited transitions are an event.
                self.events -= self._size // 6
                if path is None or self.events <= least:
                    break
                length = self.walk(path)
                if length == len(path):
                    return path
                excluded = exclude(excluded, path[: length + 1])
        return None

    def _exclude_until_bound(self, excluded: Exclusions, path: TablePath) -> Exclusions:
        """Return exclusions that rule out the last transition of `path` until its caps are used up.

        If the node has no usable caps, the result excludes `path` itself as a prefix.
        """
        arc = path[-1]
        contract = contract_of(self.graph.nodes[arc.source])
        caps = NO_CAPS if contract is None else contract.caps
        times = sum(cap.times for cap in caps.values())
        if arc in excluded.after or arc.outcome in caps or not 0 < times <= ROUNDS_MAX:
            return replace(excluded, prefixes=(*excluded.prefixes, path))
        return replace(excluded, after={**excluded.after, arc: (frozenset(caps), times)})

    def walk(self, path: TablePath) -> int:
        """Return the length of the longest prefix of `path` that a simulated run takes."""
        for length, prefixes in self._failed.items():
            if path[:length] in prefixes:
                return length - 1
        taken = self._simulate(path)
        if taken < len(path):
            self._failed.setdefault(taken + 1, set()).add(path[: taken + 1])
        return taken

    def _simulate(self, path: TablePath) -> int:
        """Return how many transitions the best run takes, over all setups and conversations."""
        cells = [(arc.source, arc.outcome) for arc in path]
        words = {"", *(arc.word for arc in path)}
        conversations = [messages for word, messages in CONVERSATIONS.items() if word in words]
        if conversations != self._conversations:
            self._conversations, self._runs = conversations, {}
        shared = sum(1 for _ in takewhile(bool, map(eq, cells, self._cells)))
        self._cells = cells
        self._runs = {at: run for at, run in self._runs.items() if at <= shared}
        at = max(self._runs, default=0)
        if at >= SHARED_MIN:
            more = len(cells) - at
            return self._search_events(self._runs, self.events - EVENTS_PATH - EVENTS_ARC * more)
        least = self.events - EVENTS_PATH - EVENTS_ARC * len(cells)
        best, kept = 0, (False, self._runs)
        for steered, messages, setup in product((False, True), reversed(conversations), SETUPS):
            if best == len(cells) or self.events <= max(0, least):
                break
            self._steered, self._runs = steered, {}
            started = Started(0.0, "witness", self.graph.name, messages, setup, self._state)
            at, run = self._apply_event(0, partial(begin, self._observed, started, self._state))
            if run is not None and not run.ended:
                at = self._search_events({at: run}, least)
            if at > best:
                best, kept = at, (steered, self._runs)
        self._steered, self._runs = kept
        return best

    def _search_events(self, runs: Mapping[int, Run[S]], least: int) -> int:
        """Return how many transitions the best run takes, by a depth-first search over events.

        Args:
            runs: the runs to continue, by the number of transitions that each has taken.
            least: the number of events that must remain unused.
        """
        best, followed = max(runs), Counter(runs.keys())
        stack = [
            (at, run, answers(self._functions, run, steered=self._steered))
            for at, run in sorted(runs.items(), key=itemgetter(0))
        ]
        while stack and best < len(self._cells) and self.events > max(0, least):
            at, run, events = stack[-1]
            event = next(events, None)
            if event is None:
                stack.pop()
                continue
            self.events -= 1
            after, reached = self._apply_event(at, partial(step, self._observed, run, event))
            best = max(best, after)
            followed[after] += reached is not None
            if reached is not None and not reached.ended and followed[after] <= RUNS_MAX:
                self._runs.setdefault(after, reached)
                more = answers(self._functions, reached, steered=self._steered)
                stack.append((after, reached, more))
        return best

    def _apply_event(self, at: int, apply: Callable[[], Step[S]]) -> tuple[int, Run[S] | None]:
        """Apply one event to a run that has taken `at` transitions of the path.

        Return the number of transitions taken then, and the run; None if it left or ended the path.
        """
        self._at = at
        try:
            run: Run[S] | None = apply().run
        except (_LeftPathError, GraphError):
            run = None
        except Exception:  # noqa: BLE001 - a user's node may raise anything
            return at, None
        return self._at, run


def _exclude_pair(excluded: Exclusions, path: TablePath) -> Exclusions:
    """Return exclusions that forbid the last two transitions of `path` in succession."""
    *earlier, last = path
    before = earlier[-1] if earlier else None
    return replace(excluded, pairs=excluded.pairs | {(before, last)})


def _initial_state(graph: NodeGraph[S]) -> S:
    """Return a sample value of the graph's state type; None if no sample can be made."""
    of = cast("object", getattr(graph, "state_type", None))
    try:
        state = None if of is None else sample(of)
    except Exception:  # noqa: BLE001 - the class is the user's
        state = None
    return cast("S", state)
