"""A run on a terminal: what is finished scrolls up, what goes on is redrawn below it.

At the bottom stand the line that the model is writing, the calls that are running, and a status
line: node, step, tokens, cost, elapsed time. They are gone when the run is over.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import final

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from ..front.result import RunResult
from ..providers.base import ReasoningDelta, TextDelta
from ..run import EndReason, Run
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
    tokens_text,
)

__all__ = ["LiveScreen"]

MARK_STYLES = {"✓": "green", "✗": "red", "⊘": "yellow"}
REFRESHES_PER_SECOND = 10


@final
class LiveScreen:
    """Draws one run on `console`; `clock` gives seconds, for the elapsed time."""

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        """Draw nothing yet."""
        self._console = console
        self._clock = clock
        self._started = clock()
        self._run: Run[None] | None = None
        self._line = ""
        self._line_style = ""
        self._block = ""
        self._calls: dict[str, Text] = {}
        self._shown = Shown()
        self._spinner = Spinner("dots", style="cyan")
        self._live = self._bottom_lines()

    @contextmanager
    def open(self) -> Generator[None]:
        """Draw the bottom lines from now on."""
        self._live.start()
        try:
            yield
        finally:
            self._live.stop()

    @contextmanager
    def aside(self) -> Generator[None]:
        """Take the bottom lines away for a while."""
        self._end_line()
        self._live.stop()
        try:
            yield
        finally:
            # A new one: one that was stopped would wipe out as many lines as it last had.
            self._live = self._bottom_lines()
            self._live.start()

    def asked(self, prompt: str) -> None:
        """Show the question."""
        self._print("question", Text.assemble(("> ", "bold cyan"), (clean(prompt), "bold")))

    def note(self, message: str) -> None:
        """Show a line that is not the run's own."""
        self._end_line()
        self._print("note", Text(clean(message), "yellow"))

    def show(self, part: Part, run: Run[None] | None, /) -> None:
        """Draw what the part says."""
        self._run = run
        self._shown.add(part)
        match part:
            case TextDelta() | ReasoningDelta():
                style = "dim italic" if isinstance(part, ReasoningDelta) else ""
                self._write(clean(part.text), style)
            case ToolCallPart():
                self._called(part, part.key, "")
            case ToolState():
                self._edited(part, part.key, "")
            case ToolResultPart():
                key = part.result.key
                self._answered(part.result, key, call_in(run, key, self._half), "")
            case SubAgent():
                self._nested(part)
            case StepStart():
                self._end_line()
                if said := injected(run):
                    self._print("graph", Text.assemble((f"↩ {said[0]}: ", "magenta"), said[1]))
                self._live.refresh()
            case StepRetry():
                self._end_line()
                self._print("graph", Text(f"↻ {part.reason}: asked again", "yellow"))
            case Warned():
                self.note(f"warning: {part.message}")
            case _:
                pass

    def finish(self, result: RunResult[None], kept: str) -> None:
        """Print the answer if it was not streamed, the state if there is one, and the last line."""
        self._end_line()
        if answer := self._shown.missing(result):
            self._print("text ", Text(answer))
        if said := state_text(result.run):
            self._print("state", Text(said))
        reason, *rest = end_facts(result)
        style = "green" if result.end_reason is EndReason.COMPLETED else "yellow"
        facts = [*rest, f"{self._clock() - self._started:.1f} s", *([kept] if kept else [])]
        line = Text.assemble((reason, style), (f" · {' · '.join(facts)}", "dim"))
        self._print("end", line)

    def _bottom_lines(self) -> Live:
        return Live(
            console=self._console,
            get_renderable=self._bottom,
            refresh_per_second=REFRESHES_PER_SECOND,
            transient=True,
        )

    def _nested(self, seen: SubAgent) -> None:
        """Show the calls of a child run; the rest is its own."""
        agents, part = agents_text(seen.agents), seen.part
        if isinstance(part, ToolCallPart):
            self._called(part, below(seen, part.key), agents)
        elif isinstance(part, ToolState):
            self._edited(part, below(seen, part.key), agents)
        elif isinstance(part, ToolResultPart):
            self._answered(part.result, below(seen, part.result.key), None, agents)

    @property
    def _half(self) -> int:
        """How much of a line the arguments of a call may take."""
        return self._console.width // 2

    def _called(self, part: ToolCallPart, key: str, agents: str) -> None:
        self._end_line()
        call = call_text(part.tool_name, part.arguments, self._half)
        self._calls[key] = _styled(agents, part.tool_name, call)

    def _edited(self, part: ToolState, key: str, agents: str) -> None:
        """Show the arguments that run in place of those that were asked for, if others do."""
        if not part.arguments:
            return
        call = edited_text(part.tool_name, part.arguments, self._half)
        self._calls[key] = _styled(agents, part.tool_name, call)

    def _answered(self, result: ToolResult, key: str, known: str | None, agents: str) -> None:
        self._end_line()
        sign = mark(result)
        call = self._calls.pop(key, None) or _styled(agents, result.name, known or result.name)
        answer = None if agents else final_answer(result)
        if answer is not None:
            self._print("text ", Text(answer))
            return
        said = Text(result_text(result), MARK_STYLES[sign] if sign != "✓" else "")
        self._print("calls", Text.assemble((f"{sign} ", MARK_STYLES[sign]), call, " → ", said))

    def _write(self, text: str, style: str) -> None:
        """Take up text; every line that is full goes up."""
        if style != self._line_style:
            self._end_line()
            self._line_style = style
        self._line += text
        *whole, self._line = self._line.split("\n")
        for line in whole:
            self._print(f"text {style}", Text(line, style))
        while cell_len(self._line) > self._console.width:
            head = _fitting(self._line, self._console.width)
            self._line = self._line[len(head) :].lstrip(" ")
            self._print(f"text {style}", Text(head.rstrip(" "), style))

    def _end_line(self) -> None:
        line, self._line = self._line, ""
        if line:
            self._print(f"text {self._line_style}", Text(line, self._line_style))

    def _print(self, block: str, line: Text) -> None:
        """Print above the bottom lines, with an empty line between two kinds of block."""
        if self._block and block != self._block:
            self._console.print()
        self._block = block
        self._console.print(line, no_wrap=block == "calls", overflow="ellipsis")

    def _bottom(self) -> RenderableType:
        lines: list[RenderableType] = []
        if self._line:
            lines.append(Text(self._line, self._line_style))
        lines += [Text.assemble(("→ ", "cyan"), call) for call in list(self._calls.values())]
        self._spinner.update(text=Text(" · ".join(self._facts()), "dim"))
        return Group(*lines, *([Text()] if self._block or lines else []), self._spinner)

    def _facts(self) -> Iterator[str]:
        run = self._run
        if run is not None:
            yield run.node
            yield f"step {max(run.turn.number, 0) + 1}"
            yield tokens_text(run.spent.told_usage)
            if run.spent.cost_usd:
                yield f"${run.spent.cost_usd:.4f}"
        yield f"{self._clock() - self._started:.1f} s"


def _styled(agents: str, name: str, call: str) -> Text:
    return Text.assemble(
        (agents, "magenta"), (call[: len(name)], "bold cyan"), (call[len(name) :], "dim")
    )


def _fitting(line: str, width: int) -> str:
    """Return as much of the line as fits, cut after a blank if there is one."""
    fits = len(line)
    while fits > 1 and cell_len(line[:fits]) > width:
        fits -= 1
    blank = line.rfind(" ", 0, fits + 1)
    return line[:blank] if blank > 0 else line[:fits]
