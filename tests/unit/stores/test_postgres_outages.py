"""A PostgreSQL server that is full, has become a standby, or hides behind a pooler."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from graphloop.errors import StoreError
from graphloop.events import Cancelled, Setup, Started
from graphloop.stores.base import Ask
from graphloop.stores.postgres import PostgresStore
from graphloop.stores.postgres.schema import PostgresLink
from tests.postgres_server import database

ASK = Ask("c0.0", "approval", "pay", "{}", "t")
FULL = b"""
CREATE FUNCTION graphloop.no_room() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN RAISE EXCEPTION 'could not extend file: No space left on device'
    USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER no_room BEFORE INSERT ON graphloop.entry EXECUTE FUNCTION graphloop.no_room();
"""
FULL_RUNS = FULL.replace(b"INSERT ON graphloop.entry", b"UPDATE OF owner ON graphloop.run")
ROOM = b"DROP FUNCTION graphloop.no_room() CASCADE"
LATE = Cancelled(1.0, "late")
BEGUN = Started(1.0, "r", "a graph", (), Setup())


@pytest.fixture
def dsn(postgres: str) -> str:
    """The address of an empty database."""
    return database(postgres)


def do(dsn: str, statement: bytes) -> None:
    """Do a statement on a connection of the test's own."""
    with psycopg.connect(dsn, autocommit=True) as link:
        link.execute(statement)


async def test_a_release_that_failed_is_made_good_at_a_later_beat(dsn: str) -> None:
    """The run stands as its driver left it, and is not driven again."""
    store = PostgresStore(dsn, lease_s=1.0, patience_s=0.01)
    await store.claim("r")
    await store.append("r", 1, Started(1.0, "r", "a graph", (), Setup()))
    do(dsn, FULL_RUNS)
    with pytest.raises(StoreError, match="No space left"):
        await store.release("r", "parked", [ASK])
    do(dsn, b"DROP TRIGGER no_room ON graphloop.run")
    while (record := await store.record("r")).status != "parked":  # noqa: ASYNC110 - its thread
        await asyncio.sleep(0)

    assert record.asks == (ASK,)
    await store.aclose()


async def waited(caplog: pytest.LogCaptureFixture, text: str) -> None:
    """Wait until the store has told that it waits."""
    loop, said = asyncio.get_running_loop(), asyncio.Event()

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if text in record.getMessage():
                loop.call_soon_threadsafe(said.set)

    ear = Ear()  # It hears a record before `caplog` has it.
    logging.getLogger("graphloop").addHandler(ear)
    if not any(text in one.getMessage() for one in [*caplog.records]):
        await said.wait()
    logging.getLogger("graphloop").removeHandler(ear)


