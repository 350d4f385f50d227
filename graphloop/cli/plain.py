"""A run as plain lines, for pipes and files: no colour, no control characters, no clock.

The text goes out piece by piece as it comes. Reasoning is left out: it is not the answer.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TextIO, final

from ..front.result import RunResult
from ..providers.base import TextDelta
from ..run import Run
from ..views.parts import Part, StepRetry, StepStart, ToolCallPart, ToolResultPart, Warned
from .lines import call_text, clean, end_facts, injected, mark, result_text
from .status import tell

__all__ = ["PlainScreen"]


@final
class PlainScreen:
    """Writes lines; what is not the run's own (notes, warnings) goes to stderr."""

    def __init__(self, out: TextIO) -> None:
        """Write nothing yet."""
        self._out = out
        self._mid_line = False
        self._calls: dict[str, str] = {}

    def open(self) -> AbstractContextManager[object]:
        """Need nothing."""
        return nullcontext()

    def aside(self) -> AbstractContextManager[object]:
        """End the line, so that a question begins one."""
        self._end_line()
        return nullcontext()

    def asked(self, prompt: str) -> None:
        """Show the question."""
        self._line(f"> {clean(prompt)}")

    def note(self, message: str) -> None:
        """Tell stderr."""
        self._end_line()
        tell(clean(message))

    def show(self, part: Part, run: Run[None] | None, /) -> None:
        """Write what the part says."""
        match part:
            case TextDelta():
                self._text(clean(part.text))
            case ToolCallPart():
                call = self._calls[part.key] = call_text(part.tool_name, part.arguments)
                self._line(f"→ {call}")
            case ToolResultPart():
                call = self._calls.pop(part.result.key, part.result.name)
                self._line(f"{mark(part.result)} {call}: {result_text(part.result)}")
            case StepStart():
                self._end_line()
                if said := injected(run):
                    self._line(f"↩ {said[0]}: {said[1]}")
            case StepRetry():
                self._line(f"↻ {part.reason}: asked again")
            case Warned():
                self.note(f"warning: {part.message}")
            case _:
                pass

    def finish(self, result: RunResult[None], kept: str) -> None:
        """Write the last line."""
        self._line(" · ".join([*end_facts(result), kept] if kept else end_facts(result)))

    def _text(self, text: str) -> None:
        if text:
            self._out.write(text)
            self._out.flush()
            self._mid_line = not text.endswith("\n")

    def _line(self, text: str) -> None:
        self._end_line()
        self._out.write(f"{text}\n")
        self._out.flush()

    def _end_line(self) -> None:
        if self._mid_line:
            self._mid_line = False
            self._out.write("\n")
            self._out.flush()
