"""Every store keeps the promises of `Store`; a new store joins by one line here."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, closing
from pathlib import Path
from typing import Protocol, TypeVar, get_args
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec import convert

from graphloop.errors import QueueFull, RunBusy, StoreError, UnknownRun
from graphloop.events import Cancelled, Event, Resumed, Setup, Started
from graphloop.media import Inline, MediaPart
from graphloop.stores.backlog import Backlog, QueueLimits, Submission
from graphloop.stores.base import (
    Ask,
    Bulk,
    Catalog,
    Leases,
    Mailbox,
    Meters,
    Refusal,
    ReleaseStatus,
    RunStatus,
    Store,
)
from graphloop.stores.forking import fork
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.memory import MemoryStore
from graphloop.stores.postgres import PostgresStore
from graphloop.stores.run_ids import those_of
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.values import UserMessage, evolve
from tests.postgres_server import database, emptied, set_clock
from tests.sizes import sized
from tests.strategies import events
from tests.unit.stores.store_process import append_events

T = TypeVar("T")

Open = Callable[[], Store]

NUMBERS = itertools.count()

ASK = Ask("c0.0", "approval", "pay", "{}", "t")

ODD_IDS = ["r", "", ".", "..", "a/b", "../up", "%2F", "ä😀", "con", " ", "a" * 60, "x.jsonl"]


@pytest.fixture(
    params=["memory", "jsonl", "jsonl with fsync", "sqlite", "sqlite, process only", "postgres"]
)
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Return a way to open the same store, as another process would."""
    match request.param:
        case "memory":
            store = MemoryStore()
            return lambda: store
        case "postgres":
            dsn = database(request.getfixturevalue("postgres"))
            return lambda: PostgresStore(dsn)
        case "sqlite":
            return lambda: SqliteStore(tmp_path / "runs.db")
        case "sqlite, process only":
            return lambda: SqliteStore(tmp_path / "runs.db", durability="process")
        case name:
            return lambda: JsonlStore(tmp_path / "runs", fsync=name.endswith("fsync"))


def do(work: Coroutine[object, object, T]) -> T:
    """Run one operation."""
    return asyncio.run(work)


def event(reason: str) -> Event:
    """Return an event that can be recognised."""
    return Cancelled(1.0, reason)


class Leasing(Store, Leases, Protocol):
    """What every store of ours can do."""


OpenLeasing = Callable[[], Leasing]


@pytest.fixture(params=["memory", "jsonl", "sqlite", "postgres"])
def open_leasing(request: pytest.FixtureRequest, tmp_path: Path) -> OpenLeasing:
    """Return a way to open the same store, as another process would."""
    match request.param:
        case "memory":
            store = MemoryStore()
            return lambda: store
        case "jsonl":
            return lambda: JsonlStore(tmp_path / "runs")
        case "postgres":
            dsn = database(request.getfixturevalue("postgres"))
            return lambda: PostgresStore(dsn)
        case _:
            return lambda: SqliteStore(tmp_path / "runs.db")


class Shared(Leasing, Mailbox, Catalog, Backlog, Bulk, Meters, Protocol):
    """What the stores can do that keep more than journals."""


OpenShared = Callable[[], Shared]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def open_shared(request: pytest.FixtureRequest, tmp_path: Path) -> OpenShared:
    """Return a way to open the same store, as another process would."""
    if request.param == "memory":
        store = MemoryStore(clock=lambda: 1.0)
        return lambda: store
    if request.param == "postgres":
        dsn = database(request.getfixturevalue("postgres"))
        set_clock(dsn, 1.0)
        return lambda: PostgresStore(dsn, clock=lambda: 1.0)
    return lambda: SqliteStore(tmp_path / "runs.db", clock=lambda: 1.0)


def started(run_id: str) -> Started:
    """Return the first event of a run."""
    return Started(1.0, run_id, "a graph", (), Setup())


def test_what_was_appended_is_loaded_in_order(open_store: Open) -> None:
    """Also by a store that was opened later."""
    store = open_store()
    kept = [event(str(number)) for number in range(1, 6)]
    for seq, one in enumerate(kept, 1):
        do(append_events(store, "r", seq, one))

    assert kept == list(do(store.load("r")))
    assert kept == list(do(open_store().load("r")))


@pytest.mark.parametrize("seq", [0, 1, 3, -1, 4])
def test_a_number_out_of_order_is_refused_and_leaves_no_trace(open_store: Open, seq: int) -> None:
    """A gap or a second writer of one number would be two truths."""
    store = open_store()
    do(append_events(store, "r", 1, event("a")))

    with pytest.raises(StoreError):
        do(append_events(store, "r", seq, event("x")))
    do(append_events(store, "r", 2, event("b")))

    assert [event("a"), event("b")] == list(do(store.load("r")))


def test_events_of_one_append_are_kept_together_in_order(open_store: Open) -> None:
    """The append after it goes on behind the last of them."""
    store = open_store()
    kept = [event(str(number)) for number in range(1, 7)]
    do(append_events(store, "r", 1, *kept[:3]))
    do(append_events(store, "r", 4, kept[3]))
    do(append_events(open_store(), "r", 5, *kept[4:]))

    assert kept == list(do(open_store().load("r")))


@pytest.mark.parametrize("seq", [0, 1, 2, 4])
def test_of_events_out_of_order_none_is_kept(open_store: Open, seq: int) -> None:
    """Also where some of them would follow."""
    store = open_store()
    do(append_events(store, "r", 1, event("a"), event("b")))

    with pytest.raises(StoreError):
        do(append_events(store, "r", seq, event("x"), event("y"), event("z")))
    do(append_events(store, "r", 3, event("c")))

    assert [event("a"), event("b"), event("c")] == list(do(store.load("r")))


