"""Workers on one database, killed and stopped at random: each run ends, and no act is repeated.

A killed worker is gone; a stopped one wakes up after its lease and believes that it still has its
runs. People answer meanwhile, from another process. What is left is what a run without faults
leaves, but for the restarts and the calls of unknown outcome.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import pytest
from msgspec import structs

from graphloop import engines
from graphloop.conversation import latest_answer
from graphloop.effects import AskHuman, Effect
from graphloop.events import Decided, EffectsStarted, Resumed
from graphloop.replay import replay_steps
from graphloop.spending import Spent
from graphloop.step import Step
from graphloop.stores.base import RunRecord
from graphloop.stores.memory import MemoryStore
from graphloop.stores.opening import has_scheme
from graphloop.stores.postgres import PostgresStore
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.values import Message, ToolResult
from graphloop.workers import Worker
from tests.forked import server
from tests.mortal_store import Fate
from tests.postgres_server import database
from tests.property.test_contract_pairing import assert_paired
from tests.sim.killed_worker import ONCE, RUN, Ledger, build
from tests.sim.test_killed_at_random import GRAPH, began
from tests.sizes import NIGHTLY
from tests.temporal_server import namespace

EngineName: TypeAlias = Literal["Pull", "Dbos", "TemporalIo"]

LEASE_S = 0.6
SERVER_LEASE_S = 3.0
"""A killed worker's session ends at once; the lease is for stopped ones, on a machine at load."""
ROUNDS_MAX = 20_000
LOOKS = 30
SEED = int(os.environ.get("GRAPHLOOP_SEED", "1"))
SEEDS = range(SEED, SEED + 20) if NIGHTLY else (SEED,)
OF_THE_NIGHT = pytest.mark.skipif(
    not NIGHTLY, reason="Temporal's development server takes minutes for it: at night"
)


@dataclass(frozen=True, slots=True)
class Trial:
    """How many runs and workers there are, and how many faults.

    `given` are the arguments of the engine.
    """

    engine: EngineName
    where: str
    seed: int
    runs: int = 500 if NIGHTLY else 60
    workers: int = 4 if NIGHTLY else 3
    kills: int = 20 if NIGHTLY else 5
    stops: int = 10 if NIGHTLY else 2
    given: tuple[tuple[str, str], ...] = ()


def opened(where: str) -> SqliteStore | PostgresStore:
    """Open the database of a trial."""
    if has_scheme(where):
        return PostgresStore(where, lease_s=SERVER_LEASE_S)
    return SqliteStore(where, lease_s=LEASE_S)


def work(directory: Path, trial: Trial) -> None:
    """Serve the runs of a database until the process is killed."""
    ledger = Ledger(directory / "ledger", Fate())
    agent = build(MemoryStore(), ledger)
    store = opened(trial.where)
    engine = partial(getattr(engines, trial.engine), **dict(trial.given))
    worker = Worker([agent], store, slots=trial.runs, poll_s=0.02, engine=engine)
    asyncio.run(worker.serve())


Work: TypeAlias = Callable[[Path, Trial], None]


