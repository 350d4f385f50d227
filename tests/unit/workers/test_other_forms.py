"""Another version of graphloop beside a worker: it is refused or waits, and nothing is lost."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from graphloop import Agent
from graphloop.errors import OtherSchema
from graphloop.events import Started
from graphloop.stores import PostgresStore, SqliteStore
from graphloop.stores.codec import SCHEMA_VERSION, Codec
from graphloop.testing import ScriptedModel
from graphloop.workers import Worker
from tests.postgres_server import database

NEWER = b'"v":%d' % (SCHEMA_VERSION + 1)

Write = Callable[[str], None]
Place = tuple[Callable[[], SqliteStore | PostgresStore], Write, str]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return a way to open a store, one to write its tables by hand, and a newer schema's mark."""
    if request.param == "postgres":
        dsn = database(request.getfixturevalue("postgres"))

        def change(statement: str) -> None:
            with psycopg.connect(dsn, options="-csearch_path=graphloop") as link:
                link.execute(statement.encode())

        newer = "UPDATE meta SET value = '99' WHERE key = 'schema'"
        return lambda: PostgresStore(dsn), change, newer

    path = tmp_path / "runs.db"

    def write(statement: str) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(statement)

    return lambda: SqliteStore(path), write, "PRAGMA user_version = 99"


def agent() -> Agent:
    return Agent(ScriptedModel(["Done."], restart=True))


async def test_a_worker_ends_if_its_store_is_of_another_version(place: Place) -> None:
    """A supervisor sees it end with what to do; to wait would help nobody."""
    open_store, write, newer = place
    store = open_store()
    await agent().runs(store).submit("Wait.", run_id="r")
    await store.aclose()
    write(newer)

    with pytest.raises(OtherSchema, match=r"schema version 99, expected \d+\. Fix: "):
        await Worker([agent()], open_store()).serve()


async def test_a_run_whose_journal_is_of_a_newer_form_waits(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """A newer worker wrote it, and takes it again; this one tells so, and drives the others."""
    open_store, write, _ = place
    store = open_store()
    for run_id in ("newer", "plain"):
        await agent().runs(store).submit("Wait.", run_id=run_id)
    (first,) = await store.load("newer")
    assert isinstance(first, Started)
    line = Codec().encode(1, first)
    (number,) = [at for at, one in enumerate(await store.overview(), 1) if one.run_id == "newer"]
    entry = "run" if isinstance(store, PostgresStore) else "id >> 32"
    form = r"'\x{}'::bytea" if isinstance(store, PostgresStore) else "x'{}'"
    update = f"UPDATE entry SET data = {form} WHERE {entry} = {number}"  # noqa: S608 - no input
    write(update.format(line.replace(b'"v":%d' % SCHEMA_VERSION, NEWER).hex()))

    worker = Worker([agent()], store, poll_s=0.01)
    serving = asyncio.create_task(worker.serve())
    while (await store.record("plain")).status != "done" or "upgrade" not in caplog.text:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    waiting = await store.record("newer")
    assert (waiting.status, waiting.events, waiting.refusals) == ("ready", 1, ())
    assert "run newer is interrupted, and will be driven again" in caplog.text
    assert "upgrade graphloop" in caplog.text

    write(update.format(line.hex()))
    while (await store.record("newer")).status != "done":  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    worker.stop()
    await serving
    await store.aclose()