def test_a_refused_first_event_makes_no_run(open_store: Open) -> None:
    """A run that nobody started must not be listed."""
    store = open_store()

    with pytest.raises(StoreError):
        do(append_events(store, "r", 2, event("x")))

    assert [] == list(do(store.runs()))
    with pytest.raises(StoreError):
        do(store.load("r"))


def test_a_second_writer_of_the_same_number_is_refused(open_store: Open) -> None:
    """Whichever of two drivers of one run is slower, learns that it is not alone."""
    first, second = open_store(), open_store()
    do(append_events(first, "r", 1, event("a")))
    do(append_events(second, "r", 2, event("b")))

    with pytest.raises(StoreError):
        do(append_events(first, "r", 2, event("x")))
    do(append_events(first, "r", 3, event("c")))
    with pytest.raises(StoreError):
        do(append_events(second, "r", 3, event("y")))

    assert [event("a"), event("b"), event("c")] == list(do(open_store().load("r")))


@pytest.mark.parametrize("run_id", ODD_IDS)
def test_any_run_id_is_kept_apart(open_store: Open, run_id: str) -> None:
    """Ids come from users: they may look like paths, and must not be."""
    store = open_store()

    do(append_events(store, run_id, 1, event("mine")))
    do(append_events(store, "other", 1, event("theirs")))

    assert [event("mine")] == list(do(store.load(run_id)))
    assert sorted([run_id, "other"]) == list(do(open_store().runs()))


def test_an_unknown_run_is_an_error(open_store: Open) -> None:
    """Not an empty journal."""
    with pytest.raises(UnknownRun, match="no run 'nowhere'"):
        do(open_store().load("nowhere"))


def test_existing_runs_are_found_in_one_look(open_store: Open) -> None:
    """A chat asks for several runs at once, some of which do not exist."""
    store = open_store()
    for run_id in ("c.1", "c.2", "other"):
        do(append_events(store, run_id, 1, event("x")))

    found = do(those_of(store, ["c.1", "c.2", "c.3", "c.4"]))

    assert {"c.1", "c.2"} == {*found}
    assert not do(those_of(store, []))


def test_a_new_store_has_no_runs(open_store: Open) -> None:
    """And asking does not fail."""
    assert [] == list(do(open_store().runs()))


def test_what_was_loaded_does_not_change_afterwards(open_store: Open) -> None:
    """A reader holds a journal, not a window into it."""
    store = open_store()
    do(append_events(store, "r", 1, event("a")))
    loaded = do(store.load("r"))

    do(append_events(store, "r", 2, event("b")))

    assert [event("a")] == list(loaded)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(kept=st.lists(events, max_size=4))
def test_any_event_can_be_kept(open_store: Open, kept: list[Event]) -> None:
    """Whatever its texts and numbers."""
    store, run = open_store(), next(NUMBERS)
    for seq, one in enumerate(kept, 1):
        do(append_events(store, str(run), seq, one))

    if kept:
        assert kept == list(do(open_store().load(str(run))))


MEDIA = [b"", b"a" * 16_384, b"b" * 16_385, bytes(range(256)) * 1_000]


def shown(run_id: str, *media: bytes) -> Event:
    """Return the first event of a run that shows media to its model."""
    parts = tuple([MediaPart("image/png", Inline(data)) for data in media])
    return Started(1.0, run_id, "a graph", (UserMessage(parts),), Setup())


def test_media_of_any_size_come_back_byte_for_byte(open_store: Open) -> None:
    """Also those that several events, runs and forks share."""
    first, second = shown("r", *MEDIA, *MEDIA), shown("s", *MEDIA)
    store = open_store()
    do(append_events(store, "r", 1, first, event("a")))
    do(append_events(store, "s", 1, second))
    do(append_events(store, "s", 2, shown("s", *MEDIA)))
    do(fork(open_store(), "r", at=2, new_id="copy", children=()))

    later = open_store()
    assert [first, event("a")] == list(do(later.load("r")))
    assert [second, shown("s", *MEDIA)] == list(do(later.load("s")))
    assert [shown("copy", *MEDIA, *MEDIA), event("a")] == list(do(later.load("copy")))


def test_media_are_kept_once_for_all_runs(open_store: Open, tmp_path: Path) -> None:
    """Ten questions of a chat about one scan take the room of one scan."""
    scan = bytes(range(256)) * 4_000
    store = open_store()
    for number in range(10):
        do(append_events(store, str(number), 1, shown(str(number), scan)))
    if isinstance(store, SqliteStore):
        do(store.aclose())

    kept = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert kept < 1_124_000
    assert shown("9", scan) == do(open_store().load("9"))[0]


def test_the_memory_store_shares_the_bytes() -> None:
    """A copy for each event would fill the memory of a process with many runs."""
    store, scan = MemoryStore(), bytes(1_000_000)
    do(append_events(store, "r", 1, shown("r", scan)))

    (event,) = do(store.load("r"))

    assert isinstance(event, Started)
    (message,) = event.messages
    assert isinstance(message, UserMessage)
    part = message.content[0]
    assert isinstance(part, MediaPart)
    assert isinstance(part.source, Inline)
    assert scan is part.source.data


def test_an_event_is_not_kept_if_its_media_cannot_be(tmp_path: Path) -> None:
    """The bytes are written first, so no event ever names bytes that are not there."""
    (tmp_path / "blobs").write_text("no directory")
    store = JsonlStore(tmp_path)

    with pytest.raises(StoreError, match="cannot append"):
        do(append_events(store, "r", 1, shown("r", MEDIA[3])))

    assert [] == list(do(store.runs()))


