"""An event loop whose clock only a test puts forward."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["StillLoop", "on_still_loop"]

T = TypeVar("T")


class StillLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock only a test puts forward."""

    at = 1_000.0

    def time(self) -> float:
        return self.at

    async def leap(self, seconds: float) -> None:
        """Put the clock forward, and let whoever is ready go on."""
        self.at += seconds
        for _ in range(8):
            await asyncio.sleep(0)


def on_still_loop(main: Callable[[StillLoop], Coroutine[Any, Any, T]]) -> T:
    """Run `main` on a loop whose clock stands still."""
    with asyncio.Runner(loop_factory=StillLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, StillLoop)
        return runner.run(main(loop))
