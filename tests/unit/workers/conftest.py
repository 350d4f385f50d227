"""The stores that the processes of a fleet may share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from graphloop.stores.memory import MemoryStore
from graphloop.stores.postgres import PostgresStore
from graphloop.stores.sqlite.store import SqliteStore
from tests.postgres_server import database


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def shared(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Callable[[], MemoryStore | SqliteStore | PostgresStore]:
    """Return a way to open the same store, as another process would."""
    if request.param == "memory":
        store = MemoryStore()
        return lambda: store
    if request.param == "postgres":
        dsn = database(request.getfixturevalue("postgres"))
        return lambda: PostgresStore(dsn)
    return lambda: SqliteStore(tmp_path / "runs.db", durability="process")
