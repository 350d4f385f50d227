"""Ask at the terminal: decide about calls that need approval, by `--approve` or by a person.

A daemon thread reads the answer from the file descriptor. The event loop therefore continues while
a question waits, and the process can exit without an answer.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from threading import Thread
from typing import Any, Final, TypeAlias, cast

from ..agent import Agent, RunOptions
from ..driver import LeftOpen
from ..effects import IN_WORDS
from ..errors import ConfigError
from ..policy import AS_IT_WAS, Approval
from ..questions import Pending, asked_by_tool, bad_yes, question_in, unfit
from .display import Display
from .errors import tell_error
from .options import ApproveMode
from .target import Loop
from .text import ASKED_MAX, agents_text, call_text, clean, one_line, wrapped

__all__ = ["json_object", "with_approver"]

Approver: TypeAlias = Callable[[Pending], Awaitable[Approval]]
Fields: TypeAlias = dict[str, dict[str, object]]

LINE_BYTES_MAX: Final = 65_536
ALLOW: Final = "  allow it? y, n, e to edit the arguments, or the reason why not ({end}):"
FORM: Final = "  your answer? y to fill it in, n, or n and the reason why not ({end}):"
WORDS: Final = "  your answer in words, or y, n ({end}):"
AGAIN: Final = "  run it again? y, n, or the reason why not ({end}):"
LATER: Final = "Ctrl-D: decide later"
NO: Final = "Ctrl-D: no"
UNKNOWN: Final = (
    "  warning: it was approved before, and may have run already when its process stopped"
)


def with_approver(
    loop: Loop, options: RunOptions[Any], mode: ApproveMode | None, display: Display
) -> tuple[Loop, RunOptions[Any]]:
    """Return an agent or graph and its run options, with the approver that `--approve` selects.

    Without `--approve`, an agent keeps its own approver. A returned agent contains all options, so
    the options returned with an agent are empty.
    """
    own: RunOptions[Any] = loop.options if isinstance(loop, Agent) else {}
    if mode is not None or own.get("approve_tool_call") is None:
        options["approve_tool_call"] = _approver_of_mode(mode, display, kept="store" in options)
    given: dict[str, Any] = {**options}  # The options of a graph are options of an agent, too.
    return (loop.with_options(**given), {}) if isinstance(loop, Agent) else (loop, options)


def _approver_of_mode(mode: ApproveMode | None, display: Display, *, kept: bool) -> Approver | None:
    """Return the approver for a mode; None without a terminal, so that the run parks.

    With `kept`, a store keeps the run; only then can a person leave a question open.
    """
    match mode:
        case ApproveMode.ALWAYS:
            return _approve_all
        case ApproveMode.NEVER:
            return _decline_all
        case _:
            streams = (sys.stdin, sys.stderr)  # A stream is None if it was closed at the start.
            at_terminal = all(stream is not None and stream.isatty() for stream in streams)
            return _make_asker(display, kept=kept) if at_terminal else None


def json_object(text: str) -> str:
    """Return `text` unchanged; raise an error if it is not a JSON object."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ConfigError(f"expected the arguments as a JSON object, found {text!r:.80}.")
    return text


async def _approve_all(pending: Pending) -> Approval:
    if pending.unknown:
        return Approval(approved=False, reason="it may have run already; --approve ask asks you")
    if bad_yes(pending.ask):
        return Approval(approved=False, reason="it needs an answer; --approve ask asks you")
    return Approval(approved=True, reason="--approve always")


async def _decline_all(_: Pending) -> Approval:
    return Approval(approved=False, reason="--approve never")


def _make_asker(display: Display, *, kept: bool) -> Approver:
    one_at_a_time = asyncio.Lock()

    async def ask(pending: Pending) -> Approval:
        async with one_at_a_time:
            with display.aside():
                fields = _form_fields(pending)
                call = call_text(pending.name, pending.arguments, ASKED_MAX)
                if fields:
                    asked = one_line(question_in(pending) or "", ASKED_MAX)
                    call = f"{clean(pending.name)}: {asked}"
                tell_error(f"\n? {agents_text(pending.agents, pending.server)}{call}")
                if pending.unknown:
                    tell_error(UNKNOWN)
                if fields:
                    return await _ask_form(pending, fields, kept=kept)
                return await _ask_person(pending, kept=kept)

    return ask


async def _ask_person(pending: Pending, *, kept: bool) -> Approval:
    """Ask the person at the terminal until there is a valid answer, and return it.

    Raises:
        LeftOpen: the person typed Ctrl-D, and a store keeps the run.
    """
    in_words = pending.in_words and pending.parameters == IN_WORDS
    prompt = WORDS if in_words else AGAIN if pending.unknown else ALLOW
    while True:
        line = await _read_line(prompt.format(end=LATER if kept else NO))
        text = line.strip()
        match text.lower():
            case "y" | "yes" if in_words and bad_yes(pending.ask):
                tell_error("  a yes is no answer: answer in words")
            case "y" | "yes":
                return Approval(approved=True)
            case "n" | "no":
                return Approval(approved=False)
            case "e" | "edit" if not in_words:
                if edit := await _ask_edit(pending):
                    return edit
            case "":
                if denial := _deny_at_end(line, kept=kept):
                    return denial
            case _ if in_words:
                answer = json.dumps({"answer": text}, ensure_ascii=False)
                return Approval(approved=True, arguments=answer)
            case _:
                return Approval(approved=False, reason=text)


