"""A user of PostgreSQL without rights: the error has the statement that gives them."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

import psycopg
import pytest

from graphloop.errors import StoreError
from graphloop.events import Cancelled, Setup, Started
from graphloop.stores.base import Ask
from graphloop.stores.postgres import PostgresStore
from tests.postgres_server import database

BEGUN = Started(1.0, "r", "a graph", (), Setup())
ASK = Ask("c0.0", "approval", "pay", "{}", "t")


class Roles(NamedTuple):
    """The addresses of a database for its owner, and for a user without rights."""

    owner: str
    user: str

    def do(self, statement: str) -> None:
        """Do a statement of the administrator."""
        with psycopg.connect(self.owner, autocommit=True) as link:
            link.execute(statement.encode())


@pytest.fixture
def roles(postgres: str) -> Generator[Roles]:
    """A database, and a user of the server whose name must be quoted."""
    name = f"an-app {os.getpid()}"
    dsn = database(postgres)
    found = Roles(dsn, re.sub("//[^@]*@", f"//{quote(name)}@", dsn))
    found.do(f'CREATE USER "{name}"')
    yield found
    found.do(f'DROP OWNED BY "{name}"; DROP USER "{name}"')


def fixes(error: StoreError) -> list[str]:
    """Return the statements that an error names as its fix."""
    _, _, fix = str(error).partition(" Fix: ")
    assert "GRANT" in fix
    return fix.removesuffix(".").split("; ")


async def use(store: PostgresStore) -> None:
    """Do what drivers, clients, workers and operators do with a store."""
    await store.claim("r")
    await store.append("r", 1, BEGUN)
    await store.release("r", "parked", [ASK])
    await store.post("r", ASK.key, "one", "yes")
    await store.attend("worker", {"a graph": ""})
    assert await store.ready({"a graph"}, 9) == ["r"]
    await store.metered({"m"}, lambda known, now: ({"m": now}, None))
    await store.set_queues({})
    await store.say("topic", "text")
    await store.claim("r")
    await store.append("r", 2, Cancelled(2.0, "late"))
    await store.release("r", "cancelled", ())
    assert (await store.survey()).runs == {"cancelled": 1}
    assert await store.prune(0, 500) == 1


async def test_the_right_to_create_the_schema_is_named(roles: Roles) -> None:
    """With it, the user needs no other: the tables are the user's own."""
    store = PostgresStore(roles.user)
    with pytest.raises(StoreError, match="permission denied") as refused:
        await store.claim("r")
    (fix,) = fixes(refused.value)
    assert "GRANT CREATE ON DATABASE" in fix
    roles.do(fix)

    await use(store)
    await store.aclose()


async def test_an_administrator_may_create_the_schema(roles: Roles) -> None:
    """A user may not be allowed to create schemas, but have one."""
    name = unquote(urlsplit(roles.user).username or "")
    roles.do(f'CREATE SCHEMA graphloop AUTHORIZATION "{name}"')
    store = PostgresStore(roles.user)

    await use(store)
    await store.aclose()


@pytest.mark.parametrize("part", ["nothing", "schema"])
async def test_the_rights_to_use_the_tables_are_named(roles: Roles, part: str) -> None:
    """Those that the error names suffice for all that a store does."""
    owner, store = PostgresStore(roles.owner), PostgresStore(roles.user)
    await use(owner)
    if part == "schema":
        roles.do("GRANT USAGE ON SCHEMA graphloop TO PUBLIC")
    for work in (store.runs(), store.claim("r")):
        with pytest.raises(StoreError, match="permission denied") as refused:
            await work
    for fix in fixes(refused.value):
        roles.do(fix)

    await use(store)
    await store.aclose()
    await owner.aclose()


async def test_the_owner_of_the_tables_is_named_to_an_engine(roles: Roles) -> None:
    """The engine's trigger is made once, by the owner; later workers may be another user's."""
    owner, store = PostgresStore(roles.owner), PostgresStore(roles.user)
    await use(owner)
    with pytest.raises(StoreError) as refused:
        await store.runs()
    for fix in fixes(refused.value):
        roles.do(fix)
    with pytest.raises(StoreError, match=r"Fix: .* as postgres"):
        await store.on_ready("PERFORM told.leg;")
    await owner.on_ready("PERFORM told.leg;")

    await store.on_ready("PERFORM told.leg;")
    await use(store)
    await store.aclose()
    await owner.aclose()


async def test_the_right_to_connect_is_named(roles: Roles) -> None:
    """A server refuses the connection itself."""
    name = roles.owner.rpartition("/")[2]
    roles.do(f"REVOKE CONNECT ON DATABASE {name} FROM PUBLIC")
    store = PostgresStore(roles.user)
    with pytest.raises(StoreError, match="permission denied") as refused:
        await store.runs()
    (fix,) = fixes(refused.value)
    roles.do(fix)

    assert await store.runs() == []
    roles.do(f"GRANT CONNECT ON DATABASE {name} TO PUBLIC")
    await store.aclose()
