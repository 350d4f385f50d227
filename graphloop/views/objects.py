"""objects: the final answer of a run as an object that grows while the model writes it.

A view beside `PartView`, fed with the parts of the run's own model. What is shown is what has been
written, checked against no schema: only the whole answer is, when it is there.
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
    """Turns the parts of a run into snapshots of the answer that is being written.

    Every turn and every retry begins a new answer: what was shown before is void.

    Args:
        tool: the tool whose arguments are the answer, of which a turn's first call counts; empty
            where the text of a turn is.
        unwrap: what is shown of a value, or None for nothing yet (`Output.unwrap`).
    """

    def __init__(self, tool: str = "", unwrap: Callable[[object], object | None] = _itself) -> None:
        self._tool = tool
        self._unwrap = unwrap
        self._answer = PartialObjects()
        self._call: int | None = None

    def see(self, part: Part) -> Iterator[ObjectDelta]:
        """Yield the snapshot that a part makes, if it makes one.

        A step's finish makes the last one of its turn.
        """
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
        """Whether a delta is of the call that the answer is given by."""
        if self._call is None:
            return bool(self._tool) and delta.name == self._tool
        return delta.index == self._call

    def _snapshot(self, value: object | None) -> Iterator[ObjectDelta]:
        shown = None if value is None else self._unwrap(value)
        if shown is not None:
            yield ObjectDelta(shown)