async def test_a_full_disk_is_waited_for_and_told(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    """An operator gives room, and no run has failed meanwhile."""
    store = PostgresStore(dsn)
    await store.claim("r")
    await store.append("r", 1, BEGUN)
    do(dsn, FULL)
    late = asyncio.ensure_future(store.append("r", 2, LATE))
    await waited(caplog, "No space left")
    assert await store.load("r") == (BEGUN,)
    do(dsn, ROOM)
    await late

    assert await store.load("r") == (BEGUN, LATE)
    await store.aclose()


async def test_a_disk_that_stays_full_refuses_the_append_and_keeps_the_rest(dsn: str) -> None:
    """The refused event can be appended later, under the same number."""
    store = PostgresStore(dsn, patience_s=0.001)
    await store.claim("r")
    await store.append("r", 1, BEGUN)
    do(dsn, FULL)
    with pytest.raises(StoreError, match=r"found: .*No space left.* Fix: .*give it room"):
        await store.append("r", 2, LATE)
    do(dsn, ROOM)
    await store.append("r", 2, LATE)

    assert await store.load("r") == (BEGUN, LATE)
    await store.aclose()


async def test_a_role_that_only_reads_is_told_what_writes(dsn: str) -> None:
    """Its server is there: no start, no room and no other address of it helps."""
    owner, reader = PostgresStore(dsn), PostgresStore(dsn, patience_s=0.001)
    await owner.claim("r")
    name = urlsplit(dsn).path[1:].encode()
    do(dsn, b"ALTER DATABASE " + name + b" SET default_transaction_read_only = on")
    with pytest.raises(StoreError, match=r"Fix: .*role.* primary"):
        await reader.claim("other")
    do(dsn, b"BEGIN READ WRITE; ALTER DATABASE " + name + b" RESET ALL; COMMIT")
    for store in (owner, reader):
        await store.aclose()


async def test_a_primary_that_became_a_standby_is_waited_for(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    """After a failover the old address may take no writes; a new connection finds the primary."""
    store = PostgresStore(dsn)
    await store.claim("r")
    await store.append("r", 1, BEGUN)
    name = urlsplit(dsn).path[1:].encode()
    do(dsn, b"ALTER DATABASE " + name + b" SET default_transaction_read_only = on")
    do(
        dsn,
        b"SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        b"WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    late = asyncio.ensure_future(store.append("r", 2, LATE))
    await waited(caplog, "read-only transaction")
    do(dsn, b"BEGIN READ WRITE; ALTER DATABASE " + name + b" RESET ALL; COMMIT")
    await late

    assert await store.load("r") == (BEGUN, LATE)
    await store.aclose()


async def test_a_connection_that_still_sends_a_query_is_given_up(dsn: str) -> None:
    """A server that goes away at that moment leaves one that is open and busy for ever.

    The query here is answered late: an early answer would wake the writer's thread, perhaps before
    libpq notes in this thread that it has sent the query.
    """
    store = PostgresStore(dsn)
    await store.claim("r")
    await store.append("r", 1, BEGUN)
    name = urlsplit(dsn).path[1:]
    objects: list[Any] = gc.get_objects()
    known = [one for one in objects if isinstance(one, PostgresLink)]
    (link,) = [one for one in known if not one.closed and one.info.dbname == name]
    link.pgconn.send_query(b"SELECT pg_sleep(20)")

    await store.append("r", 2, LATE)

    assert link.closed
    assert await store.load("r") == (BEGUN, LATE)
    await store.aclose()


def answers(port: int) -> bool:
    """Whether a server listens."""
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(params=["transaction", "session", "statement"])
def pooled(dsn: str, request: pytest.FixtureRequest) -> Generator[str]:
    """Yield the address of a pooler before the database, in each of its modes."""
    pooler = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")
    if pooler is None:
        pytest.skip("no pgbouncer on this machine (apt install pgbouncer)")
    server = urlsplit(dsn)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    nobody = 65534 if os.geteuid() == 0 else None  # It refuses to run as root.
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        Path(made, "users.txt").write_text(f'"{server.username}" ""\n')
        Path(made, "pgbouncer.ini").write_text(
            f"[databases]\n* = host={server.hostname} port={server.port}\n[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
            f"auth_type = trust\nauth_file = users.txt\npool_mode = {request.param}\n"
        )
        running = subprocess.Popen(
            [pooler, "-q", "pgbouncer.ini"],
            cwd=made,
            stderr=subprocess.DEVNULL,
            user=nobody,
            group=nobody,
            extra_groups=None if nobody is None else [],
        )
        try:
            while not answers(port):
                assert running.poll() is None, "the pooler has ended"
            yield server._replace(netloc=f"{server.username}@127.0.0.1:{port}").geturl()
        finally:
            running.terminate()
            running.wait()


async def test_a_pooler_is_refused_with_the_reason(dsn: str, pooled: str) -> None:
    """Under one that lends a session for a transaction, a worker's lock would be another's.

    The work fails before the first write: no table is created through the pooler.
    """
    store = PostgresStore(pooled)
    with pytest.raises(StoreError, match="found a connection pooler"):
        await store.append("r", 1, BEGUN)
    await store.aclose()
    with psycopg.connect(dsn) as link:
        assert link.execute("SELECT to_regclass('graphloop.run')").fetchone() == (None,)
