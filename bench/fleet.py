"""The fleet: what workers on PostgreSQL cost, and how soon they act. One run prints all figures.

    pip install -e '.[dev]'
    python -m bench.fleet                  all of them, some minutes
    python -m bench.fleet hop cost         these
    python -m bench.fleet --small          each of them in seconds, to see that it runs

The server waits for its disk, as one that keeps money does. Workers are processes; CPU is what the
system counts for them (Linux). The aims are those of two idle cores.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final, LiteralString, TypeAlias

import psycopg

from graphloop.stores import MemoryStore, PostgresStore, Store
from graphloop.workers import Client, Streamed
from tests.postgres_server import Server, created

from .fleet_worker import AGENTS, LATE_S, PIECE_S, PIECES, TURNS
from .journal import EVENT
from .measure import Row
from .report import as_text, where

__all__ = ["BENCHES", "SMALL", "Fleet", "main"]

Worker: TypeAlias = asyncio.subprocess.Process

LOOK_S: Final = 0.1
SLOTS: Final = 100
LEASE_S: Final = 15.0
SETTLE_S: Final = 2.0
"""The server's counts of rows are a second late."""

LOG: Final = "SELECT pg_current_wal_lsn() - '0/0'"
ROWS: Final = (
    "SELECT tup_inserted + tup_updated FROM pg_stat_database WHERE datname = current_database()"
)
SIZE: Final = (
    "SELECT pg_total_relation_size('graphloop.run') + pg_total_relation_size('graphloop.entry')"
)
PARKED: Final = b"""
WITH made AS (INSERT INTO graphloop.run(run_id, graph, agent, status, epoch, begun)
  SELECT 'p-' || n, 'asks', 'asks', 'parked', 1, true FROM generate_series(1, %s) n
  RETURNING number)
INSERT INTO graphloop.entry(run, seq, kind, data)
  SELECT number, seq, 'ModelReplied', convert_to(repeat('x', 395), 'UTF8')
  FROM made CROSS JOIN generate_series(1, 10) seq"""
CHILDREN: Final = (
    "SELECT count(*) FROM graphloop.run WHERE strpos(run_id, '/') > 0 AND owner IS NOT NULL"
)
LIMITS: Final = {"Pull": (3.5, 2.8, 4.4, 1.0, 600), "Dbos": (6.0, 3.5, 5.7, 8.0, 500)}


@dataclass(frozen=True, slots=True)
class Fleet:
    """An empty database of a server, and how much is measured."""

    dsn: str
    runs: int = 200
    hops: int = 60
    kills: int = 5
    parked: int = 100_000
    late: int = 1000
    streams: int = 20
    idle_s: float = 5.0
    rounds: int = 5

    def asked(self, query: LiteralString, *values: str) -> float:
        """Return the only value of a query."""
        with psycopg.connect(self.dsn, autocommit=True) as link:
            found = link.execute(query, values or None).fetchone()
        assert found is not None, "the query has one row"
        return float(found[0])

    def last(self, kind: str) -> Mapping[str, float]:
        """Return the server's time of the last event of a kind, of each run that has one."""
        query = (
            "SELECT run_id, max(ts) FROM graphloop.entry JOIN graphloop.run ON number = run "
            "WHERE kind = %s GROUP BY run_id"
        )
        with psycopg.connect(self.dsn) as link:
            return dict(link.execute(query, (kind,)).fetchall())

    async def started(self, runs: int, after: float) -> Sequence[float]:
        """Wait until drivers have taken so many runs after a time, and return when."""
        while True:
            found = [at for at in self.last("Resumed").values() if at > after]
            if len(found) >= runs:
                return found
            await asyncio.sleep(LOOK_S)

    async def submit(self, agent: str, runs: int, name: str = "run") -> Sequence[str]:
        """Submit runs of an agent."""
        store = PostgresStore(self.dsn)
        listed = AGENTS[agent]().runs(store)
        await store.retry(())  # A write creates the tables.
        found = [await listed.submit("Go.", run_id=f"{name}-{at}") for at in range(runs)]
        await store.aclose()
        return found

    async def until(self, count: int, status: str) -> None:
        """Wait until so many runs have a status."""
        query = "SELECT count(*) FROM graphloop.run WHERE status = %s AND owner IS NULL"
        while self.asked(query, status) < count:  # noqa: ASYNC110 - other processes do it
            await asyncio.sleep(LOOK_S)

    @asynccontextmanager
    async def worker(self, agent: str, engine: str = "Pull") -> AsyncGenerator[Worker]:
        """Start a worker, wait until it serves, and end it."""
        before = self.served()
        words = "-m", "bench.fleet_worker", self.dsn, engine, agent
        worker = await asyncio.create_subprocess_exec(sys.executable, *words, stderr=DEVNULL)
        try:
            while self.served() <= before:  # noqa: ASYNC110 - another process does it
                await asyncio.sleep(LOOK_S)
            yield worker
        finally:
            if worker.returncode is None:
                worker.send_signal(signal.SIGCONT)
                worker.terminate()
            await worker.wait()

    def served(self) -> int:
        """Return how many live workers have told what they serve."""
        return int(
            self.asked(
                "SELECT count(*) FROM graphloop.worker WHERE serves <> '{}' "
                "AND name IN (SELECT name FROM graphloop.live)"
            )
        )


