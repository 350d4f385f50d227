"""A run as plain lines, for pipes and files: no colour, no control characters, no clock.

The text goes out piece by piece as it comes. Reasoning is left out: it is not the answer.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TextIO, final

from ..front.result import RunResult
from ..providers.base import TextDelta
from ..run import Run
from ..values import ToolResult
from ..views.parts import (
    Part,
    StepRetry,
    StepStart,
    SubAgent,
    ToolCallPart,
    ToolResultPart,
    ToolState,
    Warned,
)
from .lines import (
    Shown,
    agents_text,
    below,
    call_in,
    call_text,
    clean,
    edited_text,
    end_facts,
    final_answer,
    injected,
    mark,
    result_text,
    state_text,
)
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
        self._shown = Shown()

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
        self._shown.add(part)
        match part:
            case TextDelta():
                self._text(clean(part.text))
            case ToolCallPart():
                self._called(part, part.key, "")
            case ToolState() if part.arguments:
                self._calls[part.key] = edited_text(part.tool_name, part.arguments)
            case ToolResultPart():
                self._answered(part.result, part.result.key, call_in(run, part.result.key), "")
            case SubAgent():
                self._nested(part)
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
        """Write the answer if it was not streamed, the state if there is one, and the last line."""
        if answer := self._shown.missing(result):
            self._line(answer)
        if said := state_text(result.run):
            self._line(said)
        self._line(" · ".join([*end_facts(result), kept] if kept else end_facts(result)))

    def _nested(self, seen: SubAgent) -> None:
        """Show the calls of a child run; the rest is its own."""
        agents, part = agents_text(seen.agents), seen.part
        if isinstance(part, ToolCallPart):
            self._called(part, below(seen, part.key), agents)
        elif isinstance(part, ToolState) and part.arguments:
            self._calls[below(seen, part.key)] = edited_text(part.tool_name, part.arguments)
        elif isinstance(part, ToolResultPart):
            self._answered(part.result, below(seen, part.result.key), None, agents)

    def _called(self, part: ToolCallPart, key: str, agents: str) -> None:
        call = self._calls[key] = call_text(part.tool_name, part.arguments)
        self._line(f"→ {agents}{call}")

    def _answered(self, result: ToolResult, key: str, known: str | None, agents: str) -> None:
        call = self._calls.pop(key, None) or known or result.name
        answer = None if agents else final_answer(result)
        if answer is not None:
            self._line(answer)
            return
        self._line(f"{mark(result)} {agents}{call}: {result_text(result)}")

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
