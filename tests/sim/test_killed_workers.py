"""Workers on one database, killed and stopped at random: each run ends, and no act is repeated.

A killed worker is gone; a stopped one wakes up after its lease and believes that it still has its
runs. People answer meanwhile, from another process.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Literal, TypeAlias

import pytest

from graphloop import engines
from graphloop.conversation import latest_answer
from graphloop.effects import AskHuman
from graphloop.events import Decided
from graphloop.replay import replay_steps
from graphloop.step import Step
from graphloop.stores.base import RunRecord
from graphloop.stores.memory import MemoryStore
from graphloop.stores.opening import has_scheme
from graphloop.stores.postgres import PostgresStore
from graphloop.stores.sqlite import SqliteStore
from graphloop.values import ToolResult
from graphloop.workers import Worker
from tests.forked import server
from tests.mortal_store import Fate
from tests.postgres_server import database
from tests.property.test_contract_pairing import assert_paired
from tests.sim.killed_worker import ONCE, Ledger, build
from tests.sim.test_killed_at_random import GRAPH, began
from tests.sizes import NIGHTLY

EngineName: TypeAlias = Literal["Pull", "Dbos"]

RUNS, WORKERS = (500, 4) if NIGHTLY else (60, 3)
KILLS, STOPS = (20, 10) if NIGHTLY else (5, 2)
LEASE_S = 0.6
SERVER_LEASE_S = 3.0
"""A killed worker's session ends at once; the lease is for stopped ones, on a machine at load."""
ROUNDS_MAX = 20_000
SEED = int(os.environ.get("GRAPHLOOP_SEED", "1"))


def opened(where: str) -> SqliteStore | PostgresStore:
    """Open the database of a trial."""
    if has_scheme(where):
        return PostgresStore(where, lease_s=SERVER_LEASE_S)
    return SqliteStore(where, lease_s=LEASE_S)


def work(directory: Path, where: str, engine: EngineName) -> None:
    """Serve the runs of a database until the process is killed."""
    ledger = Ledger(directory / "ledger", Fate())
    agent = build(MemoryStore(), ledger)
    store = opened(where)
    worker = Worker([agent], store, slots=RUNS, poll_s=0.02, engine=getattr(engines, engine))
    asyncio.run(worker.serve())


