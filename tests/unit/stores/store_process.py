"""Another process that uses a store: to be killed, to be stopped, to be raced against.

Run as `python -m tests.unit.stores.store_process JOB STORE …` by the tests of stores; it tells what
it did in lines, and waits for lines where the test decides what happens first.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path

from graphloop.errors import StoreError
from graphloop.events import Cancelled, Event
from graphloop.stores.base import Store
from graphloop.stores.file_lock import FileLock
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.sqlite.store import SqliteStore

RUNS = ("a", "b", "c")

LEASE_S = 0.5
"""How long a dead owner of a database keeps others from its runs."""

FORK_PATIENCE_S = 10.0
"""How long a store may wait for a file that no process uses: less than its own patience."""


@contextmanager
def process(job: str, *arguments: str | Path) -> Generator[subprocess.Popen[str]]:
    """Start this file as another process, and kill it at the end if it still lives."""
    command = [sys.executable, "-m", "tests.unit.stores.store_process", job, *map(str, arguments)]
    started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with started:
        try:
            yield started
        finally:
            started.kill()


async def append_events(store: Store, run_id: str, seq: int, *events: Event) -> None:
    """Append events as a coroutine, which `asyncio.run` takes."""
    await store.append(run_id, seq, *events)


def hear(other: subprocess.Popen[str]) -> str:
    """Return the next line of a process."""
    assert other.stdout is not None
    return other.stdout.readline().strip()


def tell(other: subprocess.Popen[str]) -> None:
    """Let a process go on."""
    assert other.stdin is not None
    other.stdin.write("go on\n")
    other.stdin.flush()


def say(*words: object) -> None:
    """Tell the test."""
    print(*words, flush=True)  # noqa: T201 - this is how processes talk


async def append(path: Path) -> None:
    """Append to three runs for ever, and say what is acknowledged."""
    store = SqliteStore(path)

    async def fill(run_id: str) -> None:
        known = await store.load(run_id) if run_id in await store.runs() else ()
        for seq in itertools.count(len(known) + 1):
            await store.append(run_id, seq, Cancelled(float(seq), run_id))
            say(run_id, seq)

    async with asyncio.TaskGroup() as group:
        for run_id in RUNS:
            group.create_task(fill(run_id))


async def drive(path: Path, clock: Path) -> None:
    """Claim a run and append to it; once told to, append again."""
    store = SqliteStore(path, clock=lambda: float(clock.read_text(encoding="utf-8")))
    await store.claim("r")
    await store.append("r", 1, Cancelled(1.0, "first"))
    say("driving")
    sys.stdin.readline()
    try:
        await store.append("r", 2, Cancelled(2.0, "zombie"))
    except StoreError as error:
        say(type(error).__name__)
    else:
        say("appended")


async def claim(path: Path) -> None:
    """Claim a run in a directory of JSON lines, and hold it."""
    await JsonlStore(path).claim("r")
    say("claimed")
    sys.stdin.readline()


def leasing(path: Path) -> JsonlStore | SqliteStore:
    """Open a store of either kind, with a short lease."""
    return SqliteStore(path, lease_s=LEASE_S) if path.suffix == ".db" else JsonlStore(path)


async def claim_and_fork(path: Path) -> None:
    """Claim a run, fork a child that lives on, and name it."""
    store = leasing(path)
    await store.claim("r")
    await store.append("r", 1, Cancelled(1.0, "first"))
    lives, here = os.pipe()
    if (child := os.fork()) == 0:
        os.write(here, b".")  # It has let go of what it does not own.
        signal.pause()
    os.read(lives, 1)
    say(child)
    sys.stdin.readline()


def close_loop(path: Path) -> None:
    """Claim a run in an event loop that is closed in the middle, and live on."""
    store, loop = leasing(path), asyncio.new_event_loop()
    loop.run_until_complete(store.claim("r"))
    loop.run_until_complete(append_events(store, "r", 1, Cancelled(1.0, "first")))
    loop.close()
    say("closed")
    sys.stdin.readline()


async def fork_in_a_commit(path: Path) -> None:
    """Fork a child that lives on while an event is being committed, and name it."""
    children: list[int] = []

    def clock() -> float:
        if not children:
            # The thread of the store asks for the time in its transaction.
            children.append(os.fork())
            if not children[0]:
                signal.pause()
        return 0.0

    await SqliteStore(path, clock=clock).append("a", 1, Cancelled(1.0, "forked"))
    say(children[0])
    sys.stdin.readline()


async def append_all(path: Path) -> None:
    """Once told to, append to eight runs through a store each, and say which are acknowledged."""
    sys.stdin.readline()

    async def append(run_id: str) -> None:
        async with asyncio.timeout(FORK_PATIENCE_S):
            await SqliteStore(path).append(run_id, 1, Cancelled(1.0, run_id))
        say("done")

    async with asyncio.TaskGroup() as group:
        for number in range(8):
            group.create_task(append(str(number)))


def locks(path: Path) -> None:
    """Say whether a file can be locked."""
    lock = FileLock(path)
    say("taken" if lock.take() else "busy")
    sys.stdin.readline()


async def claim_many(path: Path) -> None:
    """Claim runs until there is no room for more, and append to all that were claimed."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
    store, claimed = JsonlStore(path), list[str]()
    try:
        for number in range(100):
            await store.claim(str(number))
            claimed.append(str(number))
    except StoreError as error:
        say("refused", str(error).partition(": ")[2].partition(",")[0])
    for run_id in claimed:
        await store.append(run_id, 1, Cancelled(1.0, "kept"))
    say("appended")
    sys.stdin.readline()


async def post(path: Path, author: Path) -> None:
    """Once told to, answer a hundred questions."""
    store = SqliteStore(path)
    await store.runs()
    say("ready")
    sys.stdin.readline()
    for key in range(100):
        say(await store.post("r", str(key), author.name, author.name))


JOBS: dict[str, Callable[..., Coroutine[object, object, None] | None]] = {
    "append": append,
    "drive": drive,
    "claim": claim,
    "claim and fork": claim_and_fork,
    "claim many": claim_many,
    "close loop": close_loop,
    "fork in a commit": fork_in_a_commit,
    "append all": append_all,
    "locks": locks,
    "post": post,
}


def main() -> None:
    """Do the job that the command line names."""
    job, *places = sys.argv[1:]
    if (work := JOBS[job](*map(Path, places))) is not None:
        asyncio.run(work)


if __name__ == "__main__":
    main()
