"""Interrupts: whether somebody has pressed Ctrl-C, or a node wants to leave the process."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Final, final

__all__ = ["Interrupts"]

LEAVING: Final = (SystemExit, GeneratorExit)


@final
class Interrupts:
    """Listens for Ctrl-C as long as it is entered, and lets it through.

    Only in the main thread, and only where nobody else listens: elsewhere nobody can tell who
    raised a `KeyboardInterrupt`, and it counts as a person's.
    """

    def __init__(self) -> None:
        self._listens = self._heard = False

    def __enter__(self) -> None:
        """Listen."""
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._hear)
            self._listens = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave Ctrl-C to whom it belongs."""
        if self._listens:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._listens = False

    def is_leaving(self, error: BaseException) -> bool:
        """Whether an error that came out of a node is the node's own wish to end the process."""
        if isinstance(error, KeyboardInterrupt):
            return self._listens and not self._heard
        return isinstance(error, LEAVING)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._heard = True
        signal.default_int_handler(number, frame)
