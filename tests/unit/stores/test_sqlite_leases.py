"""The fence: which holder may write to which run (claims as a whole are test_sqlite's)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from graphloop.errors import Fenced, RunBusy
from graphloop.stores.database.claims import HeldRun, Holder
from graphloop.stores.database.jobs import at_once
from graphloop.stores.rows import Standing
from graphloop.stores.sqlite.leases import claim, fence, renew
from graphloop.stores.sqlite.schema import open_writer
from graphloop.stores.sqlite.store import SqliteStore


def holder(epoch: int | None) -> Holder:
    """Return a holder who has claimed run "r" in an epoch, or never."""
    made = Holder(30.0, lambda: 100.0)
    if epoch is not None:
        made.held["r"] = HeldRun(1, epoch)
    return made


@pytest.mark.parametrize(
    ("claimed_in", "owner", "epoch"),
    [(None, None, 0), (None, None, 5), (1, "me", 1), (None, "me", 3)],
)
def test_the_owner_writes_and_anybody_where_there_is_none(
    claimed_in: int | None, owner: str | None, epoch: int
) -> None:
    """A run that nobody drives is kept in order by its numbers alone."""
    me = holder(claimed_in)

    fence(me, "r", (me.name if owner else None, epoch))


@pytest.mark.parametrize(
    ("claimed_in", "owner", "epoch"),
    [(None, "you", 1), (1, "you", 2), (1, "me", 3), (1, None, 1), (1, None, 2)],
)
def test_whoever_lost_its_claim_or_never_had_one_is_fenced(
    claimed_in: int | None, owner: str | None, epoch: int
) -> None:
    """Also where the new owner has come and gone, and where it is another claim of one's own."""
    me = holder(claimed_in)

    with pytest.raises(Fenced, match=r"run 'r' (is driven by|has no driver)"):
        fence(me, "r", (me.name if owner == "me" else owner, epoch))


def test_a_claim_of_a_run_that_is_gone_is_fenced() -> None:
    """Another claimed it, found it empty and forgot it."""
    with pytest.raises(Fenced, match="claimed it in epoch 1"):
        fence(holder(1), "r", None)

    fence(holder(None), "r", None)


def test_a_renewal_prolongs_no_lease_of_another_driver(tmp_path: Path) -> None:
    """A driver that lost its run to another must not keep that one's successor waiting."""
    now = [100.0]
    slow, quick = Holder(30.0, lambda: now[0]), Holder(30.0, lambda: now[0])
    with closing(open_writer(tmp_path / "runs.db", "process")) as connection:
        slow.held["r"] = at_once(claim(connection, slow, "r"))
        now[0] = 131.0
        quick.held["r"] = at_once(claim(connection, quick, "r"))
        slow.claims.take("r")
        now[0] = 150.0

        renew(connection, slow)

        assert (161.0,) == connection.execute("SELECT lease_until FROM run").fetchone()

        quick.claims.take("r")
        renew(connection, quick)

        assert (180.0,) == connection.execute("SELECT lease_until FROM run").fetchone()


def test_a_written_release_is_forgotten_and_no_later_one() -> None:
    """The run may have been claimed and left again, while the release was on its way."""
    me = holder(1)
    me.leave("r", Standing("done", (), 0))
    written = me.lapsed["r"]
    me.held["r"] = HeldRun(1, 2)
    me.leave("r", Standing("parked", (), 0))
    later = me.lapsed["r"]

    me.forget("r", written)
    assert {"r": later} == me.lapsed
    me.forget("r", later)
    assert {} == me.lapsed


CLAIM_AND_WAIT = """
import asyncio, sys
from graphloop.stores.sqlite.store import SqliteStore

async def main():
    store = SqliteStore(sys.argv[1])
    await store.claim("r")
    await store.append("r", 1, Started(0.0, "r", "g", (), Setup()))
    print("claimed", flush=True)
    sys.stdin.read()

from graphloop.events import Setup, Started
asyncio.run(main())
"""


def test_the_lease_of_a_dead_process_of_this_machine_is_free(
    tmp_path: Path,
) -> None:
    """A run that was killed is taken up at once; while its driver lives, it is busy."""
    path = tmp_path / "runs.db"
    with subprocess.Popen(
        [sys.executable, "-c", CLAIM_AND_WAIT, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as driver:
        assert driver.stdout is not None
        assert "claimed" in driver.stdout.readline()
        with pytest.raises(RunBusy, match=f"pid {driver.pid}"):
            asyncio.run(_claim(path))
        driver.kill()
        driver.wait()

    asyncio.run(_claim(path))


async def _claim(path: Path) -> None:
    store = SqliteStore(path)
    try:
        await store.claim("r")
    finally:
        await store.aclose()