def test_media_that_are_lost_or_damaged_are_named(tmp_path: Path) -> None:
    """A run that goes on with other bytes than before would be another run."""
    digest = Inline(MEDIA[3]).digest
    lines, database = JsonlStore(tmp_path), SqliteStore(tmp_path / "runs.db")
    for store in (lines, database):
        do(append_events(store, "r", 1, shown("r", MEDIA[3])))
    do(database.aclose())
    path = tmp_path / "blobs" / digest.removeprefix("sha256:")
    for sql, damage in (("UPDATE blob SET data = x'00'", b"x"), ("DELETE FROM blob", None)):
        path.unlink() if damage is None else path.write_bytes(damage)
        with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
            connection.execute(sql)
            connection.commit()
        for store in (JsonlStore(tmp_path), SqliteStore(tmp_path / "runs.db")):
            with pytest.raises(StoreError, match=digest):
                do(store.load("r"))


def test_a_run_that_is_driven_is_busy_for_everybody_else(open_leasing: OpenLeasing) -> None:
    """Also for another driver with the very same store object; until the run is released."""

    async def scenario() -> None:
        first, second = open_leasing(), open_leasing()
        await first.claim("r")
        await first.append("r", 1, started("r"))
        await first.claim("other")

        for store in (first, second):
            with pytest.raises(RunBusy, match="run 'r' is being driven"):
                await store.claim("r")
        await first.append("r", 2, event("still mine"))
        await first.release("r", "parked", ())
        await second.claim("r")
        with pytest.raises(RunBusy):
            await first.claim("r")
        await second.append("r", 3, event("mine"))
        await second.release("r", "done", ())
        await first.claim("r")

        assert 3 == len(await first.load("r"))

    do(scenario())


@pytest.mark.parametrize("run_id", ODD_IDS)
def test_any_run_id_can_be_claimed(open_leasing: OpenLeasing, run_id: str) -> None:
    """And a claim is no run: nothing is listed before its first event, or after its release."""

    async def scenario() -> None:
        store = open_leasing()
        await store.claim(run_id)
        with pytest.raises(RunBusy):
            await store.claim(run_id)
        assert [] == list(await store.runs())
        with pytest.raises(UnknownRun):
            await store.load(run_id)
        await store.release(run_id, "failed", ())
        assert [] == list(await store.runs())
        await store.append(run_id, 1, event("a"))

    do(scenario())


def test_what_is_not_claimed_cannot_be_released(open_leasing: OpenLeasing) -> None:
    """It would end somebody else's claim."""

    async def scenario() -> None:
        store = open_leasing()
        await store.append("r", 1, started("r"))
        with pytest.raises(StoreError, match="expected a claim of this store"):
            await store.release("r", "done", ())
        await store.claim("r")
        await store.release("r", "done", ())
        with pytest.raises(StoreError, match="expected a claim of this store"):
            await store.release("r", "done", ())

    do(scenario())


Leave = Callable[[str], Leasing]


@pytest.fixture(
    params=[
        "memory",
        "jsonl, just made",
        "jsonl, at its first bytes",
        "jsonl, at its end",
        "sqlite",
        "postgres",
    ]
)
def left_in_its_first_event(request: pytest.FixtureRequest, tmp_path: Path) -> Leave:
    """Return how to open a store whose last driver was killed within the first append of a run."""

    async def killed(store: Leasing, run_id: str) -> None:
        await store.claim(run_id)  # It is never released; and its event loop ends.

    def in_memory(run_id: str) -> Leasing:
        store = MemoryStore()
        do(killed(store, run_id))
        return store

    def in_lines(run_id: str) -> Leasing:
        do(killed(JsonlStore(tmp_path), run_id))
        whole = do(_line(tmp_path / "whole", run_id))
        sizes = {"made": 0, "bytes": 40, "end": len(whole) - 1}
        torn = whole[: sizes[request.param.rpartition(" ")[2]]]
        (tmp_path / f"{quote(run_id, safe='')}.jsonl").write_bytes(torn)
        return JsonlStore(tmp_path)

    def in_a_database(run_id: str) -> Leasing:
        do(killed(SqliteStore(tmp_path / "runs.db", clock=lambda: 1.0), run_id))
        return SqliteStore(tmp_path / "runs.db", clock=lambda: 1e3)

    def on_a_server(run_id: str) -> Leasing:
        dsn = database(request.getfixturevalue("postgres"))
        set_clock(dsn, 1.0)
        do(killed(PostgresStore(dsn), run_id))
        set_clock(dsn, 1e3)
        return PostgresStore(dsn)

    ways = {"memory": in_memory, "sqlite": in_a_database, "postgres": on_a_server}
    return ways.get(request.param, in_lines)


async def _line(folder: Path, run_id: str) -> bytes:
    """Return what a journal of JSON lines begins with."""
    await JsonlStore(folder).append(run_id, 1, started(run_id))
    return b"".join([path.read_bytes() for path in folder.iterdir()])  # noqa: ASYNC240 - a test


@pytest.mark.parametrize("run_id", ["r", "r/c0.0"])
def test_what_was_torn_in_its_first_event_was_no_run(
    left_in_its_first_event: Leave, run_id: str
) -> None:
    """A run or a child that has not begun is begun: anybody may, though its first driver died."""
    store = left_in_its_first_event(run_id)

    async def scenario() -> None:
        assert [] == list(await store.runs())
        with pytest.raises(UnknownRun, match=f"no run '{run_id}'"):
            await store.load(run_id)
        if isinstance(store, Catalog):
            assert [] == list(await store.overview())
        await store.claim(run_id)
        await store.append(run_id, 1, started(run_id))
        await store.release(run_id, "parked", ())
        assert ([run_id], (started(run_id),)) == (await store.runs(), await store.load(run_id))

    do(scenario())


def test_a_database_and_a_dictionary_tell_how_a_run_was_left(open_shared: OpenShared) -> None:
    """While it is driven it waits for nobody."""

    async def scenario() -> None:
        store = open_shared()
        await store.claim("r")
        assert [] == list(await store.overview())
        await store.append("r", 1, started("r"))
        seen = [(await store.overview())[0]]
        await store.release("r", "parked", [ASK])
        seen += await store.overview()
        await store.claim("r")
        seen += await store.overview()
        assert ["running", "parked", "running"] == [one.status for one in seen]
        # An approver may answer the second question while a driver acts on the first.
        assert [(), (ASK,), (ASK,)] == [one.asks for one in seen]

    do(scenario())


