"""Watching one run, new or taken up again, on the screen that fits."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, TextIO, final

from rich.console import Console

from ..front.stream import RunStream
from ..run import EndReason
from ..views.parts import ErrorPart, RunStart
from .approval import Decide, approver
from .interrupt import interrupts
from .json_lines import JsonScreen
from .live import LiveScreen
from .parked import pending_lines
from .place import Place
from .plain import PlainScreen
from .request import Approve
from .screen import Screen
from .status import Status, complain, tell

__all__ = ["Watched", "decider", "screen_for", "watch"]

NO_ANSWER: Final = {"context_window", "empty_response", "incomplete", "length"}
"""How a run ends that has half an answer, or none."""

INTERRUPTED = "interrupted: ending the run; Ctrl-C again to quit at once"


@final
@dataclass(frozen=True)
class Watched:
    """A run that is ready to be watched, what to close after it, and where it is kept, if it is."""

    stream: RunStream[None]
    close: Callable[[], Awaitable[None]]
    place: Place | None


async def watch(watched: Watched, screen: Screen, asked: str | None) -> Status:
    """Show a run to its end and return the status it ends with; `asked` is shown first."""
    stream, place = watched.stream, watched.place

    def abort() -> None:
        screen.note(INTERRUPTED)
        stream.abort("interrupted")

    failure: Exception | None = None
    run_id = ""
    try:
        # Who cannot be shown anything, as `| head` when it has read enough, leaves the run.
        with interrupts(abort) as interrupt, screen.open():
            async with aclosing(stream):
                if asked:
                    screen.asked(asked)
                async for part in stream.full_stream:
                    interrupt.heed()
                    if isinstance(part, RunStart):
                        run_id = part.run_id
                        if place is not None:
                            await place.note(run_id)
                    screen.show(part, stream.run)
                    if isinstance(part, ErrorPart):
                        failure = part.error
        if failure is not None:
            status = complain(failure)
            _tell_interrupted(stream, place, f"run {run_id} is not over.")
        else:
            status = await _finished(stream, place, screen)
    except BrokenPipeError:
        _tell_interrupted(stream, place, f"nobody reads what run {run_id} shows.")
        raise
    finally:
        await watched.close()
    return _interrupted() if interrupt.came else status


def _tell_interrupted(stream: RunStream[None], place: Place | None, why: str) -> None:
    """Tell how to go on with a run that is kept and not over."""
    run = stream.run
    if place is not None and place.path and run is not None and not run.ended:
        tell(f"interrupted: {why} Go on with: {place.resume_command(run.id)}")


async def _finished(stream: RunStream[None], place: Place | None, screen: Screen) -> Status:
    result = await stream.result()
    kept = f"run {result.run_id} in {place.path}" if place is not None and place.path else ""
    screen.finish(result, kept)
    if result.end_reason is not EndReason.PARKED:
        failed = result.end_reason in NO_ANSWER or result.broken_rules or result.owed_rules
        return Status.FAILED if failed else Status.OK
    for line in pending_lines(result, place):
        tell(line)
    return Status.PARKED


def decider(mode: Approve | None, screen: Screen, *, kept: bool = False) -> Decide | None:
    """Return who decides about calls; None where there is no terminal to ask at.

    Args:
        mode: what the command line says of it.
        screen: where the run is shown.
        kept: whether a store keeps the run.
    """
    interactive = _is_terminal(sys.stdin) and _is_terminal(sys.stderr)
    return approver(mode, screen, interactive=interactive, kept=kept)


def screen_for(*, as_json: bool) -> Screen:
    """Return what shows a run: JSON lines, a live screen on a terminal, else plain lines."""
    out = sys.stdout
    if as_json:
        return JsonScreen(out)
    if out.isatty():
        return LiveScreen(Console(highlight=False), time.monotonic)
    return PlainScreen(out)


def _is_terminal(stream: TextIO | None) -> bool:
    """Whether somebody sits there; a stream that was closed before we began is None."""
    return stream is not None and stream.isatty()


def _interrupted() -> Status:
    """Leave at once if a tool's thread still runs: it cannot be stopped, and exiting waits."""
    main = threading.main_thread()
    if any(not thread.daemon for thread in threading.enumerate() if thread is not main):
        sys.stdout.flush()
        os._exit(Status.INTERRUPTED)
    return Status.INTERRUPTED
