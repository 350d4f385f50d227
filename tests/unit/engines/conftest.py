"""A database with the tables of DBOS, made once and copied for each test."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from dbos import DBOS

from tests.postgres_server import created, database


@pytest.fixture(scope="session")
def dbos_template(postgres: str) -> str:
    """The name of a database that has the tables of DBOS."""
    dsn = created(postgres)
    DBOS.migrate(dsn)
    return urlsplit(dsn).path.removeprefix("/")


@pytest.fixture
def dbos_database(postgres: str, dbos_template: str) -> str:
    """The address of a database that has the tables of DBOS, and no other."""
    return database(postgres, dbos_template)
