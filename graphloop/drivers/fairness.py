"""Fairness: a run that never really waits lets the event loop's other tasks have their turns."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Final

__all__ = ["TURN_S", "Turns"]

TURN_S: Final = 0.005
"""After how much time of its own a run lets the event loop's other tasks have a turn.

Effects that never really wait (a plain function, a scripted model) would otherwise keep timers,
signals and other runs out for as long as the run lasts.
"""


class Turns:
    """How long a run has had the event loop for itself."""

    def __init__(self) -> None:
        self._others_ran_at = monotonic()

    async def share(self) -> None:
        """Let others have a turn, if it is time."""
        if monotonic() - self._others_ran_at > TURN_S:
            await asyncio.sleep(0)
            self._others_ran_at = monotonic()
