"""Ctrl-C during a run: the first aborts it properly, the second ends the process at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Final, final

__all__ = ["Interrupt", "interrupts"]

SHOW_CURSOR: Final = b"\x1b[?25h"


@final
class Interrupt:
    """Whether Ctrl-C `came`, and what is to be done about it, once."""

    def __init__(self, abort: Callable[[], None]) -> None:
        """Wait for it."""
        self.came = False
        self._abort: Callable[[], None] | None = abort

    def heed(self) -> None:
        """Abort now, if it came and nobody has done so yet."""
        if self.came and self._abort is not None:
            abort, self._abort = self._abort, None
            abort()


@contextmanager
def interrupts(abort: Callable[[], None]) -> Generator[Interrupt]:
    """Call `abort` in the running event loop on the first Ctrl-C.

    The second one gets the system's own behaviour. It must work while a tool blocks the event
    loop, so the handler does nothing but note that it was called, put that in place, show the
    cursor that a live screen may have hidden (unbuffered: a handler may have interrupted a
    write), and wake the loop. A loop that is kept busy gives the abort no turn: whoever watches
    the run calls `heed` on what is yielded here, whenever something happens.
    """
    loop = asyncio.get_running_loop()
    interrupt = Interrupt(abort)

    def interrupted(_: int, __: FrameType | None) -> None:
        interrupt.came = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if sys.stdout is not None and sys.stdout.isatty():
            os.write(sys.stdout.fileno(), SHOW_CURSOR)
        loop.call_soon_threadsafe(interrupt.heed)

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
