"""The engine of DBOS: its outbox, the legs of workers that died, and what it refuses."""

from __future__ import annotations

import logging
import os
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from dbos import DBOS, DBOSConfig

from graphloop import Agent, engines, tool
from graphloop.engines import Dbos, Pull, dbos
from graphloop.errors import ConfigError, StoreError
from graphloop.stores import MemoryStore, PostgresStore, QueueLimits, SqliteStore
from graphloop.testing import ScriptedModel
from graphloop.workers import Worker
from tests.unit.engines.test_engines import calls_of, served

LEGS = "SELECT workflow_uuid, status, priority FROM dbos.workflow_status ORDER BY created_at, 1"


def agent() -> Agent:
    return Agent(ScriptedModel(["Done."], restart=True))


def legs(dsn: str) -> list[tuple[str, str, int]]:
    """Return the legs that DBOS knows: the name, the status and the priority of each."""
    with psycopg.connect(dsn) as link:
        return link.execute(LEGS).fetchall()


async def outbox(dsn: str) -> PostgresStore:
    """Open a store whose outbox tells DBOS, as a worker leaves it."""
    store = PostgresStore(dsn)
    await store.on_ready(dbos.ENQUEUE)
    return store


async def test_what_makes_a_run_ready_enqueues_its_leg(dbos_database: str) -> None:
    """A new name each time: DBOS takes a name once, and would drop the second leg of a run."""
    store = await outbox(dbos_database)
    await agent().runs(store).submit("Go.", run_id="r")
    first = legs(dbos_database)
    for _ in range(2):
        await store.claim("r")
        await store.release("r", "interrupted", ())
    await store.aclose()

    assert first == [("r:0", "ENQUEUED", 2_100_001)]
    assert legs(dbos_database) == [
        *first,
        ("r:1", "ENQUEUED", 100_001),
        ("r:2", "ENQUEUED", 100_001),
    ]


async def test_tenants_go_in_turn(dbos_database: str) -> None:
    """One with many runs does not keep the others waiting; a weight counts, a priority more."""
    store = await outbox(dbos_database)
    await store.set_queues({"bulk": QueueLimits(weights={"heavy": 2.0})})
    runs = agent().runs(store)
    for at, tenant in enumerate([*["big"] * 9, *["heavy"] * 4, "small", "small"]):
        await runs.submit("Go.", run_id=f"{tenant}-{at}", tenant=tenant, queue="bulk")
    for priority in (1, 5):
        given = f"urgent-{priority}"
        await runs.submit("Go.", run_id=given, tenant="big", queue="bulk", priority=priority)
    await store.aclose()

    found = sorted(legs(dbos_database), key=lambda leg: leg[2])  # As DBOS hands them out.
    order = [name.partition("-")[0] for name, _, _ in found]
    assert [name for name, _, _ in found[:2]] == ["urgent-5:0", "urgent-1:0"]
    assert Counter(order[2:6]) == {"big": 1, "heavy": 2, "small": 1}
    assert Counter(order[6:10]) == {"big": 1, "heavy": 2, "small": 1}
    assert order[10:] == ["big"] * 7


async def test_a_leg_is_committed_with_its_run_or_not_at_all(dbos_database: str) -> None:
    """Enqueued by itself, a leg may come before its run, or stay away after a crash."""
    store = await outbox(dbos_database)
    await agent().runs(store).submit("Go.", run_id="r")
    await store.claim("r")
    with psycopg.connect(dbos_database) as link:
        link.execute("UPDATE graphloop.run SET owner = NULL")
        inside = link.execute("SELECT count(*) FROM dbos.workflow_status").fetchone()
        link.rollback()
    await store.release("r", "done", ())
    await store.aclose()

    assert inside == (2,)
    assert legs(dbos_database) == [("r:0", "ENQUEUED", 2_100_001)]


async def test_the_leg_of_a_dead_worker_is_cancelled_and_a_new_one_enqueued(
    dbos_database: str,
) -> None:
    """By the sweep, in the transaction that frees the run: no leg stays pending for ever."""
    store, dead = await outbox(dbos_database), PostgresStore(dbos_database)
    await agent().runs(store).submit("Go.", run_id="r")
    await dead.claim("r")
    with psycopg.connect(dbos_database) as link:
        link.execute("UPDATE dbos.workflow_status SET status = 'PENDING'")
    await dead.aclose()

    assert await store.ready({"agent"}, 9) == ["r"]
    assert legs(dbos_database) == [("r:0", "CANCELLED", 2_100_001), ("r:2", "ENQUEUED", 100_001)]
    await store.aclose()


async def test_a_program_without_rights_in_the_schema_of_dbos_enqueues(dbos_database: str) -> None:
    """A web server's user writes to runs; what the engine keeps is none of its business."""
    store, user = await outbox(dbos_database), f"web_{os.getpid()}"
    await agent().runs(store).submit("Go.", run_id="r")
    await store.claim("r")
    await store.release("r", "done", ())
    await store.aclose()
    with psycopg.connect(dbos_database) as link:
        link.execute(f"CREATE ROLE {user}".encode())
        link.execute(f"GRANT USAGE ON SCHEMA graphloop TO {user}".encode())
        link.execute(f"GRANT SELECT, UPDATE ON graphloop.run TO {user}".encode())
        link.execute(f"SET ROLE {user}".encode())
        link.execute("UPDATE graphloop.run SET status = 'ready'")
        link.execute("RESET ROLE")
        inside = link.execute(LEGS).fetchall()
        link.rollback()

    assert inside == [("r:0", "ENQUEUED", 2_100_001), ("r:1", "ENQUEUED", 1_100_001)]


