"""Outages: work on a database that may be gone for a while, and is waited for."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final, TypeVar

import psycopg
from psycopg.errors import InsufficientPrivilege, LockNotAvailable, ReadOnlySqlTransaction

from ...errors import StoreAway, StoreError
from .schema import granted, place_of, told

__all__ = ["is_of_one_job", "persist"]

T = TypeVar("T")

LOG: Final = logging.getLogger("graphloop")

AWAY: Final = (psycopg.OperationalError, psycopg.InterfaceError, ReadOnlySqlTransaction)
"""The errors of a server that may be back soon: stopped, full, or a standby after a failover."""
RIGHTS: Final = (
    "USAGE ON SCHEMA graphloop",
    "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA graphloop",
)
"""All that a store needs once its tables are there."""
PAUSE_S: Final = 0.05
PAUSE_S_MAX: Final = 1.0


def persist(dsn: str, patience_s: float, attempt: Callable[[bool], T]) -> T:
    """Return what `attempt` returns, and wait for a database that has gone away.

    Args:
        dsn: the database.
        patience_s: the seconds to wait; 0 for a database that has never answered.
        attempt: does the work; its argument tells whether it is done again.

    Raises:
        StoreAway: the database does not answer.
        StoreError: the database refuses the work.
    """
    end, pause, is_again, said = time.monotonic() + patience_s, PAUSE_S, False, ""
    while True:
        try:
            return attempt(is_again)
        except AWAY as error:
            if time.monotonic() >= end:
                raise StoreAway(
                    f"{place_of(dsn)}: expected a PostgreSQL server that answers and takes writes, "
                    f"found: {told(error)}. Fix: {_fix_of(error, dsn)}."
                ) from error
            if (news := told(error)) != said:  # Else a line each second tells nothing new.
                line = "%s does not answer, and is asked again for %.0f s: %s"
                LOG.warning(line, place_of(dsn), patience_s, news)
            said = news
        except InsufficientPrivilege as error:
            fix = "; ".join([granted(rights, dsn) for rights in RIGHTS])
            raise StoreError(
                f"{place_of(dsn)}: expected the rights to use a store, found: {told(error)}. "
                f"Fix: {fix}."
            ) from error
        except psycopg.Error as error:
            raise StoreError(f"{place_of(dsn)} refuses the work: {told(error)}") from error
        except UnicodeError as error:
            raise StoreError(
                f"{place_of(dsn)}: expected text that UTF-8 can write, found: {told(error)}. "
                "Fix: leave out half surrogate pairs."
            ) from error
        time.sleep(pause)
        pause, is_again = min(PAUSE_S_MAX, pause * 2), True


def _fix_of(error: psycopg.Error, dsn: str) -> str:
    if isinstance(error, ReadOnlySqlTransaction):
        return "give a role that may write, or the address of the primary"
    if isinstance(error, LockNotAvailable):
        return "end the transaction that holds the lock"
    # A refused connection has no error code, and the word is the same in any language.
    if " CONNECT" in str(error):
        return granted("CONNECT ON DATABASE {database}", dsn)
    return "start it, give it room, or mend the address"


def is_of_one_job(error: Exception) -> bool:
    """Whether an error of `persist` may be that of one of several jobs, not of the database."""
    cause = error.__cause__ if isinstance(error, StoreError) else error
    if isinstance(cause, LockNotAvailable):
        return True
    return cause is not None and not isinstance(cause, (*AWAY, InsufficientPrivilege, StoreError))
