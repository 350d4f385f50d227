"""The time limit of a turn: counted while something of this process is awaited, and nowhere else.

Neither the people that a run asks nor the one who looks at it spend the time of its turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any

from ..run import Run
from ..step import ELSEWHERE

__all__ = ["StepTimer"]


class StepTimer:
    """Calls `expire` once a turn has taken its time.

    Args:
        limit_s: how many seconds a turn may take; None for any time.
        expire: told why, in words, from the event loop.
    """

    def __init__(self, limit_s: float | None, expire: Callable[[str], None]) -> None:
        self._limit_s = limit_s
        self._expire = expire
        self._turn: int | None = None
        self._left_s = self._began_at = 0.0
        self._handle: asyncio.TimerHandle | None = None

    def begin(self, run: Run[Any]) -> None:
        """Count from now on, if what the run waits for is this process's work."""
        limit_s, turn = self._limit_s, run.turn.number
        if turn != self._turn:
            self._turn, self._left_s = turn, limit_s or 0.0
        if limit_s is None or all(type(one) in ELSEWHERE for one in run.pending.values()):
            return
        self._began_at = monotonic()
        self._handle = asyncio.get_running_loop().call_later(
            max(0.0, self._left_s),
            lambda: self._expire(f"turn {turn} took more than {limit_s:g} seconds"),
        )

    def end(self) -> None:
        """Stop counting until `begin`."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
            self._left_s -= monotonic() - self._began_at
