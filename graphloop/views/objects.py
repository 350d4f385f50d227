"""objects: the final answer of a run as an object that grows while the model writes it.

A view beside `PartView`, for the parts of the run's own model. Snapshots are checked against no
schema: only the complete answer is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import final

from ..partial_json import PartialObjects
from .parts import (
    ObjectDelta,
    Part,
    StepFinish,
    StepRetry,
    StepStart,
    TextDelta,
    ToolCallDelta,
)

__all__ = ["ObjectView"]


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