async def test_a_leg_that_was_lost_before_its_claim_is_driven(dbos_database: str) -> None:
    """Its worker died between the queue and the claim, so nothing tells that it is gone."""
    store = await outbox(dbos_database)
    mine = agent()
    await mine.runs(store).submit("Go.")
    with psycopg.connect(dbos_database) as link:
        link.execute("UPDATE dbos.workflow_status SET status = 'PENDING', executor_id = 'dead'")

    async def done() -> bool:
        return [one.status for one in await store.overview()] == ["done"]

    await served(Worker([mine], store, engine=Dbos), done)
    await store.aclose()


async def test_a_leg_that_was_given_to_another_worker_is_no_traceback(
    dbos_database: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its worker stalled, and the sweep has cancelled it: the store has told what that means."""
    store = await outbox(dbos_database)

    @tool
    def wake_late() -> str:
        """Wake up after the sweep."""
        with psycopg.connect(dbos_database) as link:
            link.execute(
                "UPDATE dbos.workflow_status SET status = 'CANCELLED', owner_xid = NULL, "
                "queue_name = NULL WHERE status = 'PENDING'"
            )
        return "awake"

    mine = Agent(ScriptedModel([calls_of("wake_late"), "Done."]), tools=[wake_late])
    await mine.runs(store).submit("Go.")

    logging.getLogger("dbos").addHandler(caplog.handler)  # It does not propagate.

    async def done() -> bool:
        return "no longer owned" in caplog.text

    await served(Worker([mine], store, engine=Dbos), done)
    await store.aclose()

    logging.getLogger("dbos").removeHandler(caplog.handler)
    assert "Traceback" not in caplog.text


async def test_legs_that_ended_long_ago_are_deleted(
    dbos_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them, a few at once: DBOS itself keeps each for ever."""
    monkeypatch.setattr(dbos, "PRUNED_AT_ONCE", 1)
    store = await outbox(dbos_database)
    mine = agent()
    for run_id in ("old", "older", "new"):
        await mine.runs(store).submit("Go.", run_id=run_id)
    with psycopg.connect(dbos_database) as link:
        link.execute(
            "UPDATE dbos.workflow_status SET status = 'SUCCESS', completed_at = 1 "
            "WHERE workflow_uuid = 'old:0'"
        )
        link.execute(
            "UPDATE dbos.workflow_status SET status = 'PENDING', started_at_epoch_ms = 1 "
            "WHERE workflow_uuid = 'older:0'"
        )

    async def done() -> bool:
        return not {"old:0", "older:0"} & {name for name, _, _ in legs(dbos_database)}

    await served(Worker([mine], store, engine=Dbos), done)

    assert "new:0" in {name for name, _, _ in legs(dbos_database)}
    await store.aclose()


async def test_the_engine_that_starts_last_has_the_outbox(dbos_database: str) -> None:
    """Nobody empties the queue of an engine that was left, so nothing may fill it."""
    store = await outbox(dbos_database)
    mine = agent()

    async def done() -> bool:
        return [one.status for one in await store.overview()] == ["done"]

    await mine.runs(store).submit("Go.", run_id="first")
    await served(Worker([mine], store, engine=Pull), done)
    await mine.runs(store).submit("Go.", run_id="second")
    await store.aclose()

    assert [name for name, _, _ in legs(dbos_database)] == ["first:0"]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_store_without_a_server_is_refused(kind: str, tmp_path: Path) -> None:
    """DBOS has its tables beside the runs."""
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "runs.db")

    with pytest.raises(ConfigError, match=r"expected a PostgreSQL store.*engine pull"):
        Worker([agent()], store, engine=Dbos)


async def test_a_process_with_a_dbos_of_its_own_is_refused(dbos_database: str) -> None:
    """There is one in a process; the other program's goes on."""
    own = DBOS(config=DBOSConfig(name="own", system_database_url=dbos_database))
    store = PostgresStore(dbos_database)
    try:
        with pytest.raises(ConfigError, match=r"without a DBOS of its own"):
            await Worker([agent()], store, engine=Dbos).serve()
        assert DBOS(config=DBOSConfig(name="own")) is own
    finally:
        DBOS.destroy(destroy_registry=True)
        await store.aclose()


async def test_a_server_that_does_not_answer_is_told_as_a_store_tells_it() -> None:
    """Before DBOS asks it for a minute."""
    store = PostgresStore("postgresql://ann:secret@127.0.0.1:1/runs")

    with pytest.raises(StoreError, match=r"127\.0\.0\.1:1/runs: expected a PostgreSQL"):
        await Worker([agent()], store, engine=Dbos).serve()
    await store.aclose()


async def test_an_address_that_dbos_cannot_read_is_told(dbos_database: str) -> None:
    """PostgreSQL's library reads more forms than SQLAlchemy; the password is not told."""
    parts = urlsplit(dbos_database)
    two = parts._replace(netloc=f"postgres:secret@127.0.0.1:{parts.port},127.0.0.1:{parts.port}")
    store = PostgresStore(two.geturl())

    with pytest.raises(ConfigError, match=r"that DBOS cannot read.*\?host=") as caught:
        await Worker([agent()], store, engine=Dbos).serve()
    assert "secret" not in str(caught.value)
    await store.aclose()


def test_without_its_package_the_engine_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "dbos", None)
    monkeypatch.delitem(sys.modules, "graphloop.engines.dbos")
    monkeypatch.delattr(engines, "Dbos", raising=False)

    with pytest.raises(ModuleNotFoundError, match=r"pip install 'graphloop\[dbos\]'"):
        _ = engines.Dbos