def _deny_at_end(line: str, *, kept: bool) -> Approval | None:
    """Return a denial at the end of input; None after an empty line, which decides nothing.

    Raises:
        LeftOpen: the person typed Ctrl-D, and a store keeps the run.
    """
    if line:
        tell_error("  no answer: nothing is decided yet")
        return None
    if kept:
        raise LeftOpen
    return Approval(approved=False)


def _form_fields(pending: Pending) -> Fields:
    """Return the fields of a running tool's form, by name; none for any other question."""
    if not asked_by_tool(pending.ask) or pending.parameters == IN_WORDS:
        return {}
    form = cast("dict[str, dict[str, object]]", json.loads(pending.parameters))  # A JSON Schema.
    return {
        name: cast("dict[str, object]", field) if isinstance(field, dict) else {}  # Or `true`.
        for name, field in form.get("properties", {}).items()
    }


async def _ask_form(pending: Pending, fields: Fields, *, kept: bool) -> Approval:
    """Ask the person at the terminal until a form is filled in or refused; see `_ask_person`."""
    while True:
        line = await _read_line(FORM.format(end=LATER if kept else NO))
        word, _, reason = line.strip().partition(" ")
        match word.lower():
            case "y" | "yes":
                if answer := await _ask_fields(pending, fields):
                    return answer
            case "n" | "no":
                return Approval(approved=False, reason=reason.strip())
            case "":
                if denial := _deny_at_end(line, kept=kept):
                    return denial
            case _:
                tell_error("  no answer: nothing is decided yet")


async def _ask_fields(pending: Pending, fields: Fields) -> Approval | None:
    """Ask for each field of a form, and return the answer.

    None asks the question again: after an answer that does not fit, and after Ctrl-D.
    """
    required = json.loads(pending.parameters).get("required", [])
    given: dict[str, object] = {}
    for name, field in fields.items():
        line = await _read_line(_field_prompt(name, field, needed=name in required))
        if not line:
            return None
        if text := line.strip():
            given[name] = text if field.get("type") == "string" else _json_or_text(text)
    answer = json.dumps(given, ensure_ascii=False)
    problem = unfit(pending.name, pending.parameters, answer)
    if problem is None:
        return Approval(approved=True, arguments=answer)
    tell_error(f"  {clean(problem)}")
    return None


def _field_prompt(name: str, field: Mapping[str, object], *, needed: bool) -> str:
    """Return the question for a field, such as `size (integer; needed; the EU size):`."""
    choices = field.get("enum")
    known = cast("list[object]", choices) if isinstance(choices, list) else []
    kind = " or ".join(map(str, known)) or field.get("type", "")
    empty = f"empty: {json.dumps(field['default'])}" if "default" in field else "may be empty"
    empty = "needed" if needed else empty
    about = [str(fact) for fact in (kind, empty, field.get("description")) if fact]
    return f"  {one_line(name, ASKED_MAX)} ({one_line('; '.join(about), ASKED_MAX)}):"


def _json_or_text(text: str) -> object:
    """Return the value of a JSON text, or the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


async def _ask_edit(pending: Pending) -> Approval | None:
    """Ask for edited arguments, and return the approval; None to ask the first question again."""
    if pending.unknown:
        tell_error(f"  {AS_IT_WAS}")
        return None
    tell_error(f"  in place of {clean(pending.arguments)}")
    text = (await _read_line("  arguments as JSON (empty: go back):")).strip()
    if not text:
        return None
    try:
        problem = unfit(pending.name, pending.parameters, json_object(text))
    except ConfigError as error:
        problem = str(error)
    if problem is None:
        return Approval(approved=True, arguments=text)
    tell_error(f"  {clean(problem)}")
    return None


async def _read_line(prompt: str) -> str:
    """Return a line typed at the terminal, with its newline; empty at the end of input."""
    sys.stderr.write(f"{wrapped(prompt, sys.stderr)} ")
    sys.stderr.flush()
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()

    def set_answer(text: str) -> None:
        if not answer.done():
            answer.set_result(text)

    def read() -> None:
        try:
            text = os.read(sys.stdin.fileno(), LINE_BYTES_MAX).decode(errors="replace")
        except OSError:  # The terminal is gone.
            text = ""
        with suppress(RuntimeError):  # The event loop is closed.
            loop.call_soon_threadsafe(set_answer, text)

    Thread(target=read, name="graphloop-answer", daemon=True).start()
    text = await answer
    if not text:
        tell_error("")  # Ctrl-D leaves the cursor behind the question.
    return text
