"""Decisions about gated calls from the command line: by rule, or by whoever sits at the terminal.

The answer is read in a daemon thread, straight from the file descriptor, so that the event loop
goes on (an interrupted run can end while the question stands) and leaving never waits for a line.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from threading import Thread
from typing import TypeAlias

from ..drivers.ports import Approval
from ..front.result import Pending
from .lines import call_text
from .request import Approve
from .screen import Screen

__all__ = ["Decide", "approver", "read_answer"]

Decide: TypeAlias = Callable[[Pending], Awaitable[Approval]]

LINE_BYTES_MAX = 65_536
READER = "graphloop-answer"


def approver(mode: Approve | None, screen: Screen, *, interactive: bool) -> Decide | None:
    """Return who decides; None where nobody can, so that the run parks."""
    match mode:
        case Approve.ALWAYS:
            return _always
        case Approve.NEVER:
            return _never
        case Approve.ASK | None:
            return _asker(screen) if interactive else None


async def _always(_: Pending) -> Approval:
    return Approval(approved=True, reason="--approve always")


async def _never(_: Pending) -> Approval:
    return Approval(approved=False, reason="--approve never")


def _asker(screen: Screen) -> Decide:
    one_at_a_time = asyncio.Lock()

    async def ask(pending: Pending) -> Approval:
        async with one_at_a_time:
            with screen.aside():
                call = call_text(pending.name, pending.arguments)
                sys.stderr.write(f"\n? {call}\n  allow it? y, n, or the reason why not: ")
                sys.stderr.flush()
                return read_answer(await _line())

    return ask


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
