"""Keeper: what the runs of one agent share, open for as long as one of them goes on.

The store that the agent opens by its path, and the connections to its models. Whoever closes the
agent, or ends a synchronous call, closes what nobody uses; the rest closes with its last user. Runs
may go on in several threads: a store is shared by them all, a connection by those of its loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from threading import RLock
from typing import final

from ..codec import Codec
from ..errors import ConfigError
from ..stores.base import Store
from ..stores.claims import running_loop
from ..stores.memory import MemoryStore
from ..stores.opening import open_store
from ..stores.sqlite import SqliteStore

__all__ = ["Hold", "Keeper", "close_all"]


@final
class Hold:
    """One user of what is shared; one that is thrown away counts no longer, but closes nothing.

    Args:
        keepers: whose user it is: an agent's keeper, and those of the agents that it may call.

    Raises:
        ConfigError: a run is awaited where no event loop of asyncio runs.
    """

    def __init__(self, keepers: Iterable[Keeper]) -> None:
        self._keepers, self._over = tuple(keepers), True
        loop = running_loop()
        if loop is None:
            raise ConfigError(
                "a run: expected a running event loop of asyncio, found none (trio has its own). "
                "Fix: await it under `asyncio.run`, or call its synchronous twin in a thread."
            )
        self._loop, self._over = loop, False
        for keeper in self._keepers:
            keeper.came(self._loop)

    async def release(self) -> None:
        """Need what is shared no longer."""
        self._leave()
        await close_all(self._keepers)

    def _leave(self) -> None:
        if not self._over:
            self._over = True
            for keeper in self._keepers:
                keeper.went(self._loop)

    def __del__(self) -> None:
        self._leave()


@final
class Keeper:
    """Opens the store once, and closes it and the connections once nobody needs them.

    Args:
        given: the store of the options; one that is open already is its maker's to close.
        codec: how events are written.
        disconnect: closes the connections of the running event loop; they can be used again. It is
            told whether those of models that were given as objects are meant, too.
    """

    def __init__(
        self,
        given: Store | str | Path | None,
        codec: Codec,
        disconnect: Callable[[bool], Awaitable[None]],
    ) -> None:
        self._given = given
        self._codec = codec
        self._disconnect = disconnect
        self._store: Store | None = None
        self._users = Counter[asyncio.AbstractEventLoop]()
        self._to_disconnect: dict[asyncio.AbstractEventLoop, bool] = {}
        self._to_close = False
        # Reentrant, for whoever is thrown away is so wherever the garbage collector runs.
        self._lock = RLock()

    def store(self) -> Store:
        """Return the store of the options, opened; a new one in memory if there is none."""
        given = self._given
        if given is None:
            return MemoryStore()
        if not isinstance(given, str | Path):
            return given
        with self._lock:
            if self._store is None:
                self._store = open_store(given, self._codec)
            return self._store

    def own(self) -> Store:
        """Return the store of the options, opened, for runs that are known by their id only.

        Raises:
            ConfigError: there is none, so there are no such runs.
        """
        if self._given is None:
            raise ConfigError(
                "this agent has no `store`, so it knows no run by its id: give it one "
                "(store='runs.db'), or resume with the RunResult"
            )
        return self.store()

    def again(self, store: Store) -> Store:
        """Return a run's store; our own opened anew where a synchronous call has closed it."""
        own = isinstance(self._given, str | Path)
        return self.store() if own and isinstance(store, SqliteStore) and store.closed else store

    def came(self, loop: asyncio.AbstractEventLoop) -> None:
        """Count a user."""
        with self._lock:
            self._users[loop] += 1

    def went(self, loop: asyncio.AbstractEventLoop) -> None:
        """Count a user no longer."""
        with self._lock:
            self._users[loop] -= 1
            if not self._users[loop]:
                del self._users[loop]

    def wants_closed(self, *, given: bool) -> None:
        """Have what is shared closed as soon as nobody uses it.

        Args:
            given: whether the connections of models that were given as objects are closed, too.
        """
        loop = asyncio.get_running_loop()
        with self._lock:
            self._to_close = True
            self._to_disconnect[loop] = given or self._to_disconnect.get(loop, False)

    async def aclose(self, *, given: bool = True) -> None:
        """Close what nobody uses now, and the rest once nobody does; see `wants_closed`."""
        await close_all((self,), given=given)

    async def close_unused(self, *, connections: bool = True) -> None:
        """Close what was to be closed, and is not used any more.

        Args:
            connections: whether those to models are closed now, which may take its time.
        """
        loop, store, given = asyncio.get_running_loop(), None, None
        with self._lock:
            if connections and not self._users[loop]:
                given = self._to_disconnect.pop(loop, None)
            if self._to_close and not self._users.total():
                self._to_close = False
                store, self._store = self._store, None
        try:
            if given is not None:
                await self._disconnect(given)
        finally:
            if isinstance(store, SqliteStore):
                await store.aclose()


async def close_all(keepers: Iterable[Keeper], *, given: bool | None = None) -> None:
    """Close what nobody uses of all these, whatever one of them fails with.

    Who is cancelled meanwhile waits for no further connection, which whoever closes next closes;
    the stores are closed all the same.

    Args:
        keepers: whose.
        given: what is wanted closed from now on (see `wants_closed`); nothing new if not given.

    Raises:
        CancelledError: the caller was cancelled meanwhile.
        Exception: the first that something failed with, once everything else is closed.
    """
    several = tuple(keepers)
    if given is not None:
        for keeper in several:
            keeper.wants_closed(given=given)
    failed: Exception | None = None
    cut: asyncio.CancelledError | None = None
    for keeper in several:
        try:
            await keeper.close_unused(connections=cut is None)
        except asyncio.CancelledError as error:
            cut = error
        except Exception as error:  # noqa: BLE001 - it is raised once the rest is closed
            failed = failed or error
    if (first := cut or failed) is not None:
        raise first