def test_an_answer_that_its_driver_has_not_read_wakes_the_run(open_shared: OpenShared) -> None:
    """It may come while the driver parks the run; a run that nobody wakes would wait for ever."""

    async def scenario() -> list[tuple[str, Sequence[str]]]:
        store, other = open_shared(), open_shared()
        seen: list[tuple[str, Sequence[str]]] = []

        async def look() -> None:
            ((record,), queue) = await store.overview(), await other.ready({"a graph"}, 9)
            seen.append((record.status, queue))

        await store.claim("r")
        await store.append("r", 1, started("r"))
        await other.post("r", "call", "one", "yes")
        await look()
        await store.release("r", "parked", [ASK])
        await look()
        await store.claim("r")
        await store.release("r", "parked", [ASK], seen=1)
        await look()
        await other.post("r", "call", "two", "no")
        await look()
        await other.post("r", "another", "three", "no")
        await look()
        return seen

    assert do(scenario()) == [
        ("running", []),
        ("ready", ["r"]),
        ("parked", []),
        ("parked", []),
        ("ready", ["r"]),
    ]


async def taken(
    store: Shared,
    tenants: Mapping[str, str],
    slots: int,
    *,
    most: int | None = None,
    queue: str | None = None,
) -> Sequence[str]:
    """Return the tenants of runs in the order in which a worker with these slots takes them.

    A run stays under way while one run for each of the other slots is taken.
    """
    order: list[str] = []
    under_way: list[str] = []
    while len(order) != most:
        if len(under_way) == slots:
            await store.release(under_way.pop(0), "done", ())
        found = await store.ready({"a graph"}, slots - len(under_way), queue=queue)
        if not found:
            break
        for run_id in found:
            await store.claim(run_id)
            under_way.append(run_id)
            order.append(tenants[run_id])
    for run_id in under_way:
        await store.release(run_id, "done", ())
    return order[:most]


