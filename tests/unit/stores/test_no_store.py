"""A read of a database in which there is no store creates nothing, and finds no runs."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import psycopg
import pytest

from graphloop.errors import ConfigError, StoreError, UnknownRun
from graphloop.stores.postgres import PostgresStore
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.workers import Client
from tests.postgres_server import database


@pytest.fixture(params=["absent.db", "empty.db", "postgres"])
def where(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[str]:
    """A database without a store; that on a server has another program's table."""
    if request.param == "postgres":
        dsn = database(request.getfixturevalue("postgres"))
        with psycopg.connect(dsn, autocommit=True) as link:
            link.execute("CREATE TABLE theirs(id int)")
            yield dsn
            link.execute("DROP TABLE theirs")
    else:
        (tmp_path / "empty.db").touch()
        yield str(tmp_path / request.param)


def made(where: str) -> object:
    """Return what is there: the tables of a database, or the files of a folder."""
    if "://" not in where:
        return {one.name: one.read_bytes() for one in Path(where).parent.iterdir()}
    with psycopg.connect(where) as link:
        return link.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname !~ '^(pg_|information_)'"
        ).fetchall()


async def test_a_read_creates_nothing_and_finds_nothing(where: str) -> None:
    """A mistyped address may be that of another program's database."""
    store = PostgresStore(where) if "://" in where else SqliteStore(where)
    before = made(where)

    assert not await store.is_made()
    assert (await store.runs(), await store.overview(), await store.posted("r")) == ([], (), {})
    assert await store.page((), None, after="", limit=1) == []
    assert (await store.existing(["r"]), await store.commands(["r"])) == (set(), {})
    for work in (store.load("r"), store.record("r"), store.page((), None, after="r", limit=1)):
        with pytest.raises(UnknownRun, match="'r'"):
            await work
    with pytest.raises(StoreError, match="expected a store, found none"):
        await store.survey()
    await store.aclose()

    assert made(where) == before


async def test_an_answer_or_a_command_creates_nothing(where: str) -> None:
    """The program that answers knows no agent, so it never is the first."""
    before = made(where)
    async with Client(where) as client:
        assert [one async for one in client.runs()] == []
        for work in (
            client.approve("r", "c0.0"),
            client.cancel("r"),
            client.steer("r", "now"),
            client.result("r"),
            anext(client.stream("r")),
        ):
            with pytest.raises((UnknownRun, ConfigError), match="'r'"):
                await work

    assert made(where) == before


async def test_the_first_write_creates_the_store(where: str) -> None:
    """A store that looked before finds it then."""
    store = PostgresStore(where) if "://" in where else SqliteStore(where)
    assert not await store.is_made()
    await store.claim("r")

    assert await store.is_made()
    assert (await store.survey()).runs == {}
    await store.aclose()
