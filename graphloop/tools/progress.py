"""Progress: what a running tool reports to the readers of the run's stream.

Reports are live only: no journal has them, and no model reads them. A tool may report as often as
it likes. A reader gets the first report, then at most one in `PERIOD_S`, and always the last one.
"""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop
from collections.abc import Callable, Generator
from typing import ClassVar, Final, Literal, final

from msgspec import Struct, field

from ..errors import ConfigError
from ..spending import is_number

__all__ = ["ProgressReports", "ToolProgress", "Yielding"]

PERIOD_S: Final = 0.05
"""The seconds between two reports of one call that a reader gets."""


class ToolProgress(Struct, frozen=True, tag_field="type", tag="tool-progress", gc=False):
    """A running tool reports how far it is; live only, so a replay has no such part.

    `done` counts in the tool's own unit, up to `total` if the tool knows it.
    """

    key: str
    tool_name: str
    done: float
    total: float | None = None
    message: str = ""
    type: ClassVar[Literal["tool-progress"]] = "tool-progress"


class ProgressReports(Struct, eq=False):
    """The reports of one call, of which a listener hears as many as it can use.

    Args:
        hear: takes a report, or returns False if its reader is too far behind.
        key: the key of the call.
        tool_name: the name of the called tool.
    """

    _hear: Callable[[ToolProgress], bool]
    _key: str
    _tool_name: str
    _loop: AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _latest: ToolProgress | None = None
    _handle: asyncio.Handle | None = None
    _next_at: float = 0.0
    _is_closed: bool = False

    def tell(self, done: float, total: float | None, message: str) -> None:
        """Keep a report for the listener; any thread may call this.

        Raises:
            ConfigError: an argument is not valid.
        """
        for name, value in (("done", done), ("total", total)):
            if not (is_number(value) or (value is None and name == "total")):
                raise ConfigError(f"report: `{name}`: expected a number, found {value!r:.80}.")
        waits = self._latest is not None
        self._latest = ToolProgress(self._key, self._tool_name, done, total, str(message))
        if waits or self._is_closed:
            return  # The listener will hear this report in place of the waiting one.
        try:
            is_here = asyncio.get_running_loop() is self._loop
        except RuntimeError:  # A tool in a thread.
            is_here = False
        if is_here:
            self._schedule()
        else:
            self._loop.call_soon_threadsafe(self._schedule)

    def close(self) -> None:
        """Have the listener hear the last report now, and ignore all later ones."""
        self._is_closed = True
        if self._handle is not None:
            self._handle.cancel()
        if self._latest is not None:
            self._hear(self._latest)

    def _schedule(self) -> None:
        if not self._is_closed:
            wait_s = self._next_at - self._loop.time()
            # Never at once: the driver takes a report that comes before the call's first await for
            # the end of the call.
            self._handle = self._loop.call_later(max(wait_s, 0.0), self._flush)

    def _flush(self) -> None:
        self._next_at = self._loop.time() + PERIOD_S
        latest, self._latest = self._latest, None
        if latest is not None and not self._hear(latest):
            self._latest = latest
            self._schedule()


@final
class Yielding:
    """An awaitable that lets other tasks run once; a plain function need not await it."""

    def __await__(self) -> Generator[None]:
        """Yield to the event loop once."""
        yield
