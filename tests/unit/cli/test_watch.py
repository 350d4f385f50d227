"""`graphloop watch` follows a run of another process, and only reads the store."""

import json
import signal
from pathlib import Path

import pytest

from graphloop.cli.errors import Status

from .command_line import STORE, graphloop, refused, shown, started
from .pay_desk import run_ids

pytestmark = pytest.mark.usefixtures("pay_desk")


def test_a_run_is_followed_across_its_park_to_its_end(pay_desk: Path) -> None:
    """The watcher is a process of its own, and so is each driver."""
    shown("run", "pay", *STORE, status=Status.PARKED)
    (run_id,) = run_ids("runs.db")
    with started("watch", run_id[:8], *STORE, cwd=pay_desk) as watcher:
        assert watcher.stderr is not None
        assert watcher.stderr.readline() == f"{run_id[:8]}: parked\n"
        assert "waits for c0.0: approval of pay(" in watcher.stderr.readline()

        assert graphloop("approve", run_id, "c0.0", *STORE, cwd=pay_desk).returncode == Status.OK
        assert graphloop("resume", run_id, *STORE, cwd=pay_desk).returncode == Status.OK

        out, err = watcher.communicate()

    assert watcher.returncode == Status.OK
    assert err.endswith(f"{run_id[:8]}: done\n")
    numbers = [int(line.split()[0]) for line in out.splitlines() if line[:2].strip().isdigit()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert "Decided" in out
    assert "ToolReturned" in out


def test_json_lines_are_the_journal() -> None:
    shown("run", "pay", *STORE, "--approve", "always")
    (run_id,) = run_ids("runs.db")

    lines = shown("watch", run_id, *STORE, "--json").splitlines()

    replayed = shown("replay", run_id, *STORE, "--json").splitlines()
    assert lines == [line for line in replayed if "state" not in json.loads(line)]


def test_ctrl_c_leaves_the_run_alone(pay_desk: Path) -> None:
    shown("run", "pay", *STORE, status=Status.PARKED)
    (run_id,) = run_ids("runs.db")
    before = shown("replay", run_id, *STORE)
    with started("watch", run_id, *STORE, cwd=pay_desk) as watcher:
        assert watcher.stderr is not None
        assert "parked" in watcher.stderr.readline()
        watcher.send_signal(signal.SIGINT)
        _, err = watcher.communicate()

    assert watcher.returncode == Status.INTERRUPTED
    assert err.endswith("no longer watched; the run goes on\n")
    assert shown("replay", run_id, *STORE) == before


def test_a_store_without_ends_is_refused(pay_desk: Path) -> None:
    shown("run", "pay", "--store", "journals", status=Status.PARKED)
    (file,) = (pay_desk / "journals").glob("*.jsonl")

    message = refused("watch", file.stem, "--store", "journals")

    assert "expected a database" in message
