"""Ask at the terminal: decide about calls that need approval, by `--approve` or by a person.

A daemon thread reads the answer from the file descriptor. The event loop therefore continues while
a question waits, and the process can exit without an answer.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from threading import Thread
from typing import Any, Final, TypeAlias

from ..agent import Agent, RunOptions
from ..driver import LeftOpen
from ..effects import IN_WORDS
from ..errors import ConfigError
from ..policy import AS_IT_WAS, Approval
from ..questions import Pending, unfit
from .display import Display
from .errors import tell_error
from .options import ApproveMode
from .target import Loop
from .text import ASKED_MAX, agents_text, call_text, clean, wrapped

__all__ = ["json_object", "with_approver"]

Approver: TypeAlias = Callable[[Pending], Awaitable[Approval]]

LINE_BYTES_MAX: Final = 65_536
ALLOW: Final = "  allow it? y, n, e to edit the arguments, or the reason why not ({end}):"
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
    return Approval(approved=True, reason="--approve always")


async def _decline_all(_: Pending) -> Approval:
    return Approval(approved=False, reason="--approve never")


def _make_asker(display: Display, *, kept: bool) -> Approver:
    one_at_a_time = asyncio.Lock()

    async def ask(pending: Pending) -> Approval:
        async with one_at_a_time:
            with display.aside():
                call = call_text(pending.name, pending.arguments, ASKED_MAX)
                tell_error(f"\n? {agents_text(pending.agents, pending.server)}{call}")
                if pending.unknown:
                    tell_error(UNKNOWN)
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
            case "y" | "yes":
                return Approval(approved=True)
            case "n" | "no":
                return Approval(approved=False)
            case "e" | "edit" if not in_words:
                if edit := await _ask_edit(pending):
                    return edit
            case "" if line:
                tell_error("  no answer: nothing is decided yet")
            case "":
                if kept:
                    raise LeftOpen
                return Approval(approved=False)
            case _ if in_words:
                answer = json.dumps({"answer": text}, ensure_ascii=False)
                return Approval(approved=True, arguments=answer)
            case _:
                return Approval(approved=False, reason=text)


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
