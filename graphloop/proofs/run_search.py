"""RunSearch: the search for a run that takes a path of the table.

The kernel decides: each simulated event goes through `step`, and a run that leaves the path is
dropped. A witness that `check` reports is therefore one that a run has taken. If no run takes a
path, the proof is asked for another path.
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
"""The paths that are tried for one finding."""

EVENTS_PATH: Final = 1_000
"""The events that are tried for one path, beside `EVENTS_ARC` for each of its arcs."""

EVENTS_ARC: Final = 3
"""The events that are tried for each arc of a path, or transition of a table."""

EVENTS_GRAPH: Final = 30_000
"""The events that are tried for one graph, beside `EVENTS_ARC` for each of its transitions."""

EVENTS_FINDING: Final = 15_000
"""The events that are tried for one finding, beside half the number of transitions."""

SHARED_MIN: Final = 100
"""The common prefix from which the runs of the last path are used again."""

RUNS_MAX: Final = 6
"""The runs that are followed from one position of a path."""

ROUNDS_MAX: Final = 30
"""The highest bound that a path goes round a loop to reach."""

NO_RUN: Final = "no run of this way was found"

NO_CAPS: Final[Mapping[type[Outcome], Cap]] = {}

_ANY: Final = ""
"""An arc that no exclusion begins with."""

Mark: TypeAlias = "tuple[Arc | str | None, int, tuple[int, ...]]"
"""A state of `Exclusions`: the last arc, a node of its trie, and counts of bounded outcomes."""

_Cell: TypeAlias = tuple[str, type[Outcome]]


class _LeftPathError(Exception):
    """A run left the path, or has taken all of it."""


@final
@dataclass
class Exclusions:
    """The paths that a search leaves out, since no run took them: a monitor automaton.

    Attributes:
        pairs: arcs that may not follow directly after another; None stands for the start.
        prefixes: paths that no path may begin with.
        after: arcs that may only follow once their node has left by bounded outcomes so often.
    """

    pairs: frozenset[tuple[Arc | None, Arc]] = frozenset()
    prefixes: tuple[TablePath, ...] = ()
    after: Mapping[Arc, tuple[frozenset[type[Outcome]], int]] = field(
        default_factory=dict["Arc", tuple[frozenset[type[Outcome]], int]]
    )

    def __post_init__(self) -> None:
        """Build the trie of the prefixes: 0 is its root, -1 stands for no node of it."""
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
        """The mark of an empty path."""
        return None, 0 if self.prefixes else -1, (0,) * len(self.after)

    def extended(self, mark: Mark, arc: Arc) -> Mark | None:
        """Return the mark of a path with one more arc; None if that path is left out."""
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
        """Return whether the arcs of `path` may follow a path with this mark."""
        for arc in path:
            mark = None if mark is None else self.extended(mark, arc)
        return mark is not None


@final
@dataclass
class RunSearch(Generic[S]):
    """Simulates runs along paths of one graph, until its number of events is used up."""

    graph: NodeGraph[S]
    events: int = -1
    _cells: Sequence[_Cell] = ()
    _at: int = 0
    _steered: bool = False
    _conversations: Sequence[Sequence[Message]] = ()
    _runs: dict[int, Run[S]] = field(default_factory=dict[int, "Run[S]"])
    _failed: dict[int, set[TablePath]] = field(default_factory=dict[int, "set[TablePath]"])

    def __post_init__(self) -> None:
        """Observe the cells by which nodes leave."""

        def observe(node: Node[S, Outcome], reaction: Reaction[S, Outcome]) -> None:
            if isinstance(reaction, Leave):
                self._take((node.name, type(reaction.outcome)))

        self._size = sum(map(len, self.graph.table.values()))
        if self.events < 0:
            self.events = EVENTS_GRAPH + EVENTS_ARC * self._size
        self._observed = overheard(self.graph, observe)
        self._state = _initial_state(self.graph)
        self._functions = functions_of(self.graph)

    def _take(self, cell: _Cell) -> None:
        if cell != self._cells[self._at]:
            raise _LeftPathError
        self._at += 1
        if self._at == len(self._cells):
            raise _LeftPathError

    def first_run(self, path_without: Callable[[Exclusions], TablePath | None]) -> TablePath | None:
        """Return the first path that a run takes; None if the search finds none.

        Args:
            path_without: returns a path that is not excluded, or None.
        """
        least = max(0, self.events - EVENTS_FINDING - self._size // 2)
        for exclude in (_exclude_pair, self._exclude_until_bound):
            excluded = Exclusions()
            for _ in range(TRIES):
                path = path_without(excluded)
                # A search passes every transition; six of these cost as much as one event.
                self.events -= self._size // 6
                if path is None or self.events <= least:
                    break
                length = self.walk(path)
                if length == len(path):
                    return path
                excluded = exclude(excluded, path[: length + 1])
        return None

    def _exclude_until_bound(self, excluded: Exclusions, path: TablePath) -> Exclusions:
        """Leave out the last arc of a path until its node's bounds are reached, else the path."""
        arc = path[-1]
        contract = contract_of(self.graph.nodes[arc.source])
        caps = NO_CAPS if contract is None else contract.caps
        times = sum(cap.times for cap in caps.values())
        if arc in excluded.after or arc.outcome in caps or not 0 < times <= ROUNDS_MAX:
            return replace(excluded, prefixes=(*excluded.prefixes, path))
        return replace(excluded, after={**excluded.after, arc: (frozenset(caps), times)})

    def walk(self, path: TablePath) -> int:
        """Return how many arcs of a path, from its start, a run takes."""
        for length, prefixes in self._failed.items():
            if path[:length] in prefixes:
                return length - 1
        taken = self._simulate(path)
        if taken < len(path):
            self._failed.setdefault(taken + 1, set()).add(path[: taken + 1])
        return taken

    def _simulate(self, path: TablePath) -> int:
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
            return self._follow(self._runs, self.events - EVENTS_PATH - EVENTS_ARC * more)
        least = self.events - EVENTS_PATH - EVENTS_ARC * len(cells)
        best, kept = 0, (False, self._runs)
        for steered, messages, setup in product((False, True), reversed(conversations), SETUPS):
            if best == len(cells) or self.events <= max(0, least):
                break
            self._steered, self._runs = steered, {}
            started = Started(0.0, "witness", self.graph.name, messages, setup, self._state)
            at, run = self._apply(0, partial(begin, self._observed, started, self._state))
            if run is not None and not run.ended:
                at = self._follow({at: run}, least)
            if at > best:
                best, kept = at, (steered, self._runs)
        self._steered, self._runs = kept
        return best

    def _follow(self, begun: Mapping[int, Run[S]], least: int) -> int:
        """Return how many arcs the best run takes, by a depth-first search over events.

        Args:
            begun: the runs to go on with, by the number of arcs that each has taken.
            least: the number of events that must remain.
        """
        best, followed = max(begun), Counter(begun.keys())
        stack = [
            (at, run, answers(self._functions, run, steered=self._steered))
            for at, run in sorted(begun.items(), key=itemgetter(0))
        ]
        while stack and best < len(self._cells) and self.events > max(0, least):
            at, run, events = stack[-1]
            event = next(events, None)
            if event is None:
                stack.pop()
                continue
            self.events -= 1
            after, reached = self._apply(at, partial(step, self._observed, run, event))
            best = max(best, after)
            followed[after] += reached is not None
            if reached is not None and not reached.ended and followed[after] <= RUNS_MAX:
                self._runs.setdefault(after, reached)
                more = answers(self._functions, reached, steered=self._steered)
                stack.append((after, reached, more))
        return best

    def _apply(self, at: int, apply: Callable[[], Step[S]]) -> tuple[int, Run[S] | None]:
        """Return the number of arcs taken after an event, and the run if it is on the path."""
        self._at = at
        try:
            run: Run[S] | None = apply().run
        except (_LeftPathError, GraphError):
            run = None
        except Exception:  # noqa: BLE001 - a node of the user's may raise anything
            return at, None
        return self._at, run


def _exclude_pair(excluded: Exclusions, path: TablePath) -> Exclusions:
    """Leave out the last arc of a path wherever it follows the arc before it."""
    *earlier, last = path
    before = earlier[-1] if earlier else None
    return replace(excluded, pairs=excluded.pairs | {(before, last)})


def _initial_state(graph: NodeGraph[S]) -> S:
    """Return a sample of the graph's state type; None if no sample can be made."""
    of = cast("object", getattr(graph, "state_type", None))
    try:
        state = None if of is None else sample(of)
    except Exception:  # noqa: BLE001 - the class is the user's
        state = None
    return cast("S", state)
