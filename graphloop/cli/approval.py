"""Decisions about gated calls from the command line: by rule, or by whoever sits at the terminal.

The answer is read in a daemon thread, straight from the file descriptor or by the terminal's line
editor, so that the event loop goes on (an interrupted run can end while the question stands) and
leaving never waits for a line.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from threading import Thread
from typing import TypeAlias

from ..approvals import AS_IT_WAS, Approval
from ..drivers.pending import Pending, unfit
from ..drivers.ports import LeftOpen
from ..effects import IN_WORDS
from ..errors import ConfigError
from .edits import edited
from .lines import ASKED_MAX, agents_text, call_text, clean
from .prefilled import PrefilledLine, shown_whole
from .request import Approve
from .screen import Screen

__all__ = ["Decide", "approver", "question", "read_answer"]

Decide: TypeAlias = Callable[[Pending], Awaitable[Approval]]

LINE_BYTES_MAX = 65_536
READER = "graphloop-answer"
EDIT = ("e", "edit")
ALLOW = "  allow it? y, n, e to edit the arguments, or the reason why not ({end}): "
WORDS = "  your answer in words, or y, n ({end}): "
AGAIN = "  run it again? y, n, or the reason why not ({end}): "
LATER, NO = "Ctrl-D: decide later", "Ctrl-D: no"
NOTHING = "  nothing was said, and nothing is decided\n"
UNKNOWN = "it was approved before, and may have run already when its process stopped"


def approver(
    mode: Approve | None, screen: Screen, *, interactive: bool, kept: bool = False
) -> Decide | None:
    """Return who decides; None where nobody can, so that the run parks.

    Args:
        mode: what the command line says of it.
        screen: where the run is shown.
        interactive: whether somebody sits at the terminal.
        kept: whether a store keeps the run, so that a question can be left open.
    """
    match mode:
        case Approve.ALWAYS:
            return _always
        case Approve.NEVER:
            return _never
        case Approve.ASK | None:
            return _asker(screen, kept=kept) if interactive else None


async def _always(pending: Pending) -> Approval:
    if pending.unknown:
        return Approval(approved=False, reason="it may have run already; --approve ask asks you")
    return Approval(approved=True, reason="--approve always")


async def _never(_: Pending) -> Approval:
    return Approval(approved=False, reason="--approve never")


def _asker(screen: Screen, *, kept: bool) -> Decide:
    one_at_a_time = asyncio.Lock()

    async def ask(pending: Pending) -> Approval:
        async with one_at_a_time:
            with screen.aside():
                for line in question(pending):
                    _say(f"{line}\n")
                return await _answer(pending, kept=kept)

    return ask


def question(pending: Pending) -> Iterator[str]:
    """Yield what whoever decides has to know about a call."""
    yield ""
    call = call_text(pending.name, pending.arguments, ASKED_MAX)
    yield f"? {agents_text(pending.agents)}{call}"
    if pending.unknown:
        yield f"  warning: {UNKNOWN}"


async def _answer(pending: Pending, *, kept: bool) -> Approval:
    """Ask until there is an answer; the end of input is none, where the run is kept.

    Raises:
        LeftOpen: the end of input has come: whoever takes the run up is asked again.
    """
    in_words = pending.in_words and pending.parameters == IN_WORDS
    asks = (WORDS if in_words else AGAIN if pending.unknown else ALLOW).format(
        end=LATER if kept else NO
    )
    while True:
        _say(asks)
        line = await _line()
        if line.strip().lower() in EDIT and not in_words:
            if pending.unknown:
                _say(f"  {AS_IT_WAS}\n")
                continue
            line = await _edit(pending)
            edit = _read_edit(pending, line)
            if edit is not None:
                return edit
        elif line.strip():
            return _in_words(line) if in_words else read_answer(line)
        elif line:
            _say(NOTHING)
        if not line:
            return _at_the_end(kept=kept)


def _at_the_end(*, kept: bool) -> Approval:
    """Return what the end of input means: nothing more will be typed now."""
    _say("\n")
    if kept:
        raise LeftOpen
    return Approval(approved=False)


def _read_edit(pending: Pending, line: str) -> Approval | None:
    """Return the approval of a call with the arguments typed; None if they are not to be used."""
    if not line.strip():
        return None
    try:
        edit = edited(line.strip())
        problem = unfit(pending.name, pending.parameters, edit)
    except ConfigError as error:
        edit, problem = "", str(error)
    if problem is not None:
        _say(f"  {clean(problem)}\n")
        return None
    return Approval(approved=True, arguments=edit)


def _in_words(line: str) -> Approval:
    """Read what somebody says to a node's question: all but a plain yes or no is the answer."""
    said = read_answer(line)
    if not said.reason:
        return said
    return Approval(
        approved=True, arguments=json.dumps({"answer": said.reason}, ensure_ascii=False)
    )


async def _edit(pending: Pending) -> str:
    """Return the line that stands for the call's arguments; they are in it, where they can be."""
    prompt = "  arguments as JSON (empty: go back): "
    if PrefilledLine.is_possible():
        prefilled = PrefilledLine(prompt, shown_whole(pending.arguments))
        with prefilled.leaving():
            return await _line(prefilled.read)
    _say(f"  in place of {clean(pending.arguments)}\n{prompt}")
    return await _line()


def read_answer(line: str) -> Approval:
    """Read a decision: yes, no, or no for a reason."""
    answer = line.strip()
    match answer.lower():
        case "y" | "yes":
            return Approval(approved=True)
        case "n" | "no":
            return Approval(approved=False)
        case _:
            return Approval(approved=False, reason=answer)


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _typed() -> str:
    try:
        return os.read(sys.stdin.fileno(), LINE_BYTES_MAX).decode(errors="replace")
    except OSError:  # The terminal is gone.
        return ""


async def _line(read: Callable[[], str] = _typed) -> str:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()

    def settle(text: str) -> None:
        if not answer.done():
            answer.set_result(text)

    def wait() -> None:
        text = read()
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            loop.call_soon_threadsafe(settle, text)

    Thread(target=wait, name=READER, daemon=True).start()
    return await answer
