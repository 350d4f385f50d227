"""Display: show a run as lines of text for people, or as JSON lines for programs.

On a terminal, finished lines scroll up. Below them, live lines show the model's unfinished line,
the running calls and a status. On other outputs, the lines are plain, and the model's text is
written as it arrives.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from typing import Any, Final, TextIO, TypeAlias, TypeVar, final

from msgspec import to_builtins
from msgspec.json import encode
from pydantic_core import to_json
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from ..agent import FINAL_ANSWER, NOT_TAKEN, RunResult
from ..conversation import latest_answer
from ..media import Inline
from ..parts import (
    ErrorPart,
    Finish,
    Part,
    StepRetry,
    StepStart,
    SubAgent,
    ToolCallPart,
    ToolResultPart,
    ToolState,
    Warned,
)
from ..providers import MediaDelta, ProviderToolDelta, ReasoningDelta, TextDelta
from ..questions import Pending
from ..run import EndReason, Run
from ..stores import Ask
from ..tools import ToolProgress
from ..values import MediaPart, ToolResult, Usage, UserMessage
from .errors import tell_error
from .text import (
    ASKED_MAX,
    agents_text,
    call_text,
    clean,
    content_text,
    counted,
    one_line,
    safe_json,
)

__all__ = [
    "Display",
    "JsonDisplay",
    "TextDisplay",
    "ask_text",
    "display_for",
    "state_text",
    "tokens_text",
]

S = TypeVar("S")

RESULT_MAX: Final = 200
WRITING_MAX: Final = 5
"""The largest number of rows that show the model's unfinished line."""
REFRESHES_PER_SECOND: Final = 10
CALL_KEY: Final = re.compile(r"c(\d+)\.(\d+)")
MARKS: Final = {"ok": ("✓", "green"), "denied": ("⊘", "yellow"), "not_run": ("⊘", "yellow")}


@final
class JsonDisplay:
    """Writes one JSON object per line, for each part of a run's stream.

    A line has the `type` and the fields of a part in `graphloop.parts.parts`. A line of type
    `error` has the exception's class name as `error`, and its `message`. The last line is an
    `error`, or a `finish` with the run's answer as `text`. If the graph has a state, a line of type
    `state` precedes `finish`. Readers should ignore unknown types and fields of later versions.
    """

    def __init__(self) -> None:
        """Keep a reference to stdout, because `open` redirects it."""
        self._out = sys.stdout

    def open(self) -> AbstractContextManager[object]:
        """Return a context manager that redirects prints, such as those of tools, to stderr."""
        return redirect_stdout(sys.stderr)

    def aside(self) -> AbstractContextManager[object]:
        """Return an empty context manager: questions go to stderr and need no change here."""
        return nullcontext()

    def asked(self, prompt: str) -> None:
        """Do nothing: the JSON output contains only parts, and the prompt is not a part."""

    def note(self, message: str) -> None:
        """Write a message to stderr."""
        tell_error(message)

    def show(self, part: Part, run: Run[None] | None) -> None:
        """Write a part as a JSON line; write the run's state before the `finish` part."""
        if isinstance(part, ErrorPart):
            error = {"error": type(part.error).__name__, "message": str(part.error)}
            self._write_line(encode({"type": part.type, **error}))
        elif isinstance(part, Finish) and run is not None:
            state: object = run.state
            if state is not None:
                self._write_line(to_json({"type": "state", "state": state}, fallback=repr))
            self._write_line(encode({**to_builtins(part), "text": latest_answer(run)}))
        else:
            self._write_line(encode(part))

    def finish(self, result: RunResult[Any], kept: str) -> None:
        """Do nothing: `show` has already written the result with the `finish` part."""

    def _write_line(self, line: bytes) -> None:
        self._out.write(safe_json(line.decode()) + "\n")
        self._out.flush()


