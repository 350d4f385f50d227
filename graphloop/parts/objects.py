"""objects: snapshots of a run's final answer, an object that grows while the model writes it.

`ObjectView` reads the parts of the run's own model. Snapshots are not validated: only the complete
answer is checked against the schema. `RunView` returns all parts of a run, snapshots included, and
`texts_of` the text of parts.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from typing import Final, Generic, TypeVar, final

from pydantic_core import from_json

from ..graph import NodeGraph
from ..providers import Live, TextDelta, ToolCallDelta, is_live
from ..run import Run
from ..step import Step
from ..tools import ToolProgress
from .kinds import ChildSeen, ErrorPart, ObjectDelta, Part, StepFinish, StepRetry, StepStart
from .parts import PartView

__all__ = ["ObjectView", "PartialObjects", "RunView", "partial", "texts_of"]

S = TypeVar("S")

GROWTH: Final = 64
"""A text is parsed again once it has grown by this fraction of its length (1/64)."""


def _itself(value: object) -> object:
    return value


@final
class ObjectView:
    """Turns the parts of a run into snapshots of its growing answer.

    Every turn and every retry starts a new answer: earlier snapshots are void.

    Args:
        tool: the tool whose arguments are the answer (the first call of a turn counts); empty
            if the text of a turn is the answer.
        unwrap: returns the visible part of a value, or None if there is none yet
            (`Output.unwrap`).
    """

    def __init__(self, tool: str = "", unwrap: Callable[[object], object | None] = _itself) -> None:
        self._tool = tool
        self._unwrap = unwrap
        self._answer = PartialObjects()
        self._call: int | None = None

    def see(self, part: Part) -> Iterator[ObjectDelta]:
        """Yield a snapshot if this part changes the answer; `StepFinish` yields the last."""
        match part:
            case StepStart() | StepRetry():
                self._answer, self._call = PartialObjects(), None
            case TextDelta(text=text) if not self._tool:
                yield from self._snapshot(self._answer.feed(text))
            case ToolCallDelta(index=index, arguments_delta=delta) if self._is_answer(part):
                self._call = index
                yield from self._snapshot(self._answer.feed(delta))
            case StepFinish():
                yield from self._snapshot(self._answer.finish())
            case _:
                return

    def _is_answer(self, delta: ToolCallDelta) -> bool:
        """Whether a delta belongs to the call whose arguments are the answer."""
        if self._call is None:
            return bool(self._tool) and delta.name == self._tool
        return delta.index == self._call

    def _snapshot(self, value: object | None) -> Iterator[ObjectDelta]:
        shown = None if value is None else self._unwrap(value)
        if shown is not None:
            yield ObjectDelta(shown)


@final
class RunView(Generic[S]):
    """Turns all that a driver yields for one run into parts.

    Args:
        graph: the run's graph.
        found: the run before its first step that the view sees; None for a new run.
        objects: adds snapshots of the growing answer; None for a run whose answer is text.

    Attributes:
        is_plain: whether each text delta of the present model call is a part, and the only one.
    """

    def __init__(
        self, graph: NodeGraph[S], found: Run[S] | None, objects: ObjectView | None
    ) -> None:
        self._view = PartView(graph, found)
        self._objects = objects
        self._talks: bool | None = None
        self.is_plain = False

    def resumed(self, run: Run[S]) -> Sequence[Part]:
        """Return the parts for a run that is resumed, and for the calls that now start."""
        return self._view.resumed(run)

    def see(self, seen: Step[S] | Live | ToolProgress | ChildSeen) -> Sequence[Part]:
        """Return the parts for a step, a delta of the run's own model, a report, or a child."""
        view = self._view
        if isinstance(seen, Step):
            self._talks, self.is_plain = None, False
            parts = view.see(seen)
        elif is_live(seen):
            if self._talks is None:
                self._talks = view.shows_deltas
                self.is_plain = self._talks and self._objects is None and not view.withholds
            parts = view.live(seen) if self._talks else ()
        elif isinstance(seen, ToolProgress):
            parts = view.live(seen)
        else:
            return [*view.see_child(seen.key, seen.agent, seen.graph, seen.seen)]
        if self._objects is not None:
            return [one for part in parts for one in (part, *self._objects.see(part))]
        return parts


async def texts_of(parts: AsyncIterator[Part]) -> AsyncGenerator[str, None]:
    """Yield the text of each text delta.

    Raises:
        Exception: the error of an `ErrorPart`.
    """
    async for part in parts:
        if isinstance(part, TextDelta):
            yield part.text
        elif isinstance(part, ErrorPart):
            raise part.error


def partial(text: str) -> object | None:
    """Return the value of an incomplete JSON text, or None if it has no value.

    A string ends where the text ends. A key without a value is left out, and so is an unfinished
    literal or number (`tru`, `-`). A text that is not JSON, or is nested deeper than 200 levels,
    has no value. Text after a complete value is ignored. Never raises.
    """
    try:
        # Encode first: `from_json` raises TypeError for a lone surrogate, which becomes '?' here.
        value: object = from_json(
            text.encode("utf-8", "replace"), allow_partial="trailing-strings", allow_inf_nan=False
        )
    except ValueError:
        return None
    return value


@final
class PartialObjects:
    """The growing value of one streamed JSON text.

    The text is parsed again once it has grown by 1/64. So all parsing costs at most about 64 times
    the length of the whole text, however small the pieces are. `finish` parses the rest.
    """

    def __init__(self) -> None:
        self._text = ""
        self._pieces: list[str] = []
        self._waiting = 0
        self._last: object | None = None

    def feed(self, delta: str) -> object | None:
        """Add the next piece; return the value if it was parsed and has changed, else None."""
        self._pieces.append(delta)
        self._waiting += len(delta)
        return self._read() if self._waiting >= max(1, len(self._text) // GROWTH) else None

    def finish(self) -> object | None:
        """Return the value of the whole text if it has changed since the last one, else None."""
        return self._read() if self._waiting else None

    def _read(self) -> object | None:
        self._text = "".join((self._text, *self._pieces))
        self._pieces.clear()
        self._waiting = 0
        value = partial(self._text)
        if value is None or value == self._last:
            return None
        self._last = value
        return value
