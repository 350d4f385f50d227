"""A run as JSON lines: one object a part, and nothing else on stdout.

The form is that of the parts in `graphloop.views.parts`: `type` first, then the part's fields under
their Python names, values as JSON (an enum is its string). One part differs, since an exception is
no JSON: `error` has `error`, the exception's class name, and `message`. The last line is of type
`finish`, with the run's answer as `text`, or `error`; of a graph that carries a state, a line of
type `state` stands before `finish`.
Kinds and fields may be added, none is renamed: ignore what you do not know.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from typing import TextIO, final

from msgspec import to_builtins
from msgspec.json import encode
from pydantic_core import to_json

from ..front.result import RunResult
from ..latest_answer import latest_answer
from ..run import Run
from ..views.parts import ErrorPart, Finish, Part
from .lines import safe_json
from .status import tell

__all__ = ["JsonScreen"]


@final
class JsonScreen:
    """Writes JSON lines to `out`; meanwhile, whatever else is printed goes to stderr."""

    def __init__(self, out: TextIO) -> None:
        """Write nothing yet."""
        self._out = out

    def open(self) -> AbstractContextManager[object]:
        """Keep what tools print out of the lines."""
        return redirect_stdout(sys.stderr)

    def aside(self) -> AbstractContextManager[object]:
        """Need nothing: questions are put on stderr."""
        return nullcontext()

    def asked(self, prompt: str) -> None:
        """Say nothing: the question is no part."""

    def note(self, message: str) -> None:
        """Tell stderr."""
        tell(message)

    def show(self, part: Part, run: Run[None] | None, /) -> None:
        """Write the part's line; the state's comes before the last."""
        state: object = None if run is None else run.state
        if isinstance(part, Finish) and state is not None:
            self._write(to_json({"type": "state", "state": state}, fallback=repr))
        if isinstance(part, ErrorPart):
            error = part.error
            told = {"type": part.type, "error": type(error).__name__, "message": str(error)}
            self._write(encode(told))
        elif isinstance(part, Finish) and run is not None:
            self._write(encode({**to_builtins(part), "text": latest_answer(run)}))
        else:
            self._write(encode(part))

    def finish(self, result: RunResult[None], kept: str) -> None:
        """Say nothing: the finish part has said it."""

    def _write(self, line: bytes) -> None:
        self._out.write(safe_json(line.decode()) + "\n")
        self._out.flush()
