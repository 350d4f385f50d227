"""The commits that a store makes in its caller's thread, because they wait for nothing.

With `durability="process"`, a commit of SQLite's write-ahead log does not wait for the disk. It is
then cheaper than to hand it to another thread and back. Three things would still wait: another
writer's lock, a checkpoint, and the first commit after a checkpoint, which syncs the log's header.
All of these are left to the writing thread.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final, final

from ..file_lock import FileLock
from .schema import Clock, SqliteLink, commits_need_lock, open_direct

__all__ = ["Direct"]

COMMITS_MAX: Final = 100
"""The maximum number of commits between two that the writing thread makes."""

THREAD_COMMITS: Final = 2
"""The first of them makes a checkpoint if it is due; the second one begins the log again."""


@final
class Direct:
    """Makes commits that wait for nothing; its owner never uses it from two threads at once.

    Args:
        path: the database file, which must have its tables.
        lock_path: the path of the store's file lock.
        clock: returns the current Unix time.
    """

    def __init__(self, path: Path, lock_path: str, clock: Clock) -> None:
        self._connection = open_direct(path, clock)
        self._lock = FileLock(lock_path) if commits_need_lock() else None
        self._commits = 0

    def write(self, work: Callable[[SqliteLink], None]) -> asyncio.Future[None] | None:
        """Do the work in one transaction, and return the ended future of its result.

        The future holds the error of work that failed; such work has changed nothing. The result
        is None if the writing thread must do the work.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            if not self._commit(work):
                return None
        except Exception as error:  # noqa: BLE001 - the caller gets it
            future.set_exception(error)
        else:
            future.set_result(None)
        return future

    def _commit(self, work: Callable[[SqliteLink], None]) -> bool:
        self._commits += 1
        if self._commits > COMMITS_MAX:
            if self._commits == COMMITS_MAX + THREAD_COMMITS:
                self._commits = 0
            return False
        if self._lock is None:
            return self._commit_locked(work)
        if not self._lock.take():
            return False
        with self._lock:
            return self._commit_locked(work)

    def _commit_locked(self, work: Callable[[SqliteLink], None]) -> bool:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            work(connection)
            connection.execute("COMMIT")
        except sqlite3.Error:
            # The writing thread does the work again; it waits for the lock, or raises the error.
            return False
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        return True

    def close(self) -> None:
        """Close the connection and the lock file."""
        self._connection.close()
        if self._lock is not None:
            self._lock.release()