class Crew:
    """The worker processes; each does `target`."""

    def __init__(self, directory: Path, trial: Trial, target: Work = work) -> None:
        self._given, self._target = (directory, trial), target
        self._done = 0
        self.workers: list[ForkServerProcess] = [self._hired() for _ in range(trial.workers)]

    def _hired(self) -> ForkServerProcess:
        process = server().Process(target=self._target, args=self._given, daemon=True)
        process.start()
        return process

    def works(self) -> bool:
        """Wait a moment for the workers to do anything, and return whether they did.

        A fault before that would meet processes that are not at work yet, and a fault long after
        it processes that are not at work any more.
        """
        for _ in range(LOOKS):
            if self._has_done_more():
                return True
            wait([self.workers[0].sentinel], 0.005)
        return False

    def _has_done_more(self) -> bool:
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
        lease_s = SERVER_LEASE_S if has_scheme(self._given[1].where) else LEASE_S
        wait([worker.sentinel], lease_s * 1.7)
        os.kill(worker.pid, signal.SIGCONT)

    def dismiss(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.join()


async def answered(
    store: SqliteStore | PostgresStore, records: Sequence[RunRecord], at_once: int
) -> None:
    """Approve what is asked; of the calls that may have happened, every second run's again.

    A few runs at once, so that quick workers are not done before the faults have met them.
    """
    asking = [record for record in records if record.asks and record.parent == ""]
    for record in asking[:at_once]:
        risks_it = int(record.run_id.removeprefix("run-")) % 2 == 0
        for ask in record.asks:
            data = f'{{"approved":{"true" if risks_it or not ask.unknown else "false"}}}'
            await store.post(record.run_id, ask.key, ask.key, data)


async def until_all_are_over(
    store: SqliteStore | PostgresStore, crew: Crew, trial: Trial
) -> tuple[int, int]:
    """Answer, kill and stop until each run is over; return the numbers of kills and stops."""
    chance = random.Random(trial.seed)  # noqa: S311 - a trial must be repeatable
    kills = stops = 0
    records: list[RunRecord] = []
    for _ in range(ROUNDS_MAX):
        records = [one for one in await store.overview() if "/" not in one.run_id]
        if all(record.status == "done" for record in records):
            return kills, stops
        await answered(store, records, max(1, trial.runs // (trial.kills + trial.stops)))
        place = chance.randrange(trial.workers)
        left = trial.kills - kills, trial.stops - stops
        if not await asyncio.to_thread(crew.works) or left == (0, 0):
            continue
        await asyncio.to_thread(wait, [crew.workers[place].sentinel], chance.uniform(0, 0.02))
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


class Found(NamedTuple):
    """What runs have come to: their results by call, and the calls that people let run again."""

    results: dict[str, ToolResult]
    wanted_again: Counter[str]

    def repeated(self, directory: Path) -> Counter[str]:
        """Return how often each call that may not be repeated was, after a check of each.

        A call that was begun again is one that a person wanted again, so often and no oftener.
        """
        counts = began(directory)
        gated = Counter(
            {
                key: count - 1
                for key, count in counts.items()
                if count > 1 and self.results[key].name in ONCE
            }
        )
        assert gated <= self.wanted_again
        return gated


def found_in(journals: Mapping[str, Sequence[Step[None]]]) -> Found:
    """Return what runs have come to, after a check that each has ended with its answer."""
    found = Found({}, Counter())
    for run_id, steps in journals.items():
        run = steps[-1].run
        found.wanted_again.update(f"{run_id}:{key}" for key in approved_again(steps))
        assert run.ended, run_id
        assert_paired(run.messages)
        assert "/" in run_id or latest_answer(run) == "All is done."
        for one in run.messages:
            if isinstance(one, ToolResult):
                found.results[f"{run_id}:{one.key}"] = one
    return found


async def journals_of(store: SqliteStore | PostgresStore) -> dict[str, list[Step[None]]]:
    """Return the steps of each run; loading checks that there is no gap."""
    return {
        run_id: [*replay_steps(GRAPH, await store.load(run_id))] for run_id in await store.runs()
    }


@dataclass(frozen=True, slots=True)
class Left:
    """What a run has left: how many events of each kind, what it spent, and what was said."""

    kinds: Counter[str]
    spent: Spent
    messages: Sequence[Message]

    def but_for(self, doubted: Container[str]) -> Left:
        """Return it without what the results of these calls say."""
        messages = [
            structs.replace(one, status="unknown", content="")
            if isinstance(one, ToolResult) and one.key in doubted
            else one
            for one in self.messages
        ]
        return replace(self, messages=messages)

    def but_for_repeated(self, own: int, nested: int) -> Left:
        """Return it without the calls that a person let run again: its own, and its children's."""
        tool_calls = self.spent.tool_calls - own - nested
        kinds = self.kinds - Counter(ToolReturned=own)
        return replace(self, kinds=kinds, spent=structs.replace(self.spent, tool_calls=tool_calls))

    def doubted(self) -> set[str]:
        """Return the keys of the calls whose outcome nobody knows."""
        results = [one for one in self.messages if isinstance(one, ToolResult)]
        unknown = [one for one in results if one.status == "unknown"]
        assert {one.name for one in unknown} <= ONCE, "the other calls may simply run again"
        return {one.key for one in unknown}


def left_by(steps: Sequence[Step[None]]) -> Left:
    """Return what a run has left, but for its restarts, its seconds, and questions in doubt."""
    kinds, asked = Counter[str](), dict[int, Effect]()
    for taken in steps:
        event = taken.event
        doubt = asked.get(event.effect) if isinstance(event, Decided) else None
        is_restart = isinstance(event, Resumed | EffectsStarted)
        if not (is_restart or (isinstance(doubt, AskHuman) and doubt.unknown)):
            kinds[type(event).__name__] += 1
        asked = {**taken.run.pending}
    run = steps[-1].run
    return Left(kinds, structs.replace(run.spent, seconds=0.0), tuple(run.record.added))


async def faultless(directory: Path) -> Mapping[str, Left]:
    """Return what a run leaves without faults, and each of its child runs by its place in it."""
    store = MemoryStore()
    agent = build(store, Ledger(directory / "calm", Fate()))
    result = await agent.generate("go", run_id=RUN)
    while result.pending:
        result = await agent.resume(result, approvals={result.pending[0].key: True})
    return {
        run_id.removeprefix(RUN): left_by([*replay_steps(GRAPH, await store.load(run_id))])
        for run_id in await store.runs()
    }


ENGINES = pytest.mark.parametrize(
    ("kind", "engine"),
    [
        ("sqlite", "Pull"),
        ("postgres", "Pull"),
        ("postgres", "Dbos"),
        pytest.param("postgres", "TemporalIo", marks=OF_THE_NIGHT),
    ],
)


@pytest.mark.timeout(0 if NIGHTLY else 300)
@pytest.mark.parametrize("seed", SEEDS)
@ENGINES
def test_each_run_ends_and_nothing_is_done_twice(
    kind: str,
    engine: EngineName,
    seed: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    """Whoever dies, and whoever comes back late."""
    trial = Trial(engine, str(tmp_path / "runs.db"), seed)
    if kind == "postgres":
        where = database(request.getfixturevalue("postgres"))
        trial = replace(trial, where=where, runs=trial.runs if NIGHTLY else trial.runs // 4)
    if engine == "TemporalIo":
        server = request.getfixturevalue("temporal")
        given = ("address", server), ("namespace", namespace(server))
        trial = replace(trial, runs=100, workers=2, kills=3, stops=0, given=given)
    calm = asyncio.run(faultless(tmp_path))

    async def scenario() -> tuple[int, int, dict[str, list[Step[None]]]]:
        store = opened(trial.where)
        agent = build(MemoryStore(), Ledger(tmp_path / "ledger", Fate()))
        for number in range(trial.runs):
            await agent.runs(store).submit("go", run_id=f"run-{number}")
        crew = Crew(tmp_path, trial)
        try:
            kills, stops = await until_all_are_over(store, crew, trial)
        finally:
            crew.dismiss()
        journals = await journals_of(store)
        await store.aclose()
        return kills, stops, journals

    kills, stops, journals = asyncio.run(scenario())

    found, counts = found_in(journals), began(tmp_path)
    gated = found.repeated(tmp_path)
    again = {run_id: [*approved_again(steps)] for run_id, steps in journals.items()}
    for run_id, steps in journals.items():
        _, slash, below = run_id.partition("/")
        nested = [one for key in journals if key.startswith(f"{run_id}/") for one in again[key]]
        left = left_by(steps).but_for_repeated(len(again[run_id]), len(nested))
        doubted = left.doubted()
        assert calm[slash + below].but_for(doubted) == left.but_for(doubted), run_id
    unknown = sum(one.status == "unknown" for one in found.results.values())
    with capsys.disabled():
        print(  # noqa: T201 - the figures of this run
            f"\n{engine} on {kind}: seed {seed}, {trial.runs} runs, {kills} kills, {stops} stops, "
            f"{sum(counts.values()) - len(counts)} calls repeated that may be, {unknown} of "
            f"unknown outcome, {gated.total()} gated calls repeated for "
            f"{found.wanted_again.total()} approvals of unknown outcome"
        )
    assert {run_id.partition("/")[0] for run_id in journals} == {
        *map("run-{}".format, range(trial.runs))
    }
    assert kills + stops >= (trial.kills + trial.stops) / 2
