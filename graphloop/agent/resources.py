"""SharedResources: the store and the model connections that the runs of one agent share.

No counter of users is kept: close an agent once its runs are over (`async with agent:`).
Each event loop has a store of its own: a synchronous call closes its own store alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import final
from weakref import WeakKeyDictionary

from ..errors import ConfigError
from ..providers import Provider
from ..stores import Codec, MemoryStore, SqliteStore, Store, open_store, running_loop

__all__ = ["SharedResources"]


@final
class SharedResources:
    """Opens the store of the options, and closes it with the connections to the models.

    Args:
        given: the store of the options; its maker closes a store that is open already.
        models: the models by label, also those that runs add later.
        named: the labels of models that were given by name; makers close their other models.
    """

    def __init__(
        self,
        given: Store | str | Path | None,
        models: Mapping[str, Provider],
        named: Collection[str],
    ) -> None:
        self._given, self._models, self._named = given, models, named
        self._stores: WeakKeyDictionary[asyncio.AbstractEventLoop, Store] = WeakKeyDictionary()

    def store(self) -> Store:
        """Return the store of the options, open; a new one in memory if there is none.

        Raises:
            ConfigError: no event loop of asyncio runs here.
        """
        loop, given = running_loop(), self._given
        if loop is None:
            raise ConfigError(
                "a run: expected a running event loop of asyncio, found none (trio has its own). "
                "Fix: await it under `asyncio.run`, or call its synchronous twin in a thread."
            )
        if given is None:
            return MemoryStore()
        if not isinstance(given, str | Path):
            return given
        if loop not in self._stores:
            # A loop that was closed on its way left claims, which its store still holds.
            left = next((one for one in tuple(self._stores) if one.is_closed()), None)
            store = None if left is None else self._stores.pop(left, None)
            # Each graph reads the states of its own runs: child runs have states of other types.
            self._stores[loop] = store or open_store(given, Codec())
        return self._stores[loop]

    def stored(self) -> Store:
        """Return the store of the options, open, for runs that are known by their id only.

        Raises:
            ConfigError: there is none, so there are no such runs.
        """
        if self._given is None:
            raise ConfigError(
                "this agent has no `store`, so it knows no run by its id: give it one "
                "(store='runs.db'), or resume with the RunResult"
            )
        return self.store()

    def reopened(self, store: Store) -> Store:
        """Return a run's store, opened again where a synchronous call has closed it."""
        own = isinstance(self._given, str | Path)
        return self.store() if own and isinstance(store, SqliteStore) and store.closed else store

    async def aclose(self, *, given: bool = True) -> None:
        """Close the store and the connections of the running event loop.

        Args:
            given: whether the connections of models that were given as objects close, too.

        Raises:
            BaseException: the last failure, once everything is closed.
        """
        store = self._stores.pop(asyncio.get_running_loop(), None)
        async with AsyncExitStack() as closing:
            if isinstance(store, SqliteStore):
                closing.push_async_callback(store.aclose)
            for label, provider in self._models.items():
                if given or label in self._named:
                    closing.push_async_callback(provider.aclose)