class Crew:
    """The worker processes."""

    def __init__(self, directory: Path, where: str, engine: EngineName) -> None:
        self._given = directory, where, engine
        self._done = 0
        self.workers: list[ForkServerProcess] = [self._hired() for _ in range(WORKERS)]

    def _hired(self) -> ForkServerProcess:
        process = server().Process(target=work, args=self._given, daemon=True)
        process.start()
        return process

    def has_done_more(self) -> bool:
        """Whether the workers have done anything since this was last true.

        A fault before that would meet processes that are not at work yet.
        """
        ledger = self._given[0] / "ledger"
        done = ledger.stat().st_size if ledger.exists() else 0
        if done == self._done:
            return False
        self._done = done
        return True

    def kill(self, place: int) -> None:
        """Kill a worker, and let another take its place."""
        self.workers[place].kill()
        self.workers[place].join()
        self.workers[place] = self._hired()

    def freeze(self, place: int) -> None:
        """Stop a worker until its leases have run out, and let it go on."""
        worker = self.workers[place]
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGSTOP)
        lease_s = SERVER_LEASE_S if has_scheme(self._given[1]) else LEASE_S
        wait([worker.sentinel], lease_s * 1.7)
        os.kill(worker.pid, signal.SIGCONT)

    def dismiss(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.join()


async def answered(store: SqliteStore | PostgresStore, records: Sequence[RunRecord]) -> None:
    """Approve what is asked; of the calls that may have happened, every second run's again."""
    for record in records:
        risks_it = int(record.run_id.removeprefix("run-")) % 2 == 0
        for ask in record.asks if record.parent == "" else ():
            data = f'{{"approved":{"true" if risks_it or not ask.unknown else "false"}}}'
            await store.post(record.run_id, ask.key, ask.key, data)


async def until_all_are_over(store: SqliteStore | PostgresStore, crew: Crew) -> tuple[int, int]:
    """Answer, kill and stop until each run is over; return the numbers of kills and stops."""
    chance = random.Random(SEED)  # noqa: S311 - a trial must be repeatable
    kills = stops = 0
    records: list[RunRecord] = []
    for _ in range(ROUNDS_MAX):
        records = [one for one in await store.overview() if "/" not in one.run_id]
        if all(record.status == "done" for record in records):
            return kills, stops
        await answered(store, records)
        place = chance.randrange(WORKERS)
        await asyncio.to_thread(wait, [crew.workers[place].sentinel], chance.uniform(0, 0.15))
        left = KILLS - kills, STOPS - stops
        if left == (0, 0) or not crew.has_done_more():
            continue
        if chance.choices((True, False), left)[0]:
            await asyncio.to_thread(crew.kill, place)
            kills += 1
        else:
            await asyncio.to_thread(crew.freeze, place)
            stops += 1
    raise AssertionError([record for record in records if record.status != "done"])


def approved_again(steps: Sequence[Step[None]]) -> Iterator[str]:
    """Yield the key of each call that may have run, and that a person let run again."""
    for before, taken in pairwise(steps):
        if isinstance(taken.event, Decided) and taken.event.approved:
            asked = before.run.pending[taken.event.effect]
            if isinstance(asked, AskHuman) and asked.unknown:
                yield asked.key


@pytest.mark.timeout(0 if NIGHTLY else 300)
@pytest.mark.parametrize(
    ("kind", "engine"), [("sqlite", "Pull"), ("postgres", "Pull"), ("postgres", "Dbos")]
)
def test_each_run_ends_and_nothing_is_done_twice(
    kind: str,
    engine: EngineName,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    """Whoever dies, and whoever comes back late."""
    where, runs = str(tmp_path / "runs.db"), RUNS
    if kind == "postgres":
        where = database(request.getfixturevalue("postgres"))
        runs = RUNS if NIGHTLY else RUNS // 4

    async def scenario() -> tuple[int, int, dict[str, list[Step[None]]]]:
        store = opened(where)
        agent = build(MemoryStore(), Ledger(tmp_path / "ledger", Fate()))
        for number in range(runs):
            await agent.runs(store).submit("go", run_id=f"run-{number}")
        crew = Crew(tmp_path, where, engine)
        try:
            kills, stops = await until_all_are_over(store, crew)
        finally:
            crew.dismiss()
        found = {
            # Loading checks that there is no gap.
            run_id: [*replay_steps(GRAPH, await store.load(run_id))]
            for run_id in await store.runs()
        }
        await store.aclose()
        return kills, stops, found

    kills, stops, found = asyncio.run(scenario())

    results: dict[str, ToolResult] = {}
    wanted_again = Counter[str]()
    for run_id, steps in found.items():
        run = steps[-1].run
        wanted_again.update(f"{run_id}:{key}" for key in approved_again(steps))
        assert run.ended, run_id
        assert_paired(run.messages)
        assert "/" in run_id or latest_answer(run) == "All is done."
        for one in run.messages:
            if isinstance(one, ToolResult):
                results[f"{run_id}:{one.key}"] = one
    counts = began(tmp_path)
    twice = {key for key, count in counts.items() if count > 1}
    gated = {key for key in twice if results[key].name in ONCE}
    # A call that was begun again is one that a person wanted again, so often and no oftener.
    assert not [key for key in gated if counts[key] - 1 > wanted_again[key]]
    again = sum(counts[key] - 1 for key in twice)
    unknown = sum(one.status == "unknown" for one in results.values())
    with capsys.disabled():
        print(  # noqa: T201 - the figures of this run
            f"\n{engine} on {kind}: seed {SEED}, {runs} runs, {kills} kills, {stops} stops, "
            f"{again} calls repeated that may be, {unknown} of unknown outcome, "
            f"{sum(counts[key] - 1 for key in gated)} gated calls repeated for "
            f"{wanted_again.total()} approvals of unknown outcome"
        )
    assert kills + stops >= (KILLS + STOPS) / 2
