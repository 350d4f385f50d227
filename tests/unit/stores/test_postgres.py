"""The PostgreSQL store: its fence, its wake-ups, and what it says when the server is not there.

`test_stores.py` in the conformance tests has what it shares with the other stores. The tests below
aim at these faults in `stores/postgres`: no epoch in the append, no
number before in the append, no lock in `release`, no lock in `post`, no anti-join in the sweep.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from threading import Event as Flag
from typing import Any

import psycopg
import pytest

from graphloop.errors import ConfigError, Fenced, OtherSchema, StoreError, UnknownRun
from graphloop.events import Cancelled, Event, Setup, Started
from graphloop.media import image
from graphloop.stores import open_store
from graphloop.stores.base import Ask
from graphloop.stores.database.claims import Holder
from graphloop.stores.database.jobs import Job
from graphloop.stores.postgres import PostgresStore, journal, schema
from graphloop.stores.postgres.operating import prune_families
from graphloop.stores.postgres.schema import PostgresLink, opened
from graphloop.stores.postgres.writer import Writer
from graphloop.values import UserMessage
from tests.postgres_server import Server, database, set_clock

ASK = Ask("c0.0", "approval", "pay", "{}", "t")


def event(reason: str) -> Event:
    """Return an event that can be recognised."""
    return Cancelled(1.0, reason)


def started(run_id: str) -> Event:
    """Return the first event of a run."""
    return Started(1.0, run_id, "a graph", (), Setup())


@pytest.fixture
def dsn(postgres: str) -> str:
    """The address of an empty database."""
    return database(postgres)


@pytest.fixture
def link(dsn: str) -> Generator[PostgresLink]:
    """A connection of the test's own."""
    with opened(dsn) as link:
        yield link


def dead(link: PostgresLink) -> None:
    """Declare each worker dead, as a sweep does that finds an old beat."""
    link.execute("DELETE FROM worker")


