"""Driving: show a new or resumed run on a display, then print the commands that continue it.

The first Ctrl-C ends the run with all calls answered. The second Ctrl-C kills the process.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from contextlib import AsyncExitStack, aclosing, contextmanager
from types import FrameType
from typing import Any, Final, final

from ..agent import Agent, RunResult, RunStream
from ..parts import ErrorPart, RunStart
from ..providers import Provider
from ..questions import needed_answer
from ..run import EndReason
from .display import Display, ask_text
from .errors import Status, complain, tell_error
from .stored import Origin, close
from .text import counted

__all__ = ["ENDS", "drive"]

ENDS: Final[Mapping[EndReason, Status]] = {
    EndReason.COMPLETED: Status.OK,
    EndReason.ERROR: Status.FAILED,
    EndReason.ABORTED: Status.FAILED,
    EndReason.INCOMPLETE: Status.FAILED,
    EndReason.LENGTH: Status.FAILED,
    EndReason.CONTEXT_WINDOW: Status.FAILED,
    EndReason.EMPTY_RESPONSE: Status.FAILED,
    EndReason.REFUSAL: Status.FAILED,
    EndReason.CONTENT_FILTER: Status.FAILED,
    EndReason.PARKED: Status.PARKED,
    EndReason.MAX_STEPS: Status.STOPPED,
    EndReason.MAX_PAUSES: Status.STOPPED,
    EndReason.STOP_CONDITION: Status.STOPPED,
    EndReason.BUDGET: Status.STOPPED,
    EndReason.TOOL_ERRORS: Status.STOPPED,
    EndReason.DENIALS: Status.STOPPED,
    EndReason.TIMEOUT: Status.STOPPED,
}
"""The exit status for each end of a run; docs/command-line.md has the same table."""
INTERRUPTED: Final = "interrupted: ending the run; Ctrl-C again to quit at once"
SHOW_CURSOR: Final = b"\x1b[?25h"


async def drive(
    stream: RunStream[Any],
    display: Display,
    *,
    origin: Origin | None,
    owner: Agent[Any, Any] | Provider | None,
    asked: str | None = None,
) -> Status:
    """Show a run until it ends or parks, and return the exit status.

    Args:
        stream: the stream of the run.
        display: shows the parts of the stream.
        origin: the store of the run, if a store keeps the run.
        owner: the agent or provider that has open connections; it is closed after the run.
        asked: a prompt to show before the run.
    """

    def abort() -> None:
        # Begin a new line: the terminal has just echoed `^C`, perhaps after a question.
        display.note(
            f"\n{INTERRUPTED}" if sys.stderr is not None and sys.stderr.isatty() else INTERRUPTED
        )
        stream.abort("interrupted")

    async with AsyncExitStack() as closes:
        if origin is not None and origin.path:
            closes.push_async_callback(close, origin.store)
        if owner is not None:
            closes.push_async_callback(owner.aclose)
        with _on_interrupt(abort) as interrupt:
            try:
                failure = await _show_parts(stream, display, origin, asked, interrupt)
            except BrokenPipeError:  # `| head` has closed the pipe.
                await _print_unfinished(stream, origin, "has no reader left")
                raise
        if failure is None:
            status = await _show_result(stream, origin, display)
        else:
            status = complain(failure)
            await _print_unfinished(stream, origin, "is not over")
    return _exit_interrupted() if interrupt.came else status


async def _show_parts(
    stream: RunStream[Any],
    display: Display,
    origin: Origin | None,
    asked: str | None,
    interrupt: _Interrupt,
) -> Exception | None:
    """Show all parts of a run's stream; return the error that ended the stream, if any."""
    failure: Exception | None = None
    with display.open():
        async with aclosing(stream):
            if asked:
                display.asked(asked)
            async for part in stream.full_stream:
                interrupt.heed()
                if isinstance(part, RunStart) and origin is not None:
                    await origin.note(part.run_id)
                display.show(part, stream.run)
                if isinstance(part, ErrorPart):
                    failure = part.error
    return failure


async def _print_unfinished(stream: RunStream[Any], origin: Origin | None, why: str) -> None:
    """Print the command that resumes a run, if a store keeps the run and it has not ended."""
    run = stream.run
    if origin is not None and origin.path and run is not None and not run.ended:
        command = await origin.resume_command(run.id)
        tell_error(f"interrupted: run {run.id} {why}. Go on with: {command}")


