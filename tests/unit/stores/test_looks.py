"""Looks for waiting runs: each store finds those that the store in memory finds.

A store in memory reads all that waits. A database reads the heads of the lines of each queue, agent
and tenant, and then no more than could be taken.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import cast

import psycopg
import pytest

from graphloop.errors import QueueFull
from graphloop.events import Resumed, Setup, Started
from graphloop.stores import MemoryStore, PostgresStore, QueueLimits, SqliteStore, Submission
from graphloop.stores.base import Closes, Refusal, ReleaseStatus
from tests.postgres_server import database, set_clock

Shared = MemoryStore | SqliteStore | PostgresStore


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
async def test_a_tenant_with_two_agents_has_one_turn(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Two slots are free, and its runs are older: the other tenant has the second."""
    store: Shared = MemoryStore()
    if kind == "sqlite":
        store = SqliteStore(tmp_path / "runs.db")
    elif kind == "postgres":
        store = PostgresStore(database(request.getfixturevalue("postgres")))
    for run_id, agent, tenant in (("a", "one", "x"), ("b", "two", "x"), ("c", "one", "y")):
        await store.enlist(Started(1.0, run_id, agent, (), Setup()), Submission(tenant))

    assert [*await store.ready(["one", "two"], 2)] == ["a", "c"]
    if isinstance(store, Closes):
        await store.aclose()


async def filled(store: Shared, draw: Random, clock: Callable[[float], None]) -> None:
    """Put runs of some agents and tenants into a store, in all ways of waiting."""
    now = 1000.0
    weights = {"t0": 3.0, "t1": 0.5}
    await store.set_queues(
        {"bulk": QueueLimits(running=draw.randrange(1, 6), weights=weights), "free": QueueLimits()}
    )
    for number in range(30):
        run_id = f"r{number}"
        now += draw.randrange(2)
        clock(now)
        first = Started(1.0, run_id, draw.choice(["one", "two", "other"]), (), Setup())
        tenant, queue = f"t{draw.randrange(4)}", draw.choice(["bulk", "free", "default"])
        deadline_s = draw.choice([None, None, 1.0, 1000.0])
        place = Submission(tenant, draw.choice([0, 0, 0, 5]), deadline_s, queue)
        await store.enlist(first, place)
        if draw.randrange(2):
            await store.append(run_id, 2, Resumed(1.0, revision=draw.choice(["new", "newer"])))
        with suppress(QueueFull):
            if draw.randrange(3) == 0:
                await store.claim(run_id)
                left = draw.choice(["interrupted", "parked", "blocked", "claimed"])
                if left == "blocked":
                    await store.release(run_id, "blocked", (), refusal=Refusal("new", "no"))
                elif left != "claimed":
                    await store.release(run_id, cast("ReleaseStatus", left), ())
                if left == "parked" and draw.randrange(2):
                    await store.post(run_id, "a question", "an id", "yes")
    clock(now + 2)


async def compared(seed: int, store: Shared, clock: Callable[[float], None]) -> None:
    """Fill a store and one in memory alike, and compare what looks find."""
    now = [1000.0]
    memory = MemoryStore(clock=lambda: now[0])
    await filled(memory, Random(seed), partial(now.__setitem__, 0))  # noqa: S311
    await filled(store, Random(seed), clock)  # noqa: S311

    for limit in (1, 2, 3, 5, 8, 50):
        for queue in (None, "bulk", "free"):
            for revisions, pinned in (((), False), (("new",), False), (("newer",), True)):
                wanted, found = [
                    await one.ready(
                        ["one", "two"], limit, revisions=revisions, queue=queue, pinned=pinned
                    )
                    for one in (memory, store)
                ]
                assert [*wanted] == [*found], (limit, queue, revisions)


@pytest.mark.parametrize("seed", range(12))
async def test_a_look_of_sqlite_finds_what_a_look_at_all_runs_would(
    seed: int, tmp_path: Path
) -> None:
    """Tenants have lines of several agents: their turns count over all of these."""
    now = [1000.0]
    store = SqliteStore(tmp_path / "runs.db", durability="process", clock=lambda: now[0])
    await compared(seed, store, partial(now.__setitem__, 0))
    await store.aclose()


@pytest.mark.parametrize("seed", range(8))
async def test_a_look_of_postgresql_finds_what_a_look_at_all_runs_would(
    seed: int, postgres: str
) -> None:
    """Also if few slots are free, so that it reads few lines."""
    dsn = database(postgres)
    set_clock(dsn, 1000.0)
    with psycopg.connect(dsn, autocommit=True) as link:

        def clock(now: float) -> None:
            link.execute(
                b"CREATE OR REPLACE FUNCTION graphloop.now_s() RETURNS float8 LANGUAGE sql "
                b"VOLATILE AS " + f"'SELECT {now}::float8'".encode()
            )

        store = PostgresStore(dsn, lease_s=3600.0)  # The clock goes on without a beat.
        await compared(seed, store, clock)
        await store.aclose()
