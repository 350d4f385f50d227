"""walker: looks for a run that takes the lines of a witness, and simulates it.

The kernel itself is asked what each answer of a world leads to; as soon as a run leaves the
witness, that answer is given up. So a counterexample that is told is one that a run has taken.
A way that no run takes is told to the search, which looks for another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, product
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar, cast, final

from ..errors import GraphError
from ..events import Started
from ..graph import Graph
from ..node_protocol import Leave, Node, Reaction
from ..outcomes import Outcome
from ..overheard import overheard
from ..run import Run
from ..step import Step, begin, step
from .samples import sample
from .worlds import CONVERSATIONS, SETUPS, answers, functions_of

if TYPE_CHECKING:
    from .ground import Trail, Way

__all__ = ["NO_RUN", "TRIES", "Barred", "Walker"]

S = TypeVar("S")

STEPS_MAX: Final = 20_000
"""How many answers are tried for one way."""

STEPS_ALL: Final = 100_000
"""How many answers are tried for one graph."""

TRIES: Final = 8
"""How many ways are tried until one is a run."""

HERE_MAX: Final = 8
"""How many runs go on from one place of a way."""

NO_RUN: Final = "no run of this way was found"

Barred: TypeAlias = "frozenset[tuple[Way | None, Way]]"
"""Lines that no run takes straight after another; None for the start."""

_Line: TypeAlias = tuple[str, type[Outcome]]


@final
@dataclass
class Walker(Generic[S]):
    """Walks ways of one graph, so far as its tries last."""

    graph: Graph[S]
    tries: int = STEPS_ALL
    _taken: list[_Line] = field(default_factory=list[_Line])

    def __post_init__(self) -> None:
        """Have the nodes tell by which lines they are left."""

        def hear(node: Node[S, Outcome], reaction: Reaction[S, Outcome]) -> None:
            if isinstance(reaction, Leave):
                self._taken.append((node.name, type(reaction.outcome)))

        self._heard = overheard(self.graph, hear)
        self._state = _state(self.graph)
        self._functions = functions_of(self.graph)

    def first(self, found: Callable[[Barred], Trail | None]) -> Trail | None:
        """Return the first way that a run takes, of those that a search finds.

        Args:
            found: returns the next way without what is barred; None where there is none.
        """
        barred: Barred = frozenset()
        for _ in range(TRIES):
            walked = found(barred)
            if walked is None or self.tries <= 0:
                return None
            length = self.walk(walked)
            if length == len(walked):
                return walked
            barred |= {(walked[length - 1] if length else None, walked[length])}
        return None

    def walk(self, walked: Trail) -> int:
        """Return how many lines of a way, from the start, a run takes."""
        lines = [(way.source, way.outcome) for way in walked]
        words = {"", *(way.word for way in walked)}
        begun = [messages for word, messages in CONVERSATIONS.items() if word in words]
        last = self.tries - STEPS_MAX
        best = 0
        for messages, setup in product(reversed(begun), SETUPS):
            if best == len(lines) or self.tries <= max(0, last):
                break
            started = Started(0.0, "witness", self.graph.name, messages, setup, self._state)
            best = max(best, self._along(started, lines, last))
        return best

    def _along(self, started: Started, lines: Sequence[_Line], last: int) -> int:
        """Return how many lines a run takes that begins so."""
        best, begun = self._after(partial(begin, self._heard, started, self._state), lines)
        met = Counter([best])
        todo = (
            [] if begun is None or begun.ended else [(best, begun, answers(self._functions, begun))]
        )
        while todo and best < len(lines) and self.tries > max(0, last):
            at, run, events = todo[-1]
            event = next(events, None)
            if event is None:
                todo.pop()
                continue
            self.tries -= 1
            length, reached = self._after(
                partial(step, self._heard, run, event), islice(lines, at, None)
            )
            best = max(best, at + length)
            met[at + length] += reached is not None
            if reached is not None and not reached.ended and met[at + length] <= HERE_MAX:
                todo.append((at + length, reached, answers(self._functions, reached)))
        return best

    def _after(
        self, apply: Callable[[], Step[S]], lines: Iterable[_Line]
    ) -> tuple[int, Run[S] | None]:
        """Return how many lines are taken at once, and the run, if it is still on the way."""
        self._taken.clear()
        try:
            run: Run[S] | None = apply().run
        except GraphError:
            # A cycle that never waits: the kernel gives it up, and it was taken all the same.
            run = None
        except Exception:  # noqa: BLE001 - a node of the user's may raise anything
            return 0, None
        fits = 0
        for taken, line in zip(self._taken, lines, strict=False):
            if taken != line:
                break
            fits += 1
        return fits, run if fits == len(self._taken) else None


def _state(graph: Graph[S]) -> S:
    """Return a state to begin with, of the graph's type if that has a sample."""
    of = cast("object", getattr(graph, "state_type", None))
    try:
        state = None if of is None else sample(of)
    except Exception:  # noqa: BLE001 - the class is the user's
        state = None
    return cast("S", state)  # It is of the type that the graph says, or nobody looks at it.
