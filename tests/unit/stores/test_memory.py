"""MemoryStore: lists that are gone with the process (the rest is the conformance suite's)."""

from __future__ import annotations

import asyncio

import pytest

from graphloop.errors import StoreError
from graphloop.events import Cancelled
from graphloop.stores.memory import MemoryStore


def test_errors_say_what_is_there() -> None:
    """The next number, or where the ids are."""
    store = MemoryStore()
    asyncio.run(store.append("r", 1, Cancelled(0.0)))

    with pytest.raises(StoreError, match="the next is number 2, not 1"):
        asyncio.run(store.append("r", 1, Cancelled(0.0)))
    with pytest.raises(StoreError, match=r"no run 's' in this store\. Fix: .*store\.runs\(\)"):
        asyncio.run(store.load("s"))