async def test_each_call_waits_few_times_for_the_database(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hop is a chain of calls: each wait of each of them is between an approval and its run."""
    store = PostgresStore(dsn, lease_s=3600.0)  # No beat comes between.
    waits, waited = list[str](), dict[str, int]()
    wait = psycopg.Connection[Any].wait

    def counted(self: psycopg.Connection[Any], *args: Any, **options: Any) -> Any:
        waits.append("")
        return wait(self, *args, **options)

    for run_id in ("first", "second"):  # The first call of each connection sets it up.
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "claim": partial(store.claim, run_id),
            "begin": partial(store.append, run_id, 1, started(run_id)),
            "append": partial(store.append, run_id, 2, event("now")),
            "release": partial(store.release, run_id, "parked", (ASK,)),
            "post": partial(store.post, run_id, "c0.0", "an id", "yes"),
            "post again": partial(store.post, run_id, "c0.0", "an id", "yes"),
            "ready": partial(store.ready, ["a graph"], 9),
            "record": partial(store.record, run_id),
            "load": partial(store.load, run_id),
            "posted": partial(store.posted, run_id),
            "commands": partial(store.commands, [run_id]),
        }
        for name, call in calls.items():
            monkeypatch.setattr(psycopg.Connection, "wait", counted)
            await call()
            monkeypatch.setattr(psycopg.Connection, "wait", wait)
            waited[name] = len(waits)
            waits.clear()

    assert waited == {
        "claim": 1,
        "begin": 4,
        "append": 1,
        "release": 1,
        "post": 1,
        "post again": 2,
        "ready": 1,
        "record": 1,
        "load": 1,
        "posted": 1,
        "commands": 1,
    }
    await store.aclose()


async def test_a_driver_whose_run_another_has_claimed_is_fenced(
    dsn: str, link: PostgresLink
) -> None:
    """It stalled, and wakes up: nothing of it lands behind the claim, in no run that it had."""
    first, second = PostgresStore(dsn), PostgresStore(dsn)
    runs = [f"r{number}" for number in range(60)]
    await asyncio.gather(*[first.claim(run_id) for run_id in runs])
    await asyncio.gather(*[first.append(run_id, 1, started(run_id)) for run_id in runs])
    dead(link)
    await asyncio.gather(*[second.claim(run_id) for run_id in runs])
    refused: list[object] = []
    for seq in (2, 3):
        refused += await asyncio.gather(
            *[first.append(run_id, seq, event("late")) for run_id in runs], return_exceptions=True
        )
        await asyncio.gather(*[second.append(run_id, seq, event("mine")) for run_id in runs])
    refused += await asyncio.gather(
        *[first.release(run_id, "done", ()) for run_id in runs], return_exceptions=True
    )

    assert [type(one) for one in refused] == [Fenced] * 180
    mine = event("mine")
    assert {await second.load(run_id) for run_id in runs} == {
        (started(run_id), mine, mine) for run_id in runs
    }
    await first.aclose()
    await second.aclose()


async def test_a_stale_append_in_flight_lands_before_the_new_owner_or_not_at_all(
    dsn: str, link: PostgresLink
) -> None:
    """The old owner's statement began before the claim, and its transaction is still open.

    The new owner reads a journal without that event, appends the same number, and waits. Then it
    is told that the number is taken: it reads again, and no event is there twice.
    """
    first, second = PostgresStore(dsn), PostgresStore(dsn)
    await first.claim("r")
    await first.append("r", 1, started("r"))
    row = link.execute("SELECT number FROM run").fetchone()
    assert row is not None
    with opened(dsn) as stale:
        stale.execute("BEGIN")
        stale.execute(
            "INSERT INTO entry(run, seq, kind, data) SELECT number, 2, 'Cancelled', %s FROM run "
            "WHERE epoch = 1",
            (PostgresStore(dsn)._codec.encode(2, event("stale")),),  # pyright: ignore[reportPrivateUsage]
        )
        dead(link)
        await second.claim("r")
        assert await second.load("r") == (started("r"),)
        late = asyncio.ensure_future(second.append("r", 2, event("mine")))
        while not link.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():  # noqa: ASYNC110
            await asyncio.sleep(0)
        stale.execute("COMMIT")
    with pytest.raises(StoreError, match="the next is number 3"):
        await late
    await second.append("r", 3, event("mine"))
    assert await second.load("r") == (started("r"), event("stale"), event("mine"))
    await first.aclose()
    await second.aclose()


async def test_a_claimed_append_leaves_no_gap(dsn: str) -> None:
    """Also under a claim that counts: the number before has to be there."""
    store = PostgresStore(dsn)
    await store.claim("r")
    await store.append("r", 1, started("r"))

    with pytest.raises(StoreError, match="the next is number 2, not 3"):
        await store.append("r", 3, started("r"))
    await store.aclose()


async def test_a_transaction_ends_before_the_next_beat_is_late(dsn: str) -> None:
    """A beat behind hundreds of claims came after the lease; then all of them were fenced."""
    worker, is_queued = Holder(lease_s=1e-9, clock=time.time), Flag()
    writer = Writer(dsn, worker, patience_s=1.0)

    def work(link: PostgresLink) -> str:
        is_queued.wait()
        (number,) = link.execute("SELECT pg_current_xact_id()::text").fetchone() or ("",)
        return str(number)

    results = [asyncio.get_running_loop().create_future() for _ in range(5)]
    for at, result in enumerate(results):
        writer.queue(Job(work, None, None, result, run_id=f"run-{at}"))
    is_queued.set()
    transactions = {await result for result in results}
    writer.stop()
    await writer.ended()

    assert len(transactions) == len(results)


async def test_a_refused_append_of_a_batch_refuses_no_other(dsn: str) -> None:
    """Appends of many runs are one statement; each run is its own."""
    store = PostgresStore(dsn)
    for run_id in ("a", "b", "c"):
        await store.claim(run_id)
    await asyncio.gather(*[store.append(one, 1, started(one)) for one in ("a", "b", "c")])
    said = await asyncio.gather(
        store.append("a", 2, event("x"), event("y")),
        store.append("a", 4, event("z")),
        store.append("b", 3, event("x")),
        store.append("c", 1, started("c"), event("x")),
        store.append("c", 2, event("y")),
        return_exceptions=True,
    )
    await store.aclose()
    assert [type(one) for one in said] == [
        *(type(None), type(None), StoreError, StoreError, type(None))
    ]


async def test_a_job_that_is_alone_makes_few_round_trips(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each one is a wait for the network, in each look of each worker."""
    trips, store = list[int](), PostgresStore(dsn)
    await store.append("run", 1, started("run"))
    waited = psycopg.Connection.wait

    def counted(self: PostgresLink, *given: Any, **options: Any) -> Any:
        trips.append(1)
        return waited(self, *given, **options)

    monkeypatch.setattr(psycopg.Connection, "wait", counted)
    await store.ready({"a graph"}, 9)
    look = len(trips)
    await store.aclose()

    assert look == 1


@pytest.mark.parametrize("is_release_first", [True, False])
async def test_an_answer_and_a_release_meet_on_the_row(
    dsn: str, link: PostgresLink, *, is_release_first: bool
) -> None:
    """Each waits for the other's transaction, and then sees it: the run is ready in any case."""
    store, other = PostgresStore(dsn), PostgresStore(dsn)
    await store.claim("r")
    await store.append("r", 1, started("r"))
    link.execute("BEGIN")
    link.execute("SELECT 1 FROM run FOR UPDATE")
    acts: list[Callable[[], object]] = [
        lambda: asyncio.ensure_future(store.release("r", "parked", [ASK])),
        lambda: asyncio.ensure_future(other.post("r", "c0.0", "one", "yes")),
    ]
    waiting: list[object] = []
    with opened(dsn) as seen:
        for act in acts if is_release_first else reversed(acts):
            waiting.append(act())
            while seen.execute(  # noqa: ASYNC110 - only the server knows
                "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted"
            ).fetchone() != (len(waiting),):
                await asyncio.sleep(0)
    link.execute("COMMIT")
    await asyncio.gather(*waiting)  # type: ignore[call-overload]

    assert [one.status for one in await store.overview()] == ["ready"]
    assert await other.ready({"a graph"}, 9) == ["r"]
    await store.aclose()
    await other.aclose()


async def test_a_run_that_is_deleted_while_it_is_read_is_unknown(
    dsn: str, link: PostgresLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its events have been read, and its media are gone: that is no damage."""
    store = PostgresStore(dsn)
    picture = image(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 80)
    first = Started(1.0, "r", "a graph", (UserMessage((picture,)),), Setup())
    await store.append("r", 1, first)
    execute = PostgresLink.execute

    def pruned(self: PostgresLink, *given: Any, **options: Any) -> Any:
        rows = execute(self, *given, **options)
        if given[0] == journal.ENTRIES:
            link.execute("DELETE FROM entry; DELETE FROM blob; DELETE FROM run")
        return rows

    monkeypatch.setattr(PostgresLink, "execute", pruned)
    with pytest.raises(UnknownRun):
        await store.load("r")
    await store.aclose()


async def test_a_question_that_begins_during_a_prune_keeps_its_conversation(
    dsn: str, link: PostgresLink
) -> None:
    """Its store has saved the parts; the prune, which has not seen the question, deletes them."""
    said = tuple([UserMessage(f"{number} {'x' * 3000}") for number in range(5)])
    store, other = PostgresStore(dsn), PostgresStore(dsn)
    await store.append("old", 1, Started(1.0, "old", "a graph", said, Setup()))
    await store.claim("old")
    await store.release("old", "done", [])
    with opened(dsn) as pruning:
        pruning.execute("BEGIN")
        assert prune_families(pruning, 0.0, 9) == 1
        new = Started(1.0, "new", "a graph", said, Setup())
        late = asyncio.ensure_future(store.append("new", 1, new))
        while not link.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():  # noqa: ASYNC110
            await asyncio.sleep(0)
        pruning.execute("COMMIT")
    await late

    (first,) = await other.load("new")
    assert isinstance(first, Started)
    assert first.messages == said
    await store.aclose()
    await other.aclose()


async def test_a_run_is_freed_whose_owner_has_no_row(dsn: str, link: PostgresLink) -> None:
    """Also if the sweep that deleted the row did not see the claim."""
    store = PostgresStore(dsn)
    await store.append("r", 1, started("r"))
    link.execute("UPDATE run SET owner = 'a worker that was declared dead'")

    assert await store.ready({"a graph"}, 9) == ["r"]
    assert [one.status for one in await store.overview()] == ["interrupted"]
    await store.aclose()


async def test_a_worker_that_was_declared_dead_goes_on_under_a_new_name(
    dsn: str, link: PostgresLink
) -> None:
    """Under the old one, nothing would free what it claims."""
    store = PostgresStore(dsn)
    await store.claim("r")
    dead(link)
    await store.claim("s")

    owners = link.execute("SELECT owner FROM run ORDER BY run_id").fetchall()
    assert owners[0] != owners[1]
    assert link.execute("SELECT name FROM worker").fetchall() == [owners[1]]
    await store.aclose()


async def test_an_idle_worker_that_was_declared_dead_serves_on(
    dsn: str, link: PostgresLink
) -> None:
    """It takes the next run, so an operator must not read that nobody serves the agent."""
    store = PostgresStore(dsn, lease_s=0.1)
    await store.attend("worker", {"desk": ""})
    dead(link)

    while not (served := (await store.survey()).served):
        pass

    assert served == {"desk": [""]}
    await store.aclose()


@pytest.mark.parametrize("clock", [7200.0 - 3600, 7200.0, 7200.0 + 3600])
async def test_a_question_waits_for_as_long_as_its_worker_says(dsn: str, clock: float) -> None:
    """A worker whose clock is an hour late must not be told of a run that it does not find due."""
    set_clock(dsn, 7200.0)
    store = PostgresStore(dsn, clock=lambda: clock)
    await store.claim("r")
    await store.append("r", 1, started("r"))
    await store.release("r", "parked", [Ask("c0.0", "approval", "pay", "{}", expires_at=clock + 9)])

    assert await store.ready({"a graph"}, 9) == []
    set_clock(dsn, 7210.0)
    assert await store.ready({"a graph"}, 9) == ["r"]
    await store.aclose()


async def test_a_store_tells_others_of_a_run_that_waits(dsn: str) -> None:
    """A worker on another machine need not wait for its next look."""
    store, other = PostgresStore(dsn), PostgresStore(dsn)
    await other.ready({"a graph"}, 9)
    woken = asyncio.ensure_future(other.woken())
    await asyncio.sleep(0)
    await store.append("r", 1, started("r"))

    await woken
    await store.aclose()
    await other.aclose()


async def test_a_server_that_does_not_answer_is_named_without_its_password() -> None:
    """At once: an address that never answered is a mistake more often than an outage."""
    store = PostgresStore("postgresql://ann:secret@127.0.0.1:1/runs")
    place = r"127\.0\.0\.1:1/runs: expected a PostgreSQL"
    for work in (store.runs(), store.post("r", "key", "one", "yes")):
        with pytest.raises(StoreError, match=place) as caught:
            await work
        assert "secret" not in str(caught.value)
    await store.aclose()


async def test_of_two_first_uses_one_creates_the_tables(dsn: str) -> None:
    """The second has waited, and finds the tables that it did not find before."""
    store = PostgresStore(dsn)
    with psycopg.connect(dsn) as first, psycopg.connect(dsn, autocommit=True) as seen:
        first.execute("SELECT pg_advisory_xact_lock(%s, 0)", (schema.LOCK_CLASS,))
        second = asyncio.ensure_future(store.append("r", 1, started("r")))
        while not seen.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():  # noqa: ASYNC110
            await asyncio.sleep(0)
        first.execute("SET search_path TO graphloop")
        for statement in schema.TABLES:
            first.execute(statement)
        first.commit()
        await second

    assert await store.runs() == ["r"]
    await store.aclose()


@pytest.mark.parametrize(
    ("version", "fix"),
    [
        ("4", "end its runs with .* drop the schema"),
        ("v2", "end its runs with .* drop the schema"),
        ("99", "upgrade graphloop"),
    ],
)
async def test_another_schema_is_refused(
    dsn: str, link: PostgresLink, version: str, fix: str
) -> None:
    """A program must not write what another cannot read; its user learns what to do."""
    link.execute("UPDATE meta SET value = %s WHERE key = 'schema'", (version,))
    store = PostgresStore(dsn)

    for work in (store.runs(), store.claim("r")):
        with pytest.raises(OtherSchema, match=f"schema version {version}, expected 5. Fix: {fix}"):
            await work
    await store.aclose()


@pytest.mark.parametrize("where", ["mysql://host/runs", "redis://host", "https://host/runs.db"])
def test_an_unknown_scheme_is_refused(where: str) -> None:
    """It would become a directory of that name."""
    with pytest.raises(ConfigError, match="expected postgresql"):
        open_store(where)


async def test_a_server_that_crashes_loses_nothing_that_was_told(
    stoppable_server: Server,
) -> None:
    """The driver waits, and goes on when the server is there again."""
    store = PostgresStore(stoppable_server.dsn)
    await store.claim("r")
    await store.append("r", 1, started("r"))
    assert await store.load("r") == (started("r"),)
    stoppable_server.stop()
    late = asyncio.ensure_future(store.append("r", 2, event("late")))
    read = asyncio.ensure_future(store.load("r"))
    await asyncio.sleep(0)
    stoppable_server.start()
    await late
    assert (await read)[0] == started("r")
    await store.append("r", 3, event("later"))
    assert await store.load("r") == (started("r"), event("late"), event("later"))
    await store.release("r", "done", ())
    await store.aclose()