def test_a_tenant_with_many_runs_does_not_keep_others_waiting(open_shared: OpenShared) -> None:
    """Nine tenants end within twice the turns that they take alone, and each has its share."""
    small = [f"small {at}" for at in range(9)]
    tenants = {f"big-{at}": "big" for at in range(120)}
    tenants |= {f"run-{at}-{name[-1]}": name for at in range(4) for name in small}

    async def scenario() -> Sequence[str]:
        store = open_shared()
        for run_id, tenant in tenants.items():
            await store.enlist(started(run_id), Submission(tenant))
        return await taken(store, tenants, 5)

    order = do(scenario())

    assert len(order) == len(tenants)
    last = max(at for at, tenant in enumerate(order) if tenant != "big")
    assert last < 2 * 9 * 4
    half = [order[: last // 2].count(name) for name in small]
    assert sum(half) ** 2 / (9 * sum(count**2 for count in half)) >= 0.95


def test_equal_tenants_have_equal_shares(open_shared: OpenShared) -> None:
    """Of 1 tenant with 1,000 runs and 9 with 10, the nine end within twice their time alone.

    The runs are counted as a worker takes them: no clock is asked.
    """
    tenants = {f"big-{at:03}": "big" for at in range(sized(200, 1000))}
    tenants |= {f"run-{at}-{name}": f"small {name}" for at in range(10) for name in range(9)}

    async def scenario() -> Sequence[str]:
        store = open_shared()
        for run_id, tenant in tenants.items():
            await store.enlist(started(run_id), Submission(tenant))
        return await taken(store, tenants, 10, most=2 * 9 * 10)

    order = do(scenario())

    counts = Counter(order)
    assert [counts[f"small {at}"] for at in range(9)] == [10] * 9
    early = Counter(order[:50]).values()  # While all of them wait.
    assert sum(early) ** 2 / (10 * sum(count**2 for count in early)) >= 0.95


def test_a_tenant_with_more_weight_has_more_turns(open_shared: OpenShared) -> None:
    """In its queue; a queue without weights shares evenly."""
    tenants = {
        f"{queue}-{at:02}-{name}": f"{queue} {name}"
        for at in range(20)
        for name in ("acme", "other")
        for queue in ("bulk", "default")
    }

    async def scenario() -> tuple[Counter[str], Counter[str]]:
        store = open_shared()
        await store.set_queues({"bulk": QueueLimits(weights={"bulk acme": 3.0})})
        for run_id, tenant in tenants.items():
            queue = run_id.partition("-")[0]
            await store.enlist(started(run_id), Submission(tenant, queue=queue))
        bulk = await taken(store, tenants, 8, most=16, queue="bulk")
        return Counter(bulk), Counter(await taken(store, tenants, 8, most=16, queue="default"))

    bulk, default = do(scenario())

    assert bulk == {"bulk acme": 12, "bulk other": 4}
    assert default == {"default acme": 8, "default other": 8}


def test_no_more_runs_of_a_queue_go_on_than_may(open_shared: OpenShared) -> None:
    """Whoever claims: a look shows no more than there is room, and a claim beyond it is refused."""

    async def scenario() -> list[object]:
        store, other = open_shared(), open_shared()
        await other.set_queues({"bulk": QueueLimits(running=2), "free": QueueLimits()})
        for run_id in ("a", "b", "c"):
            await store.enlist(started(run_id), Submission(queue="bulk"))
        await store.enlist(started("d"), Submission(queue="free"))
        await store.append("a/c0.0", 1, started("a/c0.0"))
        seen: list[object] = [await other.ready({"a graph"}, 9)]
        for run_id in ("a", "a/c0.0", "b", "d"):
            await store.claim(run_id)
        seen.append(await other.ready({"a graph"}, 9))
        with pytest.raises(QueueFull, match="queue 'bulk' has 2 run"):
            await other.claim("c")
        with pytest.raises(RunBusy):
            await other.claim("b")
        await store.release("a", "done", ())
        seen += [await other.ready({"a graph"}, 9), await other.ready({"a graph"}, 9, queue="free")]
        await other.claim("c")
        await other.set_queues({"bulk": QueueLimits()})
        await store.release("b", "interrupted", ())
        await store.claim("b")
        return seen

    assert do(scenario()) == [["a", "d", "b"], [], ["c"], []]


def test_a_priority_goes_before_the_tenants_turn(open_shared: OpenShared) -> None:
    """But not before runs that have begun: a run that was woken goes before all that is new."""

    async def scenario() -> Sequence[str]:
        store = open_shared()
        for run_id, priority in (("low", -1), ("plain", 0), ("urgent", 100), ("woken", -100)):
            tenant = "one" if run_id == "urgent" else "other"
            await store.enlist(started(run_id), Submission(tenant, priority))
        await store.enlist(started("busy"), Submission("one"))
        await store.claim("busy")
        await store.claim("woken")
        await store.release("woken", "parked", [ASK])
        await store.post("woken", "call", "one", "yes")
        with pytest.raises(StoreError, match="taken"):
            await store.enlist(started("busy"), Submission("other"))
        return await store.ready({"a graph"}, 9)

    assert list(do(scenario())) == ["woken", "urgent", "plain", "low"]


def test_a_parked_run_is_woken_when_its_time_has_come(open_shared: OpenShared) -> None:
    """It may wait for a model, not for a person; whoever has claimed it meanwhile goes on."""

    async def scenario() -> list[Sequence[str]]:
        store = open_shared()
        seen: list[Sequence[str]] = []
        for wake_s in (None, 3600.0, 0.0):
            await store.claim("r")
            if wake_s is None:
                await store.append("r", 1, started("r"))
            await store.release("r", "parked", (), wake_s=wake_s)
            seen.append(await store.ready({"a graph"}, 9))
        await store.claim("r")
        seen.append(await store.ready({"a graph"}, 9))
        return seen

    assert do(scenario()) == [[], [], ["r"], []]


def test_a_deadline_wakes_a_run_and_outlasts_its_drivers(open_shared: OpenShared) -> None:
    """Whatever became of the run meanwhile; a new run past its deadline goes before other new ones.

    Its place is there as soon as the run is: a killed submitter cannot have lost it.
    """

    async def scenario() -> list[object]:
        store, other = open_shared(), open_shared()
        await store.append("plain", 1, started("plain"))
        await store.enlist(started("late"), Submission(deadline_s=0.0))
        await store.enlist(started("later"), Submission(deadline_s=3600.0))
        seen: list[object] = [await other.ready({"a graph"}, 9)]
        for run_id in ("late", "later", "plain"):
            await other.claim(run_id)
            await other.release(run_id, None, ())  # A driver that could not go on.
            await store.claim(run_id)
            await store.release(run_id, "parked", [ASK], wake_s=60.0)
        seen.append([(await other.record(each)).remaining_s for each in ("plain", "later")])
        return [*seen, await other.ready({"a graph"}, 9)]

    assert do(scenario()) == [["late", "later", "plain"], [None, 3600.0], ["late"]]


async def _family(store: Shared) -> None:
    """Keep a root that is claimed, its child, and a grandchild that may be driven elsewhere."""
    await store.enlist(started("r"), Submission("tenant", 3))
    for run_id in ("r/a", "r/a/b"):
        await store.append(run_id, 1, started(run_id))
    await store.claim("r")
    await store.place("r/a/b")


def test_only_a_placed_child_is_taken(open_shared: OpenShared) -> None:
    """Before new runs: what has begun is ended first. To place it again changes nothing."""

    async def scenario() -> Sequence[str]:
        store = open_shared()
        await store.append("new", 1, started("new"))
        await _family(store)
        await store.place("r/a/b")
        with pytest.raises(UnknownRun):
            await store.place("r/c")
        assert not await store.ready({"another"}, 9)
        return await store.ready({"a graph"}, 9)

    assert do(scenario()) == ["r/a/b", "new"]


@pytest.mark.parametrize("is_parked", [True, False])
@pytest.mark.parametrize(
    ("status", "asks"), [("done", ()), ("failed", ()), ("cancelled", ()), ("parked", (ASK,))]
)
def test_what_a_placed_child_has_to_tell_wakes_the_run_that_waits(
    open_shared: OpenShared, status: ReleaseStatus, asks: Sequence[Ask], *, is_parked: bool
) -> None:
    """Whether that run has parked before or after: of the two releases, the second sees it."""

    async def scenario() -> Sequence[str]:
        store, other = open_shared(), open_shared()
        await _family(store)
        if is_parked:
            await store.release("r", "parked", ())
            assert await store.ready({"a graph"}, 9) == ["r/a/b"]
        await other.claim("r/a/b")
        await other.release("r/a/b", status, asks)
        if not is_parked:
            assert not await store.ready({"a graph"}, 9)
            await store.release("r", "parked", ())
        assert (await store.record("r/a")).status == "ready"
        return await store.ready({"a graph"}, 9)

    assert do(scenario()) == ["r"]


def test_a_placed_child_that_has_nothing_new_wakes_nobody(open_shared: OpenShared) -> None:
    """It waits for a model, was left, or asks what it has asked before."""

    async def scenario() -> list[str]:
        store = open_shared()
        await _family(store)
        await store.claim("r/a/b")
        await store.release("r/a/b", "parked", [ASK])
        seen = len(await store.posted("r"))
        await store.release("r", "parked", (), seen=seen)
        for status in ("interrupted", "blocked", "parked"):
            await store.claim("r/a/b")
            await store.release("r/a/b", status, [ASK], wake_s=3600.0)
        assert len(await store.posted("r")) == seen == 1
        await store.claim("r")
        await store.release("r", "done", ())
        await store.claim("r/a/b")
        await store.release("r/a/b", "done", ())
        return [(await store.record(run_id)).status for run_id in ("r", "r/a/b")]

    assert do(scenario()) == ["done", "done"]


def test_no_change_of_a_meter_is_lost(open_shared: OpenShared) -> None:
    """Two processes change it side by side; each sees what the other has left."""
    stores = [open_shared(), open_shared()]

    async def add(store: Shared) -> float:
        def change(known: Mapping[str, float], _: float) -> tuple[dict[str, float], float]:
            pages = known.get("pages", 0.0) + 1
            return {"pages": pages}, pages

        return await store.metered(["pages"], change)

    async def scenario() -> float:
        await asyncio.gather(*[add(stores[at % 2]) for at in range(40)])
        read = await stores[0].metered(["pages", "more"], lambda known, _: ({}, known))
        assert not read.get("more")
        return read["pages"]

    assert do(scenario()) == 40


def test_interrupted_runs_go_first_and_new_ones_last(open_shared: OpenShared) -> None:
    """What has begun is ended before more begins; a child run is its root's to drive."""

    async def scenario() -> Sequence[str]:
        store = open_shared()
        for run_id in ("new", "woken", "left", "left/c0.0", "expired", "done", "blocked", "live"):
            await store.append(run_id, 1, started(run_id))
        for run_id, status, asks in (
            ("woken", "parked", [ASK]),
            ("left", "interrupted", []),
            ("left/c0.0", "interrupted", []),
            ("expired", "parked", [evolve(ASK, expires_at=1.0)]),
            ("done", "done", []),
            ("blocked", "blocked", []),
        ):
            await store.claim(run_id)
            await store.release(run_id, convert(status, ReleaseStatus), asks)
        await store.claim("live")
        await store.post("woken", "call", "one", "yes")
        assert await store.ready({"another graph"}, 9) == []
        assert await store.ready({"a graph"}, 1) == ["left"]
        assert {*await store.ready({"a graph"}, 2, revisions=["new"])} == {"left", "blocked"}
        return await store.ready({"a graph"}, 9)

    first, *middle, last = do(scenario())
    assert (first, {*middle}, last) == ("left", {"woken", "expired"}, "new")


def test_a_record_tells_why_its_run_ended(open_shared: OpenShared) -> None:
    """A list of a thousand runs that are over reads no journal."""

    async def scenario() -> None:
        store = open_shared()
        await store.append("r", 1, started("r"))
        await store.claim("r")
        await store.release("r", "done", (), ending="budget (budget.usd)")
        assert (await store.record("r")).ending == "budget (budget.usd)"
        await store.claim("r")
        await store.release("r", None, ())
        assert (await store.record("r")).ending == "budget (budget.usd)"
        await store.claim("r")
        await store.release("r", "done", ())
        assert (await store.record("r")).ending == ""

    do(scenario())


def test_a_blocked_run_waits_for_code_that_has_not_refused_it(open_shared: OpenShared) -> None:
    """Its record tells why, for each code; code that has gone on with it forgets all of that."""

    async def scenario() -> None:
        store = open_shared()
        await store.append("r", 1, started("r"))
        for refusal in (Refusal("new", "no tool"), Refusal("other", "no node", 3)):
            await store.claim("r")
            await store.release("r", "blocked", (), refusal=refusal)
        record = await store.record("r")
        assert (record.status, [one.reason for one in record.refusals]) == (
            "blocked",
            ["no tool", "no node"],
        )
        for revisions, found in (([], []), (["new"], []), (["new", "x"], []), (["old"], ["r"])):
            assert await store.ready({"a graph"}, 9, revisions=revisions) == found
        await store.retry(["old"])
        assert await store.ready({"a graph"}, 9, revisions=["new"]) == []
        await store.retry(["new"])
        assert await store.ready({"a graph"}, 9, revisions=["new"]) == ["r"]
        await store.claim("r")
        await store.release("r", "parked", ())
        assert (await store.record("r")).refusals == ()

    do(scenario())


def test_a_pinned_look_finds_new_runs_and_those_of_its_revisions(open_shared: OpenShared) -> None:
    """The first revision that a journal tells stays that of the run, and of its placed children."""

    async def scenario() -> list[object]:
        store = open_shared()
        for run_id in ("new", "one", "two", "blocked", "due"):
            await store.append(run_id, 1, started(run_id))
        for run_id in ("one", "two", "blocked", "due"):
            await store.claim(run_id)
            code = "2" if run_id == "two" else "1"
            await store.append(run_id, 2, Resumed(2.0, code), Resumed(3.0, "3"))
            await store.append(run_id, 4, Resumed(4.0, "3"))
        await store.append("one/c0.0", 1, started("one/c0.0"))
        await store.place("one/c0.0")
        await store.release("one", "interrupted", ())
        await store.release("two", "interrupted", ())
        await store.release("due", "parked", (), wake_s=0.0)
        await store.release("blocked", "blocked", (), refusal=Refusal("2", "no tool"))
        wanted = [("1",), ("2",), ("3", "1"), ("4",)]
        return [
            [(one.run_id, one.revision) for one in await store.overview()],
            *[{*await store.ready({"a graph"}, 9, revisions=each, pinned=True)} for each in wanted],
            len(await store.ready({"a graph"}, 9, revisions=("4",))),
        ]

    of_first = {"one", "one/c0.0", "blocked", "due", "new"}
    assert do(scenario()) == [
        [*zip(("new", "one", "two", "blocked", "due", "one/c0.0"), ("", *"12111"), strict=True)],
        *(of_first, {"two", "new"}, of_first, {"new"}, 6),
    ]


def test_the_record_of_a_run_is_found_by_its_id(open_shared: OpenShared) -> None:
    """Also a child's, which tells its parent; a run that is only claimed is none."""

    async def scenario() -> None:
        store = open_shared()
        for run_id in ("r", "r/c0.0", "r0"):
            await store.append(run_id, 1, started(run_id))
        await store.claim("claimed")
        assert [await store.record(one.run_id) for one in await store.overview()] == [
            *await store.overview()
        ]
        assert (await store.record("r/c0.0")).parent == "r"
        for unknown in ("claimed", "r/c0", ""):
            with pytest.raises(UnknownRun, match=repr(unknown)):
                await store.record(unknown)

    do(scenario())


def test_pages_are_all_runs_in_their_order(open_shared: OpenShared) -> None:
    """Whatever the size of a page is; a page that follows no run is refused."""

    async def scenario() -> None:
        store = open_shared()
        run_ids = [*(f"run-{at}" for at in range(5)), "run-1/c0.0"]
        for run_id in run_ids:
            await store.append(run_id, 1, started(run_id))
        for run_id in run_ids[1:4]:
            await store.claim(run_id)
            if run_id != "run-3":
                await store.release(run_id, "parked", [ASK])
        for statuses, found in (
            ((), run_ids),
            (("parked",), ["run-1", "run-2"]),
            (("running",), ["run-3"]),
            (("running", "ready"), ["run-0", "run-3", "run-4", "run-1/c0.0"]),
            (("done",), []),
        ):
            wanted = convert(statuses, tuple[RunStatus, ...])
            for size in (1, 2, 9):
                pages: list[str] = []
                while page := await store.page(
                    wanted, "a graph", after=pages[-1] if pages else "", limit=size
                ):
                    assert len(page) <= size
                    assert [*page] == [await store.record(one.run_id) for one in page]
                    pages += [one.run_id for one in page]
                assert pages == found
        assert not await store.page((), "another graph", after="", limit=9)
        with pytest.raises(UnknownRun, match="'gone'"):
            await store.page((), None, after="gone", limit=9)

    do(scenario())


def test_the_first_answer_wins(open_shared: OpenShared) -> None:
    """Two people approve at once; a browser sends its form twice. The run hears one answer."""
    store = open_shared()
    do(append_events(store, "r", 1, started("r")))

    assert "accepted" == do(store.post("r", "call", "one", "yes"))
    assert "duplicate" == do(open_shared().post("r", "call", "one", "yes"))
    assert "answered" == do(open_shared().post("r", "call", "two", "no"))
    assert "accepted" == do(store.post("r", "other", "two", "no"))

    assert {"call": "yes", "other": "no"} == do(open_shared().posted("r"))


def test_nobody_answers_a_run_that_is_not_there(open_shared: OpenShared) -> None:
    """A misspelled id must not look like an approval."""
    store = open_shared()

    with pytest.raises(UnknownRun, match="no run 'nowhere'"):
        do(store.post("nowhere", "call", "one", "yes"))

    assert {} == do(store.posted("nowhere"))
    assert [] == list(do(store.runs()))


def test_an_overview_lists_runs_as_they_were_made(open_shared: OpenShared) -> None:
    """With their graph, their length, and whose child they are; not in alphabetical order."""
    store = open_shared()
    for run_id in ("z", "z/c1.0", "orphan/c1.0", "a"):
        do(append_events(store, run_id, 1, started(run_id)))
    do(append_events(store, "z", 2, event("…")))
    do(store.set_target("z", "module:agent"))

    records = do(open_shared().overview())

    assert ["z", "z/c1.0", "orphan/c1.0", "a"] == [each.run_id for each in records]
    assert ["", "z", "", ""] == [each.parent for each in records]
    assert [2, 1, 1, 1] == [each.events for each in records]
    assert ["module:agent", "", "", ""] == [each.target for each in records]
    assert {("a graph", "ready", 1.0, 1.0)} == {
        (each.graph, each.status, each.created_at, each.updated_at) for each in records
    }


@pytest.mark.parametrize("others", [("b/c", "b", "b.", "b0", "b/d/e", "b/", "ab"), ()])
def test_an_overview_of_one_run_has_it_and_all_below_it(
    open_shared: OpenShared, others: tuple[str, ...]
) -> None:
    """As the whole overview tells of them; however many others there are, nobody looks at them."""
    store = open_shared()
    for run_id in others:
        do(append_events(store, run_id, 1, started(run_id)))

    every = do(store.overview())
    for root in ("b", "b/c", "b/d", "ab", "a", ""):
        within = [one for one in every if one.run_id == root or one.run_id.startswith(f"{root}/")]
        assert within == list(do(store.overview(root)))


def test_a_target_needs_a_run(open_shared: OpenShared) -> None:
    """As an answer does."""
    with pytest.raises(UnknownRun, match="no run 'nowhere'"):
        do(open_shared().set_target("nowhere", "module:agent"))


def test_journals_are_kept_all_or_none(open_shared: OpenShared) -> None:
    """Half a copy would be a run that never was."""
    store = open_shared()
    do(append_events(store, "taken", 1, event("a")))

    with pytest.raises(StoreError, match="this run id is taken"):
        do(store.append_all({"new": [event("x"), event("y")], "taken": [event("x")]}))
    assert ["taken"] == list(do(store.runs()))
    do(store.append_all({"new": [event("x"), event("y")], "newer": [event("z")]}))

    assert [event("x"), event("y")] == list(do(open_shared().load("new")))
    assert ["new", "newer", "taken"] == list(do(open_shared().runs()))


RUN_IDS = st.sampled_from(["a", "a/b", "a/b/c", "b", "c"])
SHORT = st.sampled_from(["x", "y"])
REFUSALS = (Refusal("new", "no tool"), Refusal("other", "no node", 3), Refusal("new", "no model"))
PAGED: tuple[tuple[RunStatus, ...], ...] = (
    *((), ("parked", "ready")),
    *(("running", "interrupted"), ("blocked",)),
)
OPERATIONS = st.one_of(
    st.tuples(st.just("append"), RUN_IDS, st.integers(1, 4)),
    st.tuples(st.just("append_all"), RUN_IDS, RUN_IDS),
    st.tuples(st.just("post"), RUN_IDS, SHORT, SHORT, SHORT),
    st.tuples(st.just("set_target"), RUN_IDS, SHORT),
    st.tuples(st.just("fork"), RUN_IDS, st.integers(0, 3), RUN_IDS),
    st.tuples(st.just("claim"), RUN_IDS),
    st.tuples(st.just("meter"), SHORT, st.integers(1, 4)),
    st.tuples(st.just("enlist"), RUN_IDS, st.integers(-1, 1), SHORT),
    st.tuples(st.just("retry"), st.sampled_from(["new", "other"])),
    st.tuples(
        st.just("release"),
        RUN_IDS,
        st.sampled_from((*get_args(ReleaseStatus), "")),
        st.integers(0, 2),
    ),
)
Operation = (
    tuple[str, str]
    | tuple[str, str, int]
    | tuple[str, str, str]
    | tuple[str, str, str, str, str]
    | tuple[str, str, int, str]
    | tuple[str, str, str, int]
)


async def metered(store: Shared, name: str, by: int) -> object:
    """Add to a meter, and return what was known before, and when."""
    return await store.metered(
        ["x", "y"], lambda known, now: ({name: known.get(name, 0) + by}, (known, now))
    )


async def released(store: Shared, run_id: str, status: str, seen: int) -> None:
    """Release a run in one of several ways."""
    told = convert(status, ReleaseStatus) if status else None
    asks = [ASK, evolve(ASK, expires_at=7.0)] if status == "parked" else []
    wake_s = (None, 3.0, 0.0)[seen]
    refusal = REFUSALS[seen] if status == "blocked" else None
    await store.release(run_id, told, asks[seen:], seen=seen, wake_s=wake_s, refusal=refusal)


async def all_of(store: Shared) -> object:
    """Return all that can be told of a store."""
    run_ids = await store.runs()
    journals = {run_id: tuple(await store.load(run_id)) for run_id in run_ids}
    answers = {run_id: await store.posted(run_id) for run_id in run_ids}
    queue = await store.ready({"a graph"}, 9, revisions=["new"] if len(run_ids) > 2 else ())
    records = [await store.record(run_id) for run_id in run_ids]
    pages = [
        tuple(await store.page(statuses, "a graph", after=after, limit=2))
        for statuses in PAGED
        for after in ("", *run_ids[:1])
    ]
    return journals, answers, records, pages, await store.overview(), list(queue)


async def outcome(store: Shared, operation: Operation) -> object:  # noqa: C901 - a case each
    """Do one operation, and return all that can be told of the store afterwards."""
    said: object = None
    try:
        match operation:
            case ("append", run_id, int(seq)):
                await store.append(run_id, seq, started(run_id) if seq == 1 else event(str(seq)))
            case ("append_all", first, str(second)):
                await store.append_all({first: [started(first)], second: [event("x"), event("y")]})
            case ("post", run_id, key, signal_id, data):
                said = await store.post(run_id, key, signal_id, data)
            case ("set_target", run_id, str(target)):
                await store.set_target(run_id, target)
            case ("meter", name, int(by)):
                said = await metered(store, name, by)
            case ("fork", run_id, int(at), str(new_id)):
                await fork(store, run_id, at=at, new_id=new_id, children=["b"])
            case ("claim", run_id):
                await store.claim(run_id)
            case ("release", run_id, str(status), int(seen)):
                await released(store, run_id, status, seen)
            case ("enlist", run_id, int(priority), str(tenant)):
                deadline_s = (None, 2.0, 0.5)[priority]
                await store.enlist(started(run_id), Submission(tenant, priority, deadline_s))
            case ("retry", revision):
                await store.retry([revision])
            case _:
                raise AssertionError(operation)
    except StoreError as error:
        said = type(error), "taken" in str(error), "no run" in str(error)
    return said, await all_of(store)


@settings(max_examples=60, deadline=None)
@given(operations=st.lists(OPERATIONS, min_size=3, max_size=15))
@example([("append", "a", 1), ("claim", "a/b"), ("enlist", "a/b", 1, "x")])
def test_a_database_does_what_a_dictionary_does(operations: list[Operation]) -> None:
    """The store in memory is small enough to be believed: it is the other one's specification."""
    now = itertools.count()
    times = {"now": 0.0}

    async def compare(path: Path) -> None:
        memory = MemoryStore(clock=lambda: times["now"])
        sqlite = SqliteStore(path, clock=lambda: times["now"], durability="process")
        for operation in operations:
            times["now"] = float(next(now))
            assert await outcome(memory, operation) == await outcome(sqlite, operation)
        await sqlite.aclose()

    with tempfile.TemporaryDirectory() as directory:
        do(compare(Path(directory) / "runs.db"))


@settings(
    max_examples=sized(15, 500),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(operations=st.lists(OPERATIONS, min_size=3, max_size=12))
def test_a_server_does_what_a_dictionary_does(postgres: str, operations: list[Operation]) -> None:
    """As the database in a file does; its clock is the server's, which stands still here."""

    async def compare(dsn: str) -> None:
        memory = MemoryStore(clock=lambda: 7.0)
        async with aclosing(PostgresStore(dsn, clock=lambda: 7.0)) as server:
            for operation in operations:
                assert await outcome(memory, operation) == await outcome(server, operation)

    set_clock(postgres, 7.0)
    try:
        do(compare(postgres))
    finally:
        emptied(postgres)
