"""Families on one database: children that any worker drives, workers that are killed meanwhile.

Each family ends, no act is repeated, and the workers share the families' work.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from graphloop import ToolContext, engines
from graphloop.step import Step
from graphloop.stores.memory import MemoryStore
from graphloop.stores.postgres import PostgresStore
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.workers import Client, Worker
from tests.mortal_store import Fate
from tests.planned_model import Line, call
from tests.postgres_server import database
from tests.sim.killed_worker import Ledger, build
from tests.sim.test_killed_workers import (
    ENGINES,
    ROUNDS_MAX,
    SEED,
    Crew,
    EngineName,
    Trial,
    found_in,
    journals_of,
    opened,
    until_all_are_over,
)
from tests.sizes import NIGHTLY
from tests.temporal_server import namespace

FAMILIES, KILLS = (60, 6) if NIGHTLY else (12, 3)
SLOTS = 2
PLAN: Mapping[str, Sequence[Line]] = {
    "go": [
        [call("helper", prompt="write"), call("helper", prompt="pay")],
        [call("send", text="a")],
        "All is done.",
    ],
    "write": [[call("note", text="b"), call("send", text="c")], "Written."],
    "pay": [[call("pay", text="d")], [call("send", text="e")], "Paid."],
    "stay": [[call("helper", prompt="sit"), call("helper", prompt="write")], "All is done."],
    "sit": [[call("note", text="sit")], "Sat."],
}


class SharedLedger(Ledger):
    """A ledger that also tells which process did what; a call with the text "sit" never ends."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory / "ledger", Fate())
        self._acts = directory / "acts"

    async def do(self, arguments: dict[str, object], context: ToolContext) -> str:
        """Do what a tool does."""
        with self._acts.open("a", encoding="utf-8") as file:
            file.write(f"{context.run_id} {arguments['text']} {os.getpid()}\n")
        if arguments["text"] == "sit":
            self.write("begin", context)
            await asyncio.Event().wait()
        return await super().do(arguments, context)


def acts_of(directory: Path) -> Sequence[tuple[str, str, int]]:
    """Return what was done: in which run, the text of the call, and by which process."""
    acts = directory / "acts"
    lines = acts.read_text(encoding="utf-8").splitlines() if acts.exists() else []
    told = [one.split() for one in lines if one.count(" ") == 2]
    return [(run_id, text, int(pid)) for run_id, text, pid in told]


def work(directory: Path, trial: Trial) -> None:
    """Serve the families of a database until the process is killed."""
    agent = build(MemoryStore(), SharedLedger(directory), PLAN, "anywhere")
    chosen = partial(getattr(engines, trial.engine), **dict(trial.given))
    worker = Worker([agent], opened(trial.where), slots=SLOTS, poll_s=0.02, engine=chosen)
    asyncio.run(worker.serve())


def trial_of(
    engine: EngineName, kind: str, directory: Path, request: pytest.FixtureRequest
) -> Trial:
    """Return a trial of families on a new database."""
    where = str(directory / "runs.db")
    if kind == "postgres":
        where = database(request.getfixturevalue("postgres"))
    trial = Trial(engine, where, SEED, runs=FAMILIES, kills=KILLS, stops=0)
    if engine == "TemporalIo":
        server = request.getfixturevalue("temporal")
        trial = replace(trial, given=(("address", server), ("namespace", namespace(server))))
    return trial


@pytest.mark.timeout(0 if NIGHTLY else 300)
@ENGINES
def test_each_family_ends_and_nothing_is_done_twice(
    kind: str,
    engine: EngineName,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    """Whoever dies: the worker of a child, of its parent, or of both."""
    trial = trial_of(engine, kind, tmp_path, request)

    async def scenario() -> tuple[int, dict[str, list[Step[None]]]]:
        store = opened(trial.where)
        agent = build(MemoryStore(), SharedLedger(tmp_path), PLAN, "anywhere")
        for number in range(FAMILIES):
            await agent.runs(store).submit("go", run_id=f"run-{number}")
        crew = Crew(tmp_path, trial, work)
        try:
            kills, _ = await until_all_are_over(store, crew, trial)
        finally:
            crew.dismiss()
        journals = await journals_of(store)
        await store.aclose()
        return kills, journals

    kills, journals = asyncio.run(scenario())

    found = found_in(journals)
    repeated = found.repeated(tmp_path)
    drivers: defaultdict[str, set[int]] = defaultdict(set)
    for run_id, _, pid in acts_of(tmp_path):
        drivers[run_id.partition("/")[0]].add(pid)
    shared = sum(len(pids) > 1 for pids in drivers.values())
    with capsys.disabled():
        print(  # noqa: T201 - the figures of this run
            f"\n{engine} on {kind}: {FAMILIES} families, {kills} kills, {shared} on several "
            f"workers, {repeated.total()} gated calls repeated for "
            f"{found.wanted_again.total()} approvals of unknown outcome"
        )
    assert len(journals) == 3 * FAMILIES
    assert shared >= FAMILIES / 4
    assert kills == KILLS


async def sitting(directory: Path, crew: Crew, but: int = 0) -> int:
    """Wait until another process than `but` sits in a child's call, and return its id."""
    for _ in range(ROUNDS_MAX):
        pids = [pid for _, text, pid in acts_of(directory) if text == "sit" and pid != but]
        if pids:
            return pids[-1]
        await asyncio.to_thread(wait, [crew.workers[0].sentinel], 0.02)
    raise AssertionError(acts_of(directory))


async def statuses(store: SqliteStore | PostgresStore, crew: Crew) -> dict[str, str]:
    """Wait until no run is under way, and return the status of each.

    A worker that saw a run wait may claim it after its end, for as long as it reads the journal.
    """
    told: dict[str, str] = {}
    for _ in range(ROUNDS_MAX):
        told = {one.run_id: one.status for one in await store.overview()}
        if "running" not in told.values():
            return told
        await asyncio.to_thread(wait, [crew.workers[0].sentinel], 0.02)
    raise AssertionError(told)


@pytest.mark.timeout(120)
@ENGINES
def test_a_cancelled_family_ends_wherever_it_is(
    kind: str, engine: EngineName, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A child whose worker is killed goes on in another; then its root is cancelled."""
    trial = trial_of(engine, kind, tmp_path, request)

    async def scenario() -> tuple[Mapping[str, str], dict[str, list[Step[None]]]]:
        store: SqliteStore | PostgresStore = opened(trial.where)
        agent = build(MemoryStore(), SharedLedger(tmp_path), PLAN, "anywhere")
        await agent.runs(store).submit("stay", run_id="run")
        crew = Crew(tmp_path, trial, work)
        try:
            first = await sitting(tmp_path, crew)
            crew.kill(next(at for at, one in enumerate(crew.workers) if one.pid == first))
            await sitting(tmp_path, crew, but=first)
            client = Client(store, poll_s=0.02)
            await client.result("run/c0.1")  # The other child has ended.
            await client.cancel("run", "enough")
            await client.result("run")
            told = await statuses(store, crew)
        finally:
            crew.dismiss()
        journals = await journals_of(store)
        await store.aclose()
        return told, journals

    told, journals = asyncio.run(scenario())

    root = journals["run"][-1].run
    assert told == {"run": "cancelled", "run/c0.0": "cancelled", "run/c0.1": "done"}
    below = [journals[one][-1].run.spent.usage.input_tokens for one in told if "/" in one]
    assert below == [10, 20]
    assert root.spent.usage.input_tokens == 10 + sum(below)
