"""objects: the final answer of a run as an object that grows while the model writes it.

A view beside `PartView`, for the parts of the run's own model. Snapshots are checked against no
schema: only the complete answer is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, final

from pydantic_core import from_json

from .parts import (
    ObjectDelta,
    Part,
    StepFinish,
    StepRetry,
    StepStart,
    TextDelta,
    ToolCallDelta,
)

__all__ = ["ObjectView", "PartialObjects", "partial"]

GROWTH: Final = 64
"""A text is read again once it has grown by one part in so many."""


def _itself(value: object) -> object:
    return value


@final
class ObjectView:
    """Turns the parts of a run into snapshots of its growing answer.

    Every turn and every retry starts a new answer: earlier snapshots are void.

    Args:
        tool: the tool whose arguments are the answer (the first call of a turn counts); empty
            if the text of a turn is the answer.
        unwrap: returns the visible part of a value, or None for nothing yet (`Output.unwrap`).
    """

    def __init__(self, tool: str = "", unwrap: Callable[[object], object | None] = _itself) -> None:
        self._tool = tool
        self._unwrap = unwrap
        self._answer = PartialObjects()
        self._call: int | None = None

    def see(self, part: Part) -> Iterator[ObjectDelta]:
        """Yield the snapshot that a part makes, if any; a step's finish makes the turn's last."""
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


def partial(text: str) -> object | None:
    """Return the value of the beginning of a JSON text, or None.

    Strings are cut where the text ends. A key without a value is left out, and so is a beginning
    that may still become anything (`tru`, `-`). A text that is no JSON, or is nested deeper than
    200 levels, has no value. Text behind a whole value is ignored. Never raises.
    """
    try:
        # Encoded here, because half a surrogate pair is a TypeError there and a '?' so.
        value: object = from_json(
            text.encode("utf-8", "replace"), allow_partial="trailing-strings", allow_inf_nan=False
        )
    except ValueError:
        return None
    return value


@final
class PartialObjects:
    """The growing value of one streamed JSON text.

    The text is read again when it has grown by a 64th, so reading costs at most some 64 times the
    length of the whole, however small the pieces are; `finish` reads the rest.
    """

    def __init__(self) -> None:
        self._text = ""
        self._pieces: list[str] = []
        self._waiting = 0
        self._last: object | None = None

    def feed(self, delta: str) -> object | None:
        """Take the next piece in; return the value if it was read and has changed, else None."""
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
