"""The writing thread of a PostgreSQL store: of jobs that wait together, each fails alone."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from functools import partial
from threading import Event as Flag
from typing import Any

import psycopg
import pytest

from graphloop.errors import ConfigError, RunBusy, StoreError
from graphloop.events import Cancelled, Event, Setup, Started
from graphloop.stores.backlog import Submission
from graphloop.stores.base import Ask
from graphloop.stores.database.claims import HeldRun
from graphloop.stores.postgres import PostgresStore, batches, journal, writer
from graphloop.stores.postgres.schema import PostgresLink
from graphloop.stores.rows import Addition
from tests.postgres_server import database

ASK = Ask("c0.0", "approval", "pay", "{}", "t")
LATE = Cancelled(1.0, "late")


def started(run_id: str) -> Event:
    """Return the first event of a run."""
    return Started(1.0, run_id, "a graph", (), Setup())


@pytest.fixture
def dsn(postgres: str) -> str:
    """The address of an empty database."""
    return database(postgres)


async def held_up(store: PostgresStore, go_on: Flag) -> asyncio.Task[None]:
    """Hold the writing thread until `go_on` is set, so that calls wait together."""
    loop, is_held = asyncio.get_running_loop(), asyncio.Event()

    def change(known: Mapping[str, float], _: float) -> tuple[Mapping[str, float], None]:
        loop.call_soon_threadsafe(is_held.set)
        go_on.wait(30)
        return known, None

    task = asyncio.ensure_future(store.metered(["gate"], change))
    await is_held.wait()
    return task


async def together(store: PostgresStore, *calls: Callable[[], Awaitable[Any]]) -> list[Any]:
    """Return the results of calls, or their errors, that the thread takes at once."""
    go_on = Flag()
    gate = await held_up(store, go_on)
    waiting = [asyncio.ensure_future(call()) for call in calls]
    await asyncio.sleep(0)
    go_on.set()
    await gate
    return await asyncio.gather(*waiting, return_exceptions=True)


@pytest.mark.parametrize("key", ["k\0", "k\ud800"], ids=["nul", "half"])
async def test_a_text_that_cannot_be_stored_fails_its_own_call_only(dsn: str, key: str) -> None:
    """The other calls are those of other runs, whose drivers would fail for it."""
    store = PostgresStore(dsn)
    for run_id in "abc":
        await store.claim(run_id)
        await store.append(run_id, 1, started(run_id))
    told = await together(
        store,
        partial(store.release, "a", "parked", [ASK]),
        partial(store.claim, "d"),
        partial(store.post, "b", key, "id", "x"),
        partial(store.post, "c", "good", "id", "x"),
        partial(store.metered, ["other"], lambda known, _: (known, "metered")),
    )

    assert [None, None, "accepted", "metered"] == [*told[:2], *told[3:]]
    assert isinstance(told[2], StoreError)
    assert (await store.record("a")).status == "parked"
    assert await store.posted("b") == {}
    await store.aclose()


async def test_an_append_that_cannot_be_stored_fails_alone(dsn: str) -> None:
    """One statement writes all that wait, so the database cannot tell which one it refuses."""
    store, runs = PostgresStore(dsn), [f"r{at}" for at in range(9)]
    await asyncio.gather(*[store.claim(run_id) for run_id in runs])
    await asyncio.gather(*[store.append(run_id, 1, started(run_id)) for run_id in runs])
    calls = [
        partial(store.append, run_id, 10**10 if run_id == "r4" else 2, LATE) for run_id in runs
    ]
    told = await together(store, *calls)

    assert isinstance(told.pop(4), StoreError)
    assert told == [None] * 8
    assert await store.load("r4") == (started("r4"),)
    assert await store.load("r5") == (started("r5"), LATE)
    await store.aclose()


async def test_appends_that_wait_are_written_in_batches_that_a_statement_can_hold(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL refuses a statement above 1 GB, which would lose all of them."""
    store, runs, sizes = PostgresStore(dsn), [f"r{at}" for at in range(8)], list[int]()
    await asyncio.gather(*[store.claim(run_id) for run_id in runs])
    await asyncio.gather(*[store.append(run_id, 1, started(run_id)) for run_id in runs])
    append = journal.append_claimed

    def seen(link: PostgresLink, additions: Sequence[tuple[Addition, HeldRun]]) -> frozenset[str]:
        sizes.append(sum([len(data) for each, _ in additions for _, data in each.events]))
        return append(link, additions)

    monkeypatch.setattr(journal, "append_claimed", seen)
    monkeypatch.setattr(batches, "APPEND_BYTES_MAX", 2500)
    big = [Cancelled(1.0, "x" * (9000 if run_id == "r4" else 1000)) for run_id in runs]
    calls = [partial(store.append, run_id, 2, one) for run_id, one in zip(runs, big, strict=True)]

    assert await together(store, *calls) == [None] * 8
    assert [size // 1000 for size in sizes] == [2, 2, 9, 2, 1]
    assert [(await store.load(run_id))[1] for run_id in runs] == big
    await store.aclose()


@pytest.mark.parametrize("run_id", ["r", "r/c0.0"])
async def test_a_release_ends_the_claim_of_its_caller_only(dsn: str, run_id: str) -> None:
    """A cancelled driver has left, and the next one claims the run before the thread works.

    The release of a child run takes several statements, but comes before the later claim.
    """
    store, other, go_on = PostgresStore(dsn), PostgresStore(dsn), Flag()
    await store.append("r", 1, started("r"))
    if run_id != "r":
        await store.append(run_id, 1, started(run_id))
    await store.claim(run_id)
    gate = await held_up(store, go_on)
    leaving = asyncio.ensure_future(store.release(run_id, "parked", [ASK]))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    coming = asyncio.ensure_future(store.claim(run_id))
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(gate, coming)

    assert (await store.record(run_id)).asks == (ASK,)
    with pytest.raises(RunBusy):
        await other.claim(run_id)
    await store.append(run_id, 2, LATE)
    await store.release(run_id, "done", ())
    await store.aclose()
    await other.aclose()


async def test_a_worker_whose_first_claim_is_refused_is_not_called_dead(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The refusal undoes its row: it was no worker yet, and becomes one with its next claim."""
    first, second = PostgresStore(dsn), PostgresStore(dsn)
    await first.claim("r")
    with pytest.raises(RunBusy):
        await second.claim("r")
    await second.metered([], lambda known, _: (known, None))  # After the beat of the refused claim.
    assert "dead" not in caplog.text
    await second.claim("s")
    assert (await second.survey()).drivers == 2
    await first.aclose()
    await second.aclose()


async def test_a_worker_that_waits_for_a_lock_beats(dsn: str) -> None:
    """Its runs stay its own, and earlier calls in the same batch do not wait for the lock."""
    store, go_on = PostgresStore(dsn, lease_s=0.3), Flag()
    await store.append("r", 1, started("r"))
    await store.claim("mine")
    with psycopg.connect(dsn) as lock, psycopg.connect(dsn, autocommit=True) as seen:
        gate = await held_up(store, go_on)
        lock.execute("LOCK TABLE graphloop.signal IN SHARE MODE")
        claim = asyncio.ensure_future(store.claim("other"))
        late = asyncio.ensure_future(store.post("r", "k", "id", "x"))
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(gate, claim)
        beats = set[object]()
        while len(beats) < 3:
            await asyncio.sleep(0)
            beats.add(seen.execute("SELECT max(beat) FROM graphloop.worker").fetchone())
        assert not late.done()
        lock.rollback()
        assert await late == "accepted"
    await store.aclose()


@pytest.fixture
def _many_open() -> Generator[None]:
    """Open so many descriptors that each later one has a number above 1,023."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2000:
        pytest.skip("this machine allows fewer than 2,000 descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1030)]
    yield
    for number in opened:
        os.close(number)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("_many_open")
async def test_a_process_with_many_descriptors_writes(dsn: str) -> None:
    """`select` refuses them: the writing thread would end, and each call wait for ever."""
    store = PostgresStore(dsn)
    await store.claim("r")
    await store.append("r", 1, started("r"))
    await store.append("r", 2, LATE)

    assert await store.load("r") == (started("r"), LATE)
    await store.aclose()


async def test_an_error_that_ends_the_thread_is_told_to_all_that_wait(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise they would wait for ever, and later callers, too."""
    rests, go_on = Flag(), Flag()

    def broken() -> None:
        rests.set()
        go_on.wait(30)
        raise ValueError("no descriptor is free")

    monkeypatch.setattr(writer, "SELECTOR", broken)
    store = PostgresStore(dsn)
    await store.claim("r")
    await asyncio.to_thread(rests.wait)
    waiting = [asyncio.ensure_future(one) for one in (store.claim("s"), store.append("r", 1, LATE))]
    await asyncio.sleep(0)
    go_on.set()
    told = await asyncio.gather(*waiting, return_exceptions=True)

    assert [type(one) for one in told] == [StoreError] * 2
    assert ["no descriptor is free" in str(one) for one in told] == [True] * 2
    with pytest.raises(StoreError, match="is closed"):
        await store.claim("t")
    assert store.closed
    await store.aclose()


@pytest.mark.parametrize("place", [Submission("cut \ud83d"), Submission(queue="cut \ud83d")])
def test_a_place_with_half_a_surrogate_pair_is_refused(place: Submission) -> None:
    """Its caller has cut a text within a character."""
    with pytest.raises(ConfigError, match="half a surrogate pair at character 4"):
        place.check()