async def _show_result(stream: RunStream[Any], origin: Origin | None, display: Display) -> Status:
    """Show the result of a run that ended or parked, and return the exit status."""
    result = await stream.result()
    kept = origin if origin is not None and origin.path else None
    display.finish(result, f"run {result.run_id} in {kept.path}" if kept else "")
    if result.end_reason is EndReason.PARKED:
        async for line in _pending_lines(result, origin):
            tell_error(line)
        return Status.PARKED
    if result.end_reason is EndReason.ABORTED and kept:
        tell_error("the run is over. To go on from an earlier event N, copy it:")
        tell_error(f"  {kept.fork_command(result.run_id)}")
    if result.broken_rules or result.owed_rules:
        return Status.FAILED
    return ENDS[result.end_reason]


async def _pending_lines(result: RunResult[Any], origin: Origin | None) -> AsyncIterator[str]:
    """Yield the questions that a parked run waits for, and the commands to answer and resume."""
    yield f"parked: the run waits for {counted(len(result.pending), 'answer')}"
    for pending in result.pending:
        yield f"  {pending.key}  {ask_text(pending)}"
    approvals = [pending for pending in result.pending if pending.kind == "approval"]
    if origin is None:
        yield (
            "It was kept in memory only. To be able to go on later, run it with --store runs.db; "
            "to decide here, run it in a terminal, or with --approve always."
        )
    elif len(approvals) < len(result.pending) or not origin.path:
        answers = ["approvals={…}"] if approvals else []
        answers += ["tool_results={…}"] if len(approvals) < len(result.pending) else []
        made = f', with the agent made with store="{origin.path}"' if origin.path else ""
        yield f"Go on from Python{made}, by the keys above:"
        yield f'  await agent.resume("{result.run_id}", {", ".join(answers)})'
    elif origin.takes_answers:
        yield "Go on, here or in another process:"
        for pending in approvals:
            needed = needed_answer(pending.ask)
            fields = f" --edit {shlex.quote(needed)}" if needed else ""
            yield f"  {origin.approve_command(result.run_id, pending.key)}{fields}"
        yield f"  {await origin.resume_command(result.run_id)}"
        takes_edits = not all(pending.unknown for pending in result.pending)
        edit = "; to change its arguments, --edit JSON" if takes_edits else ""
        yield f"To deny a call, add --deny{edit}."
    else:
        yield "Go on in a terminal, which asks; or with --approve always, or never:"
        yield f"  {await origin.resume_command(result.run_id)}"


@final
class _Interrupt:
    """Records in `came` that Ctrl-C was pressed; `heed` then aborts the run, once."""

    def __init__(self, abort: Callable[[], None]) -> None:
        self.came = False
        self._abort: Callable[[], None] | None = abort

    def heed(self) -> None:
        if self.came and self._abort is not None:
            abort, self._abort = self._abort, None
            abort()


@contextmanager
def _on_interrupt(abort: Callable[[], None]) -> Generator[_Interrupt]:
    """Inside the `with` block, call `abort` in the event loop on the first Ctrl-C.

    The second Ctrl-C has its default behaviour, even if a tool blocks the event loop. A busy event
    loop delays callbacks, so the caller must also call `heed` for every part of the stream.
    """
    loop = asyncio.get_running_loop()
    interrupt = _Interrupt(abort)

    def interrupted(_: int, __: FrameType | None) -> None:
        interrupt.came = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if sys.stdout is not None and sys.stdout.isatty():
            # `os.write` bypasses the buffer: the signal may have interrupted a buffered write.
            os.write(sys.stdout.fileno(), SHOW_CURSOR)
        loop.call_soon_threadsafe(interrupt.heed)

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)


def _exit_interrupted() -> Status:
    """Exit at once if a tool's thread still runs; otherwise return the status of an interruption.

    Python would wait for the thread before it exits.
    """
    main = threading.main_thread()
    if any(not thread.daemon for thread in threading.enumerate() if thread is not main):
        sys.stdout.flush()
        os._exit(Status.INTERRUPTED)
    return Status.INTERRUPTED