@final
class TextDisplay:
    """Shows a run as lines of text; on a terminal, with colours and live lines at the bottom."""

    def __init__(self) -> None:
        """Prepare to write to stdout; use colours and live lines only if it is a terminal."""
        self._out: TextIO = sys.stdout
        self._console = Console(highlight=False) if self._out.isatty() else None
        self._started = time.monotonic()
        self._run: Run[None] | None = None
        self._line, self._style = "", ""
        self._calls: dict[str, str] = {}
        self._progress: dict[str, str] = {}
        self._answer, self._media = "", set[int]()
        self._spinner = Spinner("dots", style="cyan")
        self._live: Live | None = None

    @contextmanager
    def open(self) -> Generator[None]:
        """Show the live lines inside the `with` block, if stdout is a terminal."""
        self._start()
        try:
            yield
        finally:
            self._stop()
            self._end_line()

    @contextmanager
    def aside(self) -> Generator[None]:
        """Remove the live lines inside the `with` block, where a question is asked."""
        self._end_line()
        self._stop()
        try:
            yield
        finally:
            self._start()

    def asked(self, prompt: str) -> None:
        """Show the prompt that the target's file defines."""
        self._print(f"> {clean(prompt)}", "bold")

    def note(self, message: str) -> None:
        """Show a message that is not part of the run."""
        self._end_line()
        if self._console is None:
            tell_error(message)
        else:
            self._print(clean(message), "yellow")

    def show(self, part: Part, run: Run[None] | None) -> None:
        """Show a part of the run's stream; of child runs, show only calls and their results."""
        self._run = run
        agents, path = "", ""
        if isinstance(part, SubAgent):
            agents, path = agents_text(part.agents), "".join(f"{key}/" for key in part.path)
            part = part.part
        match part:
            case ToolCallPart():
                self._print_call(f"{path}{part.key}", agents, part)
            case ToolState() if part.arguments:
                call = call_text(part.tool_name, part.arguments)
                self._calls[f"{path}{part.key}"] = f"{agents}{call} (edited)"
            case ToolProgress():
                self._progress[f"{path}{part.key}"] = _progress_text(part)
            case ToolResultPart():
                self._print_result(f"{path}{part.result.key}", agents, part.result)
            case _ if not agents:
                self._show_own(part, run)
            case _:
                pass

    def finish(self, result: RunResult[Any], kept: str) -> None:
        """Show the answer if it was not streamed, the state, and the reason why the run ended."""
        answer = clean(result.text).strip()
        if result.end_reason is EndReason.COMPLETED and answer not in self._answer:
            self._print(answer)
        if state := state_text(result.run):
            self._print(state)
        elapsed = [] if self._console is None else [f"{time.monotonic() - self._started:.1f} s"]
        facts = [*_end_facts(result), *elapsed, *([kept] if kept else [])]
        self._print(" · ".join(facts), "dim")

    def _show_own(self, part: Part, run: Run[None] | None) -> None:
        match part:
            case TextDelta():
                self._answer += clean(part.text)
                self._write_line(clean(part.text), "")
            case ReasoningDelta():
                # Shown only on a terminal: a file should contain the answer without reasoning.
                self._write_line(
                    clean(part.text) if self._console is not None else "", "dim italic"
                )
            case MediaDelta(preview=False) if part.index not in self._media:
                self._media.add(part.index)
                self._print(f"[{MediaPart(clean(part.media_type), Inline(b'')).label}]")
            case ProviderToolDelta(state="running"):
                call = call_text(part.name, part.arguments)
                self._print(f"→ {call} on the model's server")
            case ProviderToolDelta(state="failed"):
                self._print(f"✗ {clean(part.name)} failed on the model's server", "red")
            case StepStart():
                self._answer = ""
                self._media.clear()
                self._end_line()
                if message := _injected_message(run):
                    self._print(f"↩ {message}", "magenta")
            case StepRetry():
                self._answer = ""
                self._print(f"↻ {part.reason}: asked again", "yellow")
            case Warned():
                self.note(f"warning: {part.message}")
            case _:
                pass

    def _print_call(self, key: str, agents: str, part: ToolCallPart) -> None:
        call = self._calls[key] = f"{agents}{call_text(part.tool_name, part.arguments)}"
        self._end_line()
        if self._console is None:
            self._print(f"→ {call}")

    def _print_result(self, key: str, agents: str, result: ToolResult) -> None:
        self._progress.pop(key, None)
        call = self._calls.pop(key, None) or f"{agents}{_call_of(self._run, key) or result.name}"
        is_answer = result.name == FINAL_ANSWER and not agents
        if is_answer and result.status == "ok" and result.text != NOT_TAKEN:
            self._answer += clean(result.text)
            self._print(clean(result.text))
            return
        sign, style = MARKS.get(result.status, ("✗", "red"))
        if is_answer:
            sign, style = "✗", "red"
        text = one_line(content_text(result.content), RESULT_MAX) or "(no text)"
        self._print(f"{sign} {call}: {text}", style if sign != "✓" else "")

    def _write_line(self, text: str, style: str) -> None:
        """Write streamed text; on a terminal, print only complete lines and keep the rest."""
        if self._console is None:
            self._out.write(text)
            self._out.flush()
            self._line = (self._line + text).rpartition("\n")[2]
            return
        if style != self._style:
            self._end_line()
            self._style = style
        *whole, self._line = (self._line + text).split("\n")
        for line in whole:
            self._put(line, style)

    def _end_line(self) -> None:
        line, self._line = self._line, ""
        if line:
            self._put("" if self._console is None else line, self._style)

    def _print(self, line: str, style: str = "") -> None:
        self._end_line()
        self._put(line, style)

    def _put(self, line: str, style: str) -> None:
        if self._console is None:
            self._out.write(f"{line}\n")
            self._out.flush()
        else:
            self._console.print(Text(line, style))

    def _start(self) -> None:
        if self._console is not None:
            # A new object each time: a stopped Live that starts again erases lines above.
            self._live = Live(
                console=self._console,
                get_renderable=self._status_line,
                refresh_per_second=REFRESHES_PER_SECOND,
                transient=True,
            )
            self._live.start()

    def _stop(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            self._end_line()
            live.stop()

    def _status_line(self) -> RenderableType:
        assert self._console is not None, "only a terminal has a bottom"
        rows = Text(self._line, self._style).wrap(self._console, self._console.width)
        calls = list(self._calls.items())  # A copy: another thread calls this.
        shown = [f"→ {call} {self._progress.get(key, '')}".rstrip() for key, call in calls]
        lines = [*rows[-WRITING_MAX:], *[Text(call, "cyan") for call in shown]]
        self._spinner.update(text=Text(" · ".join(self._status_facts()), "dim"))
        return Group(*lines, self._spinner)

    def _status_facts(self) -> Iterator[str]:
        run = self._run
        if run is not None:
            yield run.node
            yield f"step {max(run.turn.number, 0) + 1}"
            yield tokens_text(run.spent.told_usage)
            if run.spent.cost_usd:
                yield f"${run.spent.cost_usd:.4f}"
        yield f"{time.monotonic() - self._started:.1f} s"


Display: TypeAlias = TextDisplay | JsonDisplay


def display_for(*, as_json: bool) -> Display:
    """Return a display that shows a run as JSON lines or as text."""
    return JsonDisplay() if as_json else TextDisplay()


def ask_text(ask: Ask | Pending) -> str:
    """Return the text of a question: its call, the agents, and whether the call may have run."""
    kind = "approval of " if ask.kind == "approval" else "the result of "
    call = call_text(ask.name, ask.arguments, ASKED_MAX)
    unknown = "; it may have run already" if ask.unknown else ""
    return f"{kind}{agents_text(ask.agents, ask.server)}{call}{unknown}"


def state_text(run: Run[S]) -> str:
    """Return the state of a run on one line; empty if the run has no state."""
    return "" if run.state is None else f"state: {one_line(repr(run.state), ASKED_MAX)}"


def tokens_text(usage: Usage | None) -> str:
    """Return the number of tokens as text, or `tokens unknown` if the server did not report it."""
    return f"{usage.total_tokens:,} tokens" if usage else "tokens unknown"


def _end_facts(result: RunResult[Any, S]) -> Iterator[str]:
    """Yield texts about a run's end: the reason, rules, steps, tokens and cost."""
    reason = result.end_reason
    named = [name for name in result.stopped_by if name != reason]
    yield f"{reason} ({', '.join(named)})" if named else str(reason)
    if result.broken_rules:
        yield f"{counted(len(result.broken_rules), 'rule')} broken"
    if result.owed_rules:
        yield f"{counted(len(result.owed_rules), 'rule')} owed"
    yield counted(len(result.steps), "step")
    yield tokens_text(result.total_usage)
    if result.cost_usd is not None:
        yield f"${result.cost_usd:.4f}"
    elif not result.run.setup.model.startswith("script"):
        yield "cost unknown"


def _progress_text(part: ToolProgress) -> str:
    """Return how far a tool is, such as `3/40 reading`."""
    total = "" if part.total is None else f"/{part.total:g}"
    return one_line(f"{part.done:g}{total} {part.message}".rstrip(), RESULT_MAX)


def _injected_message(run: Run[S] | None) -> str:
    """Return the run's latest message if a node added it, else an empty text."""
    last = run.messages[-1] if run is not None and run.messages else None
    if isinstance(last, UserMessage) and last.origin and isinstance(last.content, str):
        return f"{last.origin}: {one_line(last.content, RESULT_MAX)}"
    return ""


def _call_of(run: Run[S] | None, key: str) -> str | None:
    """Return the text of the run's call with a key such as `c0.1`; None if there is no call."""
    match = CALL_KEY.fullmatch(key)
    if run is None or match is None:
        return None
    turn, place = int(match[1]), int(match[2])
    # Look in the finished turns first: a result may arrive after its turn has ended.
    calls = {step.index: step.tool_calls for step in run.record.steps}.get(turn, ())
    calls = calls or (run.turn.calls if run.turn.number == turn else ())
    return call_text(calls[place].name, calls[place].arguments) if place < len(calls) else None
