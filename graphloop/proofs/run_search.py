"""Walker: the search for a run that takes a witness.

The kernel itself is asked what each answer of a world leads to; as soon as a run leaves the
witness, that answer is given up. So a counterexample that is told is one that a run has taken.
A way that no run takes is told to the search, which looks for another.
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
    from .proof_graph import TablePath, Transition

__all__ = ["NO_RUN", "TRIES", "Exclusions", "Mark", "RunSearch"]

S = TypeVar("S")

STEPS_MAX: Final = 1_000
"""How many answers are tried for one way, beside those of each of its lines."""

STEPS_LINE: Final = 3
"""How many more answers are tried for each line of a way, or of a table."""

STEPS_ALL: Final = 30_000
"""How many answers are tried for one graph, beside those of each line of its table."""

FINDING_MAX: Final = 15_000
"""How many answers are tried for one finding, beside one for every second line of the table."""

SHARED_MIN: Final = 100
"""From how many lines on a way goes on where a run has taken the same lines before."""

TRIES: Final = 8
"""How many ways are tried until one is a run."""

HERE_MAX: Final = 6
"""How many runs go on from one place of a way."""

NO_RUN: Final = "no run of this way was found"

COUNTED_MAX: Final = 30
"""How often a run goes on at a bound, so that the bound is reached."""

NO_CAPS: Final[Mapping[type[Outcome], Cap]] = {}

_ELSE: Final = ""
"""A line that nothing is barred after."""

Mark: TypeAlias = "tuple[Transition | str | None, int, tuple[int, ...]]"
"""What a search has to know of a way: its last line, how far it is a barred one, its counts."""

_Line: TypeAlias = tuple[str, type[Outcome]]


class _OffTheWay(Exception):
    """A run leaves the way that it is led along, or is at the end of it."""


@final
@dataclass
class Exclusions:
    """The ways that a search leaves out, since no run was found that takes them.

    Attributes:
        pairs: lines that do not come straight after another; None for the start.
        begun: whole ways, from the start.
        after: lines that come only once a node went on so often by other outcomes, its bounds.
    """

    pairs: frozenset[tuple[Transition | None, Transition]] = frozenset()
    begun: tuple[TablePath, ...] = ()
    after: Mapping[Transition, tuple[frozenset[type[Outcome]], int]] = field(
        default_factory=dict["Transition", tuple[frozenset[type[Outcome]], int]]
    )

    def __post_init__(self) -> None:
        """Number the places of the barred ways: 0 is their start, -1 is off all of them."""
        self._firsts = {before for before, _ in self.pairs}
        self._steps: dict[tuple[int, Transition], int] = {}
        self._ends: set[int] = set()
        for walked in self.begun:
            at = 0
            for way in walked:
                at = self._steps.setdefault((at, way), len(self._steps) + 1)
            self._ends.add(at)

    def __bool__(self) -> bool:
        """Whether anything is left out."""
        return bool(self.pairs or self.begun or self.after)

    @property
    def start(self) -> Mark:
        """The mark of a way that has no line yet."""
        return None, 0 if self.begun else -1, (0,) * len(self.after)

    def then(self, mark: Mark, way: Transition) -> Mark | None:
        """Return the mark of a way with one line more; None if that is left out."""
        last, at, counts = mark
        if (last, way) in self.pairs:
            return None
        at = self._steps.get((at, way), -1)
        if at in self._ends:
            return None
        if self.after:
            needed = self.after.get(way)
            if needed and counts[[*self.after].index(way)] < needed[1]:
                return None
            counts = tuple(
                min(times, count + (way.source == late.source and way.outcome in bounded))
                for count, (late, (bounded, times)) in zip(counts, self.after.items(), strict=True)
            )
        return (way if way in self._firsts or way.target == "END" else _ELSE), at, counts

    def allows(self, mark: Mark | None, walked: TablePath) -> bool:
        """Whether lines may follow."""
        for way in walked:
            mark = None if mark is None else self.then(mark, way)
        return mark is not None


@final
@dataclass
class RunSearch(Generic[S]):
    """Walks ways of one graph, so far as its tries last."""

    graph: NodeGraph[S]
    tries: int = -1
    _lines: Sequence[_Line] = ()
    _at: int = 0
    _said: bool = False
    _begun: Sequence[Sequence[Message]] = ()
    _stood: dict[int, Run[S]] = field(default_factory=dict[int, "Run[S]"])
    _missed: dict[int, set[TablePath]] = field(default_factory=dict[int, "set[TablePath]"])

    def __post_init__(self) -> None:
        """Have the nodes tell by which lines they are left."""

        def hear(node: Node[S, Outcome], reaction: Reaction[S, Outcome]) -> None:
            if isinstance(reaction, Leave):
                self._take((node.name, type(reaction.outcome)))

        self._size = sum(map(len, self.graph.table.values()))
        if self.tries < 0:
            self.tries = STEPS_ALL + STEPS_LINE * self._size
        self._heard = overheard(self.graph, hear)
        self._state = _state(self.graph)
        self._functions = functions_of(self.graph)

    def _take(self, line: _Line) -> None:
        """Count a line that a run takes; end the run where it leaves the way, or is at its end."""
        if line != self._lines[self._at]:
            raise _OffTheWay
        self._at += 1
        if self._at == len(self._lines):
            raise _OffTheWay

    def first(self, found: Callable[[Exclusions], TablePath | None]) -> TablePath | None:
        """Return the first way that a run takes, of those that a search finds.

        Args:
            found: returns the next way without what is barred; None where there is none.
        """
        last = self.tries - FINDING_MAX - self._size // 2
        for missed in (self._paired, self._late):
            barred = Exclusions()
            for _ in range(TRIES):
                walked = found(barred)
                # A search looks at as many lines as the table has; six cost what an answer does.
                self.tries -= self._size // 6
                if walked is None or self.tries <= max(0, last):
                    break
                length = self.walk(walked)
                if length == len(walked):
                    return walked
                barred = missed(barred, walked[: length + 1])
        return None

    def _paired(self, barred: Exclusions, walked: TablePath) -> Exclusions:
        """Leave out the last line of a way wherever it follows the one before it."""
        way = walked[-1]
        before = walked[-2] if len(walked) > 1 else None
        return replace(barred, pairs=barred.pairs | {(before, way)})

    def _late(self, barred: Exclusions, walked: TablePath) -> Exclusions:
        """Leave out no more than a way, or its last line until the bounds beside it are reached."""
        way = walked[-1]
        contract = contract_of(self.graph.nodes[way.source])
        caps = NO_CAPS if contract is None else contract.caps
        times = sum(cap.times for cap in caps.values())
        if way in barred.after or way.outcome in caps or not 0 < times <= COUNTED_MAX:
            return replace(barred, begun=(*barred.begun, walked))
        return replace(barred, after={**barred.after, way: (frozenset(caps), times)})

    def walk(self, walked: TablePath) -> int:
        """Return how many lines of a way, from the start, a run takes."""
        for length, missed in self._missed.items():
            if walked[:length] in missed:
                return length - 1
        taken = self._walk(walked)
        if taken < len(walked):
            self._missed.setdefault(taken + 1, set()).add(walked[: taken + 1])
        return taken

    def _walk(self, walked: TablePath) -> int:
        lines = [(way.source, way.outcome) for way in walked]
        words = {"", *(way.word for way in walked)}
        begun = [messages for word, messages in CONVERSATIONS.items() if word in words]
        if begun != self._begun:
            self._begun, self._stood = begun, {}
        shared = sum(1 for _ in takewhile(bool, map(eq, lines, self._lines)))
        self._lines = lines
        self._stood = {at: run for at, run in self._stood.items() if at <= shared}
        at = max(self._stood, default=0)
        if at >= SHARED_MIN:
            last = self.tries - STEPS_MAX - STEPS_LINE * (len(lines) - at)
            return self._on(self._stood, last)
        last = self.tries - STEPS_MAX - STEPS_LINE * len(lines)
        best, kept = 0, (False, self._stood)
        for said, messages, setup in product((False, True), reversed(begun), SETUPS):
            if best == len(lines) or self.tries <= max(0, last):
                break
            self._said, self._stood = said, {}
            started = Started(0.0, "witness", self.graph.name, messages, setup, self._state)
            at, run = self._after(0, partial(begin, self._heard, started, self._state))
            if run is not None and not run.ended:
                at = self._on({at: run}, last)
            if at > best:
                best, kept = at, (said, self._stood)
        self._said, self._stood = kept
        return best

    def _on(self, begun: Mapping[int, Run[S]], last: int) -> int:
        """Return how many lines runs take that have taken so many, until so few tries remain."""
        best, met = max(begun), Counter(begun.keys())
        todo = [
            (at, run, answers(self._functions, run, said=self._said))
            for at, run in sorted(begun.items(), key=itemgetter(0))
        ]
        while todo and best < len(self._lines) and self.tries > max(0, last):
            at, run, events = todo[-1]
            event = next(events, None)
            if event is None:
                todo.pop()
                continue
            self.tries -= 1
            after, reached = self._after(at, partial(step, self._heard, run, event))
            best = max(best, after)
            met[after] += reached is not None
            if reached is not None and not reached.ended and met[after] <= HERE_MAX:
                self._stood.setdefault(after, reached)
                todo.append((after, reached, answers(self._functions, reached, said=self._said)))
        return best

    def _after(self, at: int, apply: Callable[[], Step[S]]) -> tuple[int, Run[S] | None]:
        """Return how many lines are taken by then, and the run, if it is still on the way."""
        self._at = at
        try:
            run: Run[S] | None = apply().run
        except (_OffTheWay, GraphError):
            run = None
        except Exception:  # noqa: BLE001 - a node of the user's may raise anything
            return at, None
        return self._at, run


def _state(graph: NodeGraph[S]) -> S:
    """Return a state to begin with, of the graph's type if that has a sample."""
    of = cast("object", getattr(graph, "state_type", None))
    try:
        state = None if of is None else sample(of)
    except Exception:  # noqa: BLE001 - the class is the user's
        state = None
    return cast("S", state)  # It is of the type that the graph says, or nobody looks at it.
