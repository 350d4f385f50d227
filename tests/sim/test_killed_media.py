"""No killed process leaves an event whose media are missing."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from graphloop.stores.opening import open_store
from tests.sim.killed_media import shown


@pytest.mark.parametrize("kept", [1, 2, 5])
@pytest.mark.parametrize("where", ["runs", "runs.db"])
def test_each_event_that_outlives_a_kill_has_its_media(
    tmp_path: Path, where: str, kept: int
) -> None:
    """The kill comes anywhere: within the bytes, between them and the event, or after both."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.sim.killed_media", str(tmp_path / where)],
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(kept)]
        process.kill()

    asyncio.run(check(tmp_path / where, {line.strip() for line in told}))


async def check(where: Path, told: set[str]) -> None:
    store = open_store(where)
    runs = await store.runs()
    assert told <= {*runs}
    for run_id in runs:
        assert [shown(int(run_id))] == list(await store.load(run_id))
