"""A node's generator, killed for good at each of its moments, goes on in another process."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import wait
from pathlib import Path
from threading import Lock

import pytest

from graphloop.events import CallbackReturned, Event, ModelReplied
from graphloop.replay import replay
from graphloop.stores.codec import Codec
from graphloop.stores.sqlite.store import SqliteStore
from tests.forked import server
from tests.generator_nodes import Programme, as_generator
from tests.sim.killed_generator import RUN, work
from tests.sizes import NIGHTLY

GRAPH = as_generator()
MOMENTS_MAX = 100
AT_ONCE = 4
"""How many processes live at once: most of their time they wait for the lease of a dead one."""

LOCK = Lock()
"""Of two threads that ask how a process has ended, one is told wrongly."""

TYPES = Codec(Programme)


async def journal(directory: Path) -> Sequence[Event]:
    disk = SqliteStore(directory / "runs.db")
    try:
        return await disk.load(RUN) if RUN in await disk.runs() else ()
    finally:
        await disk.aclose()


def facts(events: Sequence[Event]) -> list[object]:
    """Return what generators asked and models said: times and processes aside."""
    return [
        one.answer if isinstance(one, CallbackReturned) else one.reply
        for one in events
        if isinstance(one, CallbackReturned | ModelReplied)
    ]


def worked(directory: Path, after: int | None) -> int | None:
    """Return how a process ended that worked on the run."""
    process = server().Process(target=work, args=(directory, after))
    with LOCK:
        process.start()
    wait([process.sentinel])
    with LOCK:
        process.join()
        return process.exitcode


def state(events: Sequence[Event]) -> Programme:
    return replay(GRAPH, [TYPES.typed(one) for one in events]).state


@pytest.mark.timeout(0 if NIGHTLY else 300)
def test_a_kill_at_any_moment_repeats_no_ask_that_was_answered(tmp_path: Path) -> None:
    """Before and after each event is on the disk, and while a model is asked.

    Which question is asked twice is the one that was under way, and only that.
    """
    clean = tmp_path / "clean"
    clean.mkdir()
    assert 0 == worked(clean, None)
    wanted = asyncio.run(journal(clean))
    once = Counter((clean / "ledger").read_text(encoding="utf-8").split())

    def was_killed(after: int) -> bool:
        directory = tmp_path / str(after)
        directory.mkdir()
        ended = worked(directory, after)
        assert ended in {0, -signal.SIGKILL}
        answered = [one for one in asyncio.run(journal(directory)) if isinstance(one, ModelReplied)]
        asked = (directory / "ledger").read_text("utf-8").split() if answered else []
        if ended == 0:
            return False
        assert 0 == worked(directory, None)

        events = asyncio.run(journal(directory))
        again = Counter((directory / "ledger").read_text(encoding="utf-8").split()) - once
        assert facts(wanted) == facts(events)
        assert state(wanted) == state(events)
        assert again.total() <= 1
        assert not again.keys() & set(asked[: len(answered)])
        return True

    kills = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for start in range(0, MOMENTS_MAX, AT_ONCE):
            killed = list(pool.map(was_killed, range(start, start + AT_ONCE)))
            kills += sum(killed)
            if not all(killed):
                break
    assert len(wanted) * 2 <= kills < MOMENTS_MAX
