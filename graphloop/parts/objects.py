"""objects: snapshots of a run's final answer, an object that grows while the model writes it.

`ObjectView` reads the parts of the run's own model. Snapshots are not validated: only the complete
answer is checked against the schema. `RunView` returns all parts of a run, snapshots included, and
`texts_of` the text of parts.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from typing import Final, Generic, TypeVar, final

from pydantic_core import from_json

from ..providers import Live, TextDelta, ToolCallDelta
from ..run import Run
from ..step import Step
from ..tools import ToolProgress
from .kinds import ChildSeen, ErrorPart, ObjectDelta, Part, StepFinish, StepRetry, StepStart
from .parts import PartView

__all__ = ["ObjectView", "PartialObjects", "RunView", "partial", "texts_of"]

S = TypeVar("S")

GROWTH: Final = 64
"""A text is parsed again once it has grown by this fraction of its length (1/64)."""


def _identity(value: object) -> object:
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

    def __init__(
        self, tool: str = "", unwrap: Callable[[object], object | None] = _identity
    ) -> None:
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
                yield from self._object_deltas(self._answer.feed(text))
            case ToolCallDelta(index=index, arguments_delta=delta) if self._is_answer(part):
                self._call = index
                yield from self._object_deltas(self._answer.feed(delta))
            case StepFinish():
                yield from self._object_deltas(self._answer.finish())
            case _:
                return

    def _is_answer(self, delta: ToolCallDelta) -> bool:
        """Whether a delta belongs to the call whose arguments are the answer."""
        if self._call is None:
            return bool(self._tool) and delta.name == self._tool
        return delta.index == self._call

    def _object_deltas(self, value: object | None) -> Iterator[ObjectDelta]:
        shown = None if value is None else self._unwrap(value)
        if shown is not None:
            yield ObjectDelta(shown)


@final
class RunView(Generic[S]):
    """Adds snapshots of the growing answer to the parts of a run.

    Args:
        parts: makes the parts of the run.
        objects: makes the snapshots.
    """

    is_plain = False
    """No delta of a model is a part without a look at it (`PartView.is_plain`)."""

    def __init__(self, parts: PartView[S], objects: ObjectView) -> None:
        self._parts, self._objects = parts, objects

    def resumed(self, run: Run[S]) -> Sequence[Part]:
        """Return the parts for a run that is resumed, and for the calls that now start."""
        return self._parts.resumed(run)

    def see(self, taken: Step[S]) -> Sequence[Part]:
        """Return the parts for one step of the run."""
        return self._with_objects(self._parts.see(taken))

    def show(self, seen: Live | ToolProgress | ChildSeen) -> Sequence[Part]:
        """Return the parts for what is no step: a delta, a tool's report, or a child run's item."""
        return self._with_objects(self._parts.show(seen))

    def _with_objects(self, parts: Sequence[Part]) -> Sequence[Part]:
        return [one for part in parts for one in (part, *self._objects.see(part))]


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
        return self._read_partial() if self._waiting >= max(1, len(self._text) // GROWTH) else None

    def finish(self) -> object | None:
        """Return the value of the whole text if it has changed since the last one, else None."""
        return self._read_partial() if self._waiting else None

    def _read_partial(self) -> object | None:
        self._text = "".join((self._text, *self._pieces))
        self._pieces.clear()
        self._waiting = 0
        value = partial(self._text)
        if value is None or value == self._last:
            return None
        self._last = value
        return value
