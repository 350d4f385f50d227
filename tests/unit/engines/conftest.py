"""A database with the tables of DBOS, made once and copied for each test."""

from __future__ import annotations

import threading
import time
from urllib.parse import urlsplit

import pytest
from dbos import DBOS, DBOSClient

from graphloop.engines import dbos
from graphloop.stores.postgres.schema import opened, tell_engine
from tests.postgres_server import created, database


@pytest.fixture(scope="session")
def dbos_template(postgres: str) -> str:
    """The name of a database that has the tables of DBOS."""
    dsn = created(postgres)
    DBOS.migrate(dsn)
    return urlsplit(dsn).path.removeprefix("/")


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let DBOS look often, and wait for its last legs instead of sleeping for a second."""
    destroy = DBOS.destroy

    def destroy_when_noted(
        *, destroy_registry: bool, workflow_completion_timeout_sec: int = 0
    ) -> None:
        if workflow_completion_timeout_sec:
            takers = [one for one in threading.enumerate() if one.name.startswith("queue-worker-")]
            for thread in takers:  # It is told to end, and may just take a leg.
                thread.join()
            while DBOS.list_workflows(status="PENDING", executor_id=DBOS.executor_id):
                time.sleep(0.005)
        destroy(destroy_registry=destroy_registry)

    monkeypatch.setattr(DBOS, "destroy", destroy_when_noted)
    monkeypatch.setattr(dbos, "POLLING_S", 0.02)


@pytest.fixture
def dbos_database(postgres: str, dbos_template: str) -> str:
    """The address of a database that has the tables of DBOS, and no other."""
    return database(postgres, dbos_template)


@pytest.fixture
def used_by_dbos(dbos_database: str) -> str:
    """Such a database in which a worker of DBOS has served before.

    The first worker of all waits a second: it makes the outbox, and DBOS looks so often for queues.
    """
    client = DBOSClient(system_database_url=dbos_database)
    client.register_queue(
        f"{dbos.QUEUE}agent",
        polling_interval_sec=dbos.POLLING_S,
        on_conflict="always_update",
        application_name=dbos.APPLICATION,
    )
    client.destroy()
    with opened(dbos_database) as link, link.transaction():
        tell_engine(link, dbos.ENQUEUE)
    return dbos_database
