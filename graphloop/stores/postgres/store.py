"""A store in a PostgreSQL database, for runs that several processes and machines drive.

A single thread of the store writes, and joins simultaneous appends of all runs into one statement.
Readers use connections of their own. After `os.fork`, the child process must open a store of its
own.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
import weakref
from collections.abc import AsyncGenerator, Callable
from contextlib import nullcontext
from functools import partial
from typing import Final, TypeVar, final

import psycopg

from ...errors import ConfigError
from ..codec import Codec
from ..database import DatabaseStore
from ..database.claims import Holder
from ..database.store import Dialect
from . import journal, leases, operating, ready
from .outages import persist
from .relay import PostgresRelay
from .schema import PostgresLink, open_reader, place_of, tell_engine
from .writer import Writer

__all__ = ["PostgresStore", "Readers"]

T = TypeVar("T")

DIALECT: Final = Dialect(
    leases.claim,
    journal.read_journal,
    ready.ready,
    operating.attend,
    operating.change_meters,
    operating.prune_families,
    operating.sizes_of,
    is_look_written=True,
)


@final
class PostgresStore(DatabaseStore[PostgresLink]):
    """A store in a PostgreSQL database; with all abilities that `base` names.

    The tables are in the schema `graphloop`, which the first write creates. The store connects to
    the server itself: a connection pooler keeps neither a session's lock nor its notifications.
    Each store object claims runs separately. `aclose` and garbage collection end its claims.

    Args:
        dsn: the address of the database, `postgresql://user@host:5432/database`.
        codec: encodes and decodes events; pass a codec with the state type of your graph.
        lease_s: the seconds after which another driver may claim the runs of a worker that stalls.
            A worker whose process has died holds no lease: its connection ends with it.
        patience_s: the seconds to wait for a database that has gone away, or for a lock in it,
            before a call fails.
        clock: returns this machine's Unix time, by which questions expire. Leases, and the times in
            `RunRecord`, follow the server's clock.

    Raises:
        ConfigError: the address cannot be read, or a time is not positive.
    """

    def __init__(
        self,
        dsn: str,
        *,
        codec: Codec | None = None,
        lease_s: float = 15.0,
        patience_s: float = 60.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        for name, number in (("lease_s", lease_s), ("patience_s", patience_s)):
            if not 0 < number < math.inf:
                raise ConfigError(
                    f"{name}: expected a positive number of seconds, found {number!r}."
                )
        self._dsn, holder = dsn, Holder(lease_s, clock)
        self._writes = writer = Writer(dsn, holder, patience_s)
        reader = Readers(dsn, patience_s)
        super().__init__(place_of(dsn), codec, holder, writer, reader, DIALECT)
        self._relay = PostgresRelay(dsn)
        weakref.finalize(self, self._relay.close)

    async def aclose(self) -> None:
        """Finish the queued writes, end all claims of this store, and close the connections."""
        self._relay.close()
        await super().aclose()

    async def woken(self) -> None:
        """Wait until a process tells that a run may wait for a driver, or has got a command."""
        await asyncio.wrap_future(self._writes.woken())

    async def say(self, topic: str, text: str) -> None:
        """Tell a text to those that listen now; a text that cannot be told is lost."""
        await asyncio.to_thread(self._relay.say, topic, text)

    def heard(self, topic: str) -> AsyncGenerator[str]:
        """Yield the texts about a topic from now on."""
        return self._relay.heard(topic)

    @property
    def address(self) -> str:
        """The address of the database, with its password."""
        return self._dsn

    async def on_ready(self, statements: str) -> None:
        """Let each transaction that makes a run ready execute these PL/pgSQL statements."""
        await self._write(partial(tell_engine, statements=statements))


@final
class Readers:
    """The connections that wait for the next reader."""

    def __init__(self, dsn: str, patience_s: float) -> None:
        self._dsn = dsn
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._idle: list[PostgresLink] = []
        self._was_open = False

    async def do(self, work: Callable[[PostgresLink], T]) -> T | None:
        """Return the result of work whose statements may see different states of the database.

        It is None if the database has no tables of a store.
        """
        return await asyncio.to_thread(self._do, work, in_snapshot=False)

    async def list(self, work: Callable[[PostgresLink], T]) -> T | None:
        """Return the result, as `do`, of work whose statements see the same state."""
        return await asyncio.to_thread(self._do, work, in_snapshot=True)

    def _do(self, work: Callable[[PostgresLink], T], *, in_snapshot: bool) -> T | None:
        """Run `work` on a connection that no other reader has.

        Raises:
            StoreError: the database cannot be read, or is damaged.
        """

        def attempt(_: bool) -> T | None:  # noqa: FBT001 - the parameter of a callback
            with self._lock:
                link = self._idle.pop() if self._idle else None
            link = link or open_reader(self._dsn)
            self._was_open = True
            if link is None:
                return None
            try:
                with link.transaction() if in_snapshot else nullcontext():
                    result = work(link)
            except psycopg.OperationalError:
                link.close()
                raise
            except BaseException:
                self._put_back(link)
                raise
            self._put_back(link)
            return result

        return persist(self._dsn, self._patience_s if self._was_open else 0.0, attempt)

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for link in idle:
            link.close()

    def _put_back(self, link: PostgresLink) -> None:
        with self._lock:
            self._idle.append(link)
