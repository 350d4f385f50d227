"""A store in one SQLite file: durable, usable by several processes, with one driver for each run.

With `durability="power"` one thread of the store writes, and joins simultaneous appends into one
commit; otherwise the caller's thread may commit (`direct`). Readers use separate connections and
never wait for a writer. Do not use a network file system. After `os.fork`, the child process must
open a store of its own.
"""

from __future__ import annotations

import asyncio
import math
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Final, TypeVar, final

from ...errors import ConfigError, StoreError
from ..codec import Codec
from ..database import DatabaseStore
from ..database.claims import Holder
from ..database.store import Dialect
from . import journal, leases, operating, ready
from .schema import Clock, Durability, SqliteLink, fix_of, open_reader
from .writer import Writer

__all__ = ["Reader", "SqliteStore"]

T = TypeVar("T")

DIALECT: Final = Dialect(
    leases.claim,
    journal.read_journal,
    ready.ready,
    operating.attend,
    operating.change_meters,
    operating.prune_families,
    operating.sizes_of,
    is_look_written=False,
)


@final
class SqliteStore(DatabaseStore[SqliteLink]):
    """A store in a SQLite database; with all abilities that `base` names.

    Each store object claims runs separately, even within one process: a store cannot append to a
    run that another store has claimed. `aclose` and garbage collection end the claims of a store.

    Args:
        path: the database file; the first write creates it.
        codec: encodes and decodes events; pass a codec with the state type of your graph.
        durability: with "power", appended events survive a loss of power, because each commit waits
            for the disk. With "process", events survive only the end of the process, and a commit
            costs about a tenth.
        lease_s: the number of seconds after which another driver may claim a dead driver's run.
        clock: returns the current Unix time, for leases and for the times in `RunRecord`.

    Raises:
        ConfigError: the durability is unknown, or the time of a lease is not positive.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        codec: Codec | None = None,
        durability: Durability = "power",
        lease_s: float = 30.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if durability not in ("power", "process"):
            raise ConfigError(f'durability: expected "power" or "process", found {durability!r}.')
        if not 0 < lease_s < math.inf:
            raise ConfigError(f"lease_s: expected a positive number of seconds, found {lease_s!r}.")
        self._path = Path(path)
        holder = Holder(lease_s, clock)
        writer = Writer(self._path, durability, holder)
        reader = Reader(self._path, clock)
        super().__init__(str(self._path), codec, holder, writer, reader, DIALECT)


@final
class Reader:
    """Reads single runs of a database in one thread, on a connection that stays open.

    More threads would be slower: each hand-over between threads waits for the interpreter's lock,
    and costs more than a read. A listing takes longer, so it has a thread and a connection of its
    own.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, "graphloop reads")
        # Reentrant, because the garbage collector may close a store in any thread.
        self._lock = threading.RLock()
        self._link: SqliteLink | None = None
        self._is_closed = False

    async def do(self, work: Callable[[SqliteLink], T]) -> T | None:
        """Return the result of work that reads little; None if there is no database yet."""
        if self._is_closed:
            return await self.list(work)
        return await asyncio.wrap_future(self._thread.submit(self._read, work))

    async def list(self, work: Callable[[SqliteLink], T]) -> T | None:
        """Return the result, as `do`, of work that may take long."""
        return await asyncio.to_thread(_read_once, self._path, self._clock, work)

    def close(self) -> None:
        """Close the connection; later reads open one each."""
        with self._lock:
            self._is_closed = True
            if self._link is not None:
                self._link.close()
        self._thread.shutdown(wait=False)

    def _read(self, work: Callable[[SqliteLink], T]) -> T | None:
        with self._lock:
            link = self._link or open_reader(self._path, self._clock)
            self._link = None
            if link is None:
                return None
            is_kept = False
            try:
                result = _read_by(link, self._path, work)
                # SQLite opens a file without a log as one that no process changes.
                is_kept = not self._is_closed and Path(f"{self._path}-wal").exists()
            finally:
                if is_kept:
                    self._link = link
                else:
                    link.close()
            return result


def _read_once(path: Path, clock: Clock, work: Callable[[SqliteLink], T]) -> T | None:
    """Run `work` in one read transaction; return None if there is no database yet.

    Raises:
        StoreError: the database cannot be read, or is damaged.
    """
    link = open_reader(path, clock)
    if link is None:
        return None
    with closing(link):
        return _read_by(link, path, work)


def _read_by(link: SqliteLink, path: Path, work: Callable[[SqliteLink], T]) -> T:
    try:
        link.execute("BEGIN")
        result = work(link)
        link.execute("ROLLBACK")
    except (sqlite3.Error, ValueError) as error:
        raise StoreError(f"cannot read {path}: {error}{fix_of(error)}") from error
    return result
