"""The relay of a PostgreSQL store: short texts that pass between processes, and are not kept.

A text is a notification (`NOTIFY`), so it reaches those that listen now. Its commit waits for no
disk, on a connection of its own. Each listener has a connection, too.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
from collections.abc import AsyncGenerator
from typing import Final, final

import psycopg
from psycopg import AsyncConnection, Connection, sql
from psycopg.conninfo import make_conninfo

from .schema import CONNECT_S, told

__all__ = ["PostgresRelay"]

LOG: Final = logging.getLogger("graphloop")
AGAIN_S: Final = 1.0
"""The seconds after which a listener whose connection broke connects again."""


@final
class PostgresRelay:
    """Tells texts about topics, and yields those that other processes tell.

    Args:
        dsn: the database.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = make_conninfo(
            dsn, connect_timeout=CONNECT_S, fallback_application_name="graphloop"
        )
        self._lock = threading.Lock()
        self._link: Connection | None = None

    def say(self, topic: str, text: str) -> None:
        """Tell a text; it is lost if the database does not answer."""
        with self._lock:
            try:
                if self._link is None:
                    self._link = psycopg.connect(self._dsn, autocommit=True)
                    self._link.execute("SET synchronous_commit TO off")
                self._link.execute("SELECT pg_notify(%s, %s)", (_channel_of(topic), text))
            except psycopg.Error as error:
                LOG.debug("a text about %s is lost: %s", topic, told(error))
                self._forget()

    async def heard(self, topic: str) -> AsyncGenerator[str]:
        """Yield the texts about a topic from now on, also after the connection broke."""
        listen = sql.SQL("LISTEN {}").format(sql.Identifier(_channel_of(topic)))
        while True:
            try:
                link = await AsyncConnection.connect(self._dsn, autocommit=True)
                async with link:
                    await link.execute(listen)
                    async for note in link.notifies():
                        yield note.payload
            except psycopg.Error as error:
                LOG.debug("texts about %s may be lost: %s", topic, told(error))
            await asyncio.sleep(AGAIN_S)

    def close(self) -> None:
        """Close the connection that tells."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        if self._link is not None:
            self._link.close()
        self._link = None


def _channel_of(topic: str) -> str:
    """Return the channel of a topic: a name has at most 63 bytes."""
    return f"graphloop_{hashlib.sha256(topic.encode()).hexdigest()[:40]}"
