"""Wheel: of all who look at a run one drives it at a time, and the others wait."""

from __future__ import annotations

import asyncio
from typing import final

__all__ = ["Wheel"]


@final
class Wheel:
    """Who drives a run that several look at."""

    def __init__(self) -> None:
        self._is_held = False
        self._waiting: list[asyncio.Event] = []

    @property
    def is_held(self) -> bool:
        """Whether somebody drives."""
        return self._is_held

    def __enter__(self) -> None:
        """Drive; every other looker looks again afterwards."""
        assert not self._is_held, "one drives at a time"
        self._is_held = True

    def __exit__(self, *_: object) -> None:
        """Drive no more."""
        self._is_held = False
        for one in self._waiting:
            one.set()
        self._waiting.clear()

    async def given_up(self) -> None:
        """Wait until whoever drives has seen something, and drives no more."""
        looker = asyncio.Event()
        self._waiting.append(looker)
        await looker.wait()