def row(bench: str, what: str, found: float, aim: float | None, unit: str) -> Row:
    """Return a row whose aim is at most a number."""
    told = "" if aim is None else f"≤ {aim:g} {unit}"
    return Row(bench, what, f"{found:.3g} {unit}", told, None if aim is None else found <= aim)


def late_of(values: Sequence[float]) -> float:
    """Return the 95th percentile."""
    return quantiles(values, n=20, method="inclusive")[-1]


def cpu_s(worker: Worker) -> float:
    """Return the processor time of a worker so far."""
    fields = Path(f"/proc/{worker.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(worker: Worker) -> float:
    """Return the memory of a worker."""
    pages = int(Path(f"/proc/{worker.pid}/statm").read_text("utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def hop(fleet: Fleet, engine: str, aims: tuple[float, float]) -> list[Row]:
    """Measure the time from an approval to its event in the journal, one run after the other."""
    run_ids = await fleet.submit("asks", fleet.hops)
    said = dict[str, float]()
    async with fleet.worker("asks", engine), Client(fleet.dsn, poll_s=LOOK_S) as client:
        await fleet.until(fleet.hops, "parked")
        for run_id in run_ids:
            said[run_id] = time.time()
            await client.approve(run_id, "c0.0")
            await client.result(run_id)
    waits = [1000 * (at - said[run_id]) for run_id, at in fleet.last("Decided").items()]
    name = f"5 hop, {engine}"
    return [
        row(name, "approve to Decided, median", median(waits), aims[0], "ms"),
        row(name, "approve to Decided, 95th percentile", late_of(waits), aims[1], "ms"),
    ]


async def recovery(fleet: Fleet) -> list[Row]:
    """Measure the time until another worker goes on with the runs of one that is gone."""
    name, found, known = "4 recovery", dict[str, list[float]](), 0.0
    runs = len(await fleet.submit("waits", 2 * fleet.kills))
    async with AsyncExitStack() as workers:
        one = await workers.enter_async_context(fleet.worker("waits"))
        for sign in ("KILL",) * fleet.kills + ("TERM",) * fleet.kills + ("STOP",):
            other = await workers.enter_async_context(fleet.worker("waits"))
            await fleet.started(runs, known)
            known = time.time()
            one.send_signal(getattr(signal, f"SIG{sign}"))
            resumed = await fleet.started(runs, known)
            found.setdefault(sign, []).extend(at - known for at in resumed)
            if sign != "STOP":
                await one.wait()
            one = other
    return [
        row(name, "kill -9 to resumed, 95th percentile", late_of(found["KILL"]), 1.0, "s"),
        row(name, "SIGTERM to resumed, the latest", max(found["TERM"]), 1.0, "s"),
        row(name, "SIGSTOP to resumed, the latest", max(found["STOP"]), LEASE_S + 1, "s"),
    ]


async def families(fleet: Fleet) -> list[Row]:
    """Measure the time until a cancelled run has ended with its child, which another drives."""
    run_ids, said = await fleet.submit("parent", fleet.kills), dict[str, float]()
    async with AsyncExitStack() as workers, Client(fleet.dsn) as client:
        for _ in range(2):
            await workers.enter_async_context(fleet.worker("parent"))
        while fleet.asked(CHILDREN) < fleet.kills:  # noqa: ASYNC110 - other processes do it
            await asyncio.sleep(LOOK_S)
        for run_id in run_ids:
            said[run_id] = time.time()
            await client.cancel(run_id)
            await client.result(run_id)
    ended = fleet.last("Cancelled")
    waits = [at - said[run_id.partition("/")[0]] for run_id, at in ended.items()]
    name = f"{len(said)} families, cancelled until a run has ended, the latest"
    return [row("8 children", name, max(waits), 1.0, "s")]


async def cost(fleet: Fleet, engine: str) -> list[Row]:
    """Measure what a turn costs a worker and its server, and what a worker that waits costs."""
    name, turns, most = f"6 cost, {engine}", fleet.runs * TURNS, LIMITS[engine]
    memory_s, _ = await driven(MemoryStore(), fleet.runs, 1)
    await fleet.submit("turns", 1, "first")
    async with fleet.worker("turns", engine) as worker:
        await fleet.until(1, "done")  # An engine may have tables to make.
        log, rows, cpu = fleet.asked(LOG), fleet.asked(ROWS), cpu_s(worker)
        begins = time.time()
        await fleet.submit("turns", fleet.runs)
        await fleet.until(fleet.runs + 1, "done")
        cpu, log = cpu_s(worker) - cpu, fleet.asked(LOG) - log
        idle = cpu_s(worker)
        await asyncio.sleep(fleet.idle_s)
        idle = (cpu_s(worker) - idle) / fleet.idle_s
    await asyncio.sleep(SETTLE_S)
    rows = fleet.asked(ROWS) - rows
    wall = max(fleet.last("ModelReplied").values()) - begins
    return [
        row(name, "worker's CPU a turn", 1000 * cpu / turns, None, "ms"),
        row(name, "worker's CPU a turn over memory store's", cpu / turns / memory_s, most[0], "x"),
        row(name, "write-ahead log a turn", log / turns / 1000, most[1], "kB"),
        row(name, "rows inserted and updated a turn", rows / turns, most[2], ""),
        row(name, "idle worker", 100 * idle, most[3], "% of a core"),
        Row(name, "turns a second", f"{turns / wall:.0f}", f"≥ {most[4]}", turns / wall >= most[4]),
    ]


async def driven(store: Store, runs: int, at_once: int) -> tuple[float, float]:
    """Drive runs in this process; return the CPU seconds of a turn, and the turns a second."""
    agent, room = AGENTS["turns"]().with_options(store=store), asyncio.Semaphore(at_once)

    async def drive() -> None:
        async with room:
            await agent.generate("Go.")

    cpu, begin, turns = time.process_time(), time.perf_counter(), runs * TURNS
    await asyncio.gather(*[drive() for _ in range(runs)])
    return (time.process_time() - cpu) / turns, turns / (time.perf_counter() - begin)


async def direct(fleet: Fleet) -> list[Row]:
    """Measure runs that the process drives which begins them, beside the same runs in memory."""
    name, overs, rates, store = "6 cost, direct", list[float](), list[float](), MemoryStore()
    async with aclosing(PostgresStore(fleet.dsn)) as durable:
        await driven(durable, 1, 1)  # It creates the tables.
        for _ in range(fleet.rounds):
            cpu_s, rate = await driven(durable, fleet.runs, SLOTS)
            overs.append(cpu_s / (await driven(store, fleet.runs, SLOTS))[0])
            rates.append(rate)
    rate = median(rates)
    return [
        row(name, "CPU a turn over memory store's", median(overs), 2.2, "x"),
        Row(name, "turns a second", f"{rate:.0f}", "≥ 900", rate >= 900),
    ]


async def parked(fleet: Fleet) -> list[Row]:
    """Measure looks, answers and lists among many runs that wait for people."""
    store, name, took = PostgresStore(fleet.dsn), "7 parked", dict[str, list[float]]()
    await store.retry(())  # A write creates the tables.
    before = fleet.asked(SIZE)
    async with fleet.worker("asks") as worker:
        memory = memory_mb(worker)
        with psycopg.connect(fleet.dsn, autocommit=True) as link:
            link.execute(PARKED, (fleet.parked,))
            link.execute("VACUUM ANALYZE graphloop.run, graphloop.entry")
        await asyncio.sleep(fleet.idle_s)  # It looks meanwhile.
        memory = memory_mb(worker) - memory
    size = (fleet.asked(SIZE) - before) / fleet.parked / 1000
    actions: Mapping[str, Callable[[int], Awaitable[object]]] = {
        "take": lambda _: store.ready(["asks"], 100, revisions=["c"]),
        "post": lambda at: store.post(f"p-{at + 1}", "c0.0", "s", "{}"),
        "list": lambda _: store.page(["parked"], None, after="", limit=50),
    }
    for what, action in actions.items():
        for at in range(fleet.hops):
            begin = time.perf_counter()
            await action(at)
            took.setdefault(what, []).append(1000 * (time.perf_counter() - begin))
    await store.aclose()
    return [
        row(name, "a look for runs that wait, median", median(took["take"]), 1.0, "ms"),
        row(name, "an answer is stored, median", median(took["post"]), 10.0, "ms"),
        row(name, "50 parked runs are listed, median", median(took["list"]), 50.0, "ms"),
        row(name, "a run of 10 events of 395 bytes", size, 7.0, "kB"),
        row(name, "a worker's memory beside them, more", memory, 1.0, "MB"),
    ]


async def timers(fleet: Fleet) -> list[Row]:
    """Measure how soon questions that expired while no worker lived are denied."""
    await fleet.submit("late", fleet.late)
    async with fleet.worker("late"):
        await fleet.until(fleet.late, "parked")
    await asyncio.sleep(LATE_S)
    async with fleet.worker("late"):
        serves = time.time()
        await fleet.until(fleet.late, "done")
    denied = fleet.last("Decided").values()
    last, first = max(denied), min(denied)
    return [
        row(
            "13 timers", f"{fleet.late} expired asks, after a worker serves", last - serves, 2, "s"
        ),
        row("13 timers", "the same, after the first denial", last - first, None, "s"),
    ]


async def deltas(fleet: Fleet) -> list[Row]:
    """Measure the age of each text when its follower has it."""
    ages = list[float]()

    async def follow(client: Client, run_id: str) -> None:
        async with aclosing(client.stream(run_id, deltas=True)) as parts:
            async for part in parts:
                if isinstance(part, Streamed):
                    now = time.time()
                    ages.extend(1000 * (now - float(said)) for said in part.text.split())

    run_ids = await fleet.submit("speaks", fleet.streams)
    async with Client(fleet.dsn) as client:
        following = [asyncio.create_task(follow(client, run_id)) for run_id in run_ids]
        async with fleet.worker("speaks"):
            await asyncio.gather(*following)
            age, heard, moved = median(ages), len(ages) / fleet.streams / PIECES, list[float]()
            for at in range(fleet.rounds):
                took = dict[bool, float]()
                for is_followed in (at % 2 == 0, at % 2 == 1):
                    run_ids = await fleet.submit("speaks", fleet.streams, f"{at}-{is_followed}")
                    watched = run_ids if is_followed else ()
                    following = [asyncio.create_task(follow(client, each)) for each in watched]
                    took[is_followed] = await append_ms(fleet.dsn, f"appends-{at}-{is_followed}")
                    await asyncio.gather(*following)
                moved.append(100 * (took[True] / took[False] - 1))
    return [
        row("11 deltas", f"age in {fleet.streams} streams, median", age, 40.0, "ms"),
        row("11 deltas", "heard of all that was said", 100 * heard, None, "%"),
        row("11 deltas", "an append's median beside them, over without", median(moved), 10.0, "%"),
    ]


async def append_ms(dsn: str, run_id: str) -> float:
    """Return the median of the appends that one run makes while models speak."""
    took, until = list[float](), time.perf_counter() + PIECES * PIECE_S
    async with aclosing(PostgresStore(dsn)) as store:
        await store.claim(run_id)
        while (begin := time.perf_counter()) < until:
            await store.append(run_id, len(took) + 1, EVENT)
            took.append(1000 * (time.perf_counter() - begin))
    return median(took)


BENCHES: Final[Mapping[str, Callable[[Fleet], Coroutine[Any, Any, list[Row]]]]] = {
    "recovery": recovery,
    "families": families,
    "hop": partial(hop, engine="Pull", aims=(15, 60)),
    "hop-dbos": partial(hop, engine="Dbos", aims=(110, 250)),
    "direct": direct,
    "cost": partial(cost, engine="Pull"),
    "cost-dbos": partial(cost, engine="Dbos"),
    "parked": parked,
    "deltas": deltas,
    "timers": timers,
}
SMALL: Final = {
    "runs": 4,
    "hops": 3,
    "kills": 1,
    "parked": 200,
    "late": 5,
    "streams": 2,
    "rounds": 1,
}


def main(arguments: Sequence[str]) -> None:
    """Run what `arguments` name, all by default, each on a database of its own."""
    parser = argparse.ArgumentParser(prog="python -m bench.fleet", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(BENCHES))
    parser.add_argument("--small", action="store_true", help="a few of everything")
    asked = parser.parse_args(arguments)
    if unknown := sorted(set(asked.names) - set(BENCHES)):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    print(where(), flush=True)
    with tempfile.TemporaryDirectory(prefix="graphloop-fleet-", ignore_cleanup_errors=True) as made:
        server = Server(Path(made), fsync="on")
        server.start()
        try:
            for name in asked.names or BENCHES:
                fleet = Fleet(created(server.dsn), **(SMALL if asked.small else {}))
                print(f"\n{as_text(asyncio.run(BENCHES[name](fleet)))}", flush=True)
        finally:
            server.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
