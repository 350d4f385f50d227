"""Decisions about gated calls from the command line: by rule, or by whoever sits at the terminal.

The answer is read in a daemon thread, straight from the file descriptor, so that the event loop
goes on (an interrupted run can end while the question stands) and leaving never waits for a line.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from threading import Thread
from typing import TypeAlias

from ..approvals import Approval
from ..drivers.asks import Pending
from ..errors import ConfigError
from .edits import check_edit, edited
from .lines import agents_text, call_text, clean
from .request import Approve
from .screen import Screen

__all__ = ["Decide", "approver", "question", "read_answer"]

Decide: TypeAlias = Callable[[Pending], Awaitable[Approval]]

LINE_BYTES_MAX = 65_536
QUESTION_MAX = 2_000
READER = "graphloop-answer"
EDIT = ("e", "edit")
UNKNOWN = "it was approved before, and may have run already when its process stopped"


def approver(mode: Approve | None, screen: Screen, *, interactive: bool) -> Decide | None:
    """Return who decides; None where nobody can, so that the run parks."""
    match mode:
        case Approve.ALWAYS:
            return _always
        case Approve.NEVER:
            return _never
        case Approve.ASK | None:
            return _asker(screen) if interactive else None


async def _always(pending: Pending) -> Approval:
    if pending.unknown:
        return Approval(approved=False, reason="it may have run already; --approve ask asks you")
    return Approval(approved=True, reason="--approve always")


async def _never(_: Pending) -> Approval:
    return Approval(approved=False, reason="--approve never")


def _asker(screen: Screen) -> Decide:
    one_at_a_time = asyncio.Lock()

    async def ask(pending: Pending) -> Approval:
        async with one_at_a_time:
            with screen.aside():
                for line in question(pending):
                    _say(f"{line}\n")
                return await _answer(pending)

    return ask


def question(pending: Pending) -> Iterator[str]:
    """Yield what whoever decides has to know about a call."""
    yield ""
    call = call_text(pending.name, pending.arguments, QUESTION_MAX)
    yield f"? {agents_text(pending.agents)}{call}"
    if pending.unknown:
        yield f"  warning: {UNKNOWN}"


async def _answer(pending: Pending) -> Approval:
    """Ask until there is an answer; the end of input is one."""
    while True:
        _say("  allow it? y, n, e to edit the arguments, or the reason why not: ")
        line = await _line()
        if line.strip().lower() not in EDIT:
            return read_answer(line)
        _say(f"  in place of {clean(pending.arguments)}\n  arguments as JSON (empty: go back): ")
        line = await _line()
        if not line:
            return read_answer(line)
        try:
            if line.strip():
                edit = edited(line.strip())
                check_edit(pending.name, pending.parameters, edit)
                return Approval(approved=True, arguments=edit)
        except ConfigError as error:
            _say(f"  {clean(str(error))}\n")


def read_answer(line: str) -> Approval:
    """Read a decision: yes, no, or no for a reason. The end of input is no."""
    answer = line.strip()
    match answer.lower():
        case "y" | "yes":
            return Approval(approved=True)
        case "" | "n" | "no":
            return Approval(approved=False)
        case _:
            return Approval(approved=False, reason=answer)


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


async def _line() -> str:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()

    def settle(text: str) -> None:
        if not answer.done():
            answer.set_result(text)

    def read(terminal: int) -> None:
        text = os.read(terminal, LINE_BYTES_MAX).decode(errors="replace")
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            loop.call_soon_threadsafe(settle, text)

    Thread(target=read, args=(sys.stdin.fileno(),), name=READER, daemon=True).start()
    return await answer
