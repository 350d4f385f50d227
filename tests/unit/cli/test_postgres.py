"""The commands of stored runs over a PostgreSQL server, as its user types them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import time
from urllib.parse import urlsplit

import pytest

from graphloop.stores import PostgresStore
from tests.postgres_server import database, set_clock
from tests.unit.cli.command_line import ROOT, graphloop


@pytest.fixture
def store(postgres: str) -> tuple[str, str]:
    """The option for an empty database; the address has a password, which a test server ignores."""
    parts = urlsplit(database(postgres))
    name = f"{parts.username}:s3cret@{parts.hostname}:{parts.port}"
    return "--store", parts._replace(netloc=name).geturl()


def test_a_run_is_parked_approved_and_resumed(desk: Path, store: tuple[str, str]) -> None:
    """No command needs more than the address, and none prints its password."""
    parked = graphloop("run", ROOT / "examples/approval", *store, cwd=desk)
    listed = graphloop("runs", *store, cwd=desk)
    run = listed.stdout.splitlines()[1].split()[0]
    approved = graphloop("approve", run, "c0.1", *store, cwd=desk)
    resumed = graphloop("resume", run, *store, cwd=desk)
    unknown = graphloop("resume", "nope", *store, cwd=desk)
    told = graphloop("replay", run, *store, cwd=desk)

    done = [parked, listed, approved, resumed, unknown, told]
    assert [one.returncode for one in done] == [3, 0, 0, 0, 2, 0]
    assert "s3cret" not in "".join(one.stdout + one.stderr for one in done)
    assert "graphloop approve" in parked.stderr
    assert "completed" in resumed.stdout
    assert list(desk.iterdir()) == []


def test_a_doctor_tells_of_runs_that_no_worker_takes(desk: Path, store: tuple[str, str]) -> None:
    """Its exit status wakes a person; without a finding, it does not."""
    graphloop("run", ROOT / "examples/weather", *store, cwd=desk)
    well = graphloop("doctor", *store, cwd=desk)
    graphloop("run", ROOT / "examples/approval", *store, cwd=desk)
    parked = graphloop("doctor", *store, cwd=desk)
    set_clock(store[1], time() + 7200)
    late = graphloop("doctor", *store, cwd=desk)
    numbers = graphloop("doctor", *store, "--metrics", cwd=desk)

    assert [one.returncode for one in (well, parked, late, numbers)] == [0, 0, 1, 1]
    assert "all is well" in well.stdout
    assert "parked: 1" in parked.stdout
    assert "queue default: 0 waiting, 0 running\n" in parked.stdout
    assert "clock of this machine is" in late.stdout
    assert 'graphloop_runs{status="parked"} 1' in numbers.stdout


async def test_a_doctor_counts_the_live_workers_of_each_agent(store: tuple[str, str]) -> None:
    """And tells to which revisions they are pinned: what a deploy waits for."""
    workers = [PostgresStore(store[1]) for _ in range(3)]
    for worker, pin in zip(workers, ("", "a" * 64, "a" * 64), strict=True):
        await worker.attend("worker", {"support": pin, "stock": ""})
    live = await asyncio.to_thread(graphloop, "doctor", *store)
    for worker in workers:
        await worker.aclose()
    gone = await asyncio.to_thread(graphloop, "doctor", *store)

    assert "workers of stock: 3\nworkers of support: 3, 2 pinned to aaaaaaa" in live.stdout
    assert "workers of" not in gone.stdout


@pytest.mark.parametrize("command", [("doctor",), ("prune", "--older", "1d")])
def test_a_directory_of_journals_has_no_doctor(desk: Path, command: tuple[str, ...]) -> None:
    """The error names what would have one."""
    graphloop("run", ROOT / "examples/weather", "--store", "runs", cwd=desk)
    refused = graphloop(*command, "--store", "runs", cwd=desk)

    assert refused.returncode == 2
    assert "expected a database" in refused.stderr


def test_old_runs_are_pruned(desk: Path, store: tuple[str, str]) -> None:
    """The number is printed, and a time without a unit is refused."""
    graphloop("run", ROOT / "examples/weather", *store, cwd=desk)
    kept = graphloop("prune", "--older", "1d", *store, cwd=desk)
    pruned = graphloop("prune", "--older", "0s", *store, cwd=desk)
    refused = graphloop("prune", "--older", "30", *store, cwd=desk)

    assert (kept.stdout, pruned.stdout) == ("0 runs deleted\n", "1 run deleted\n")
    assert refused.returncode == 2
    assert "--older: expected a number with d, h, min or s" in refused.stderr
