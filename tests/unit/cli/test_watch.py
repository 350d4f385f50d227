"""`graphloop watch` follows a run of another process, and only reads the store."""

import asyncio
import json
import signal
from pathlib import Path

import pytest

from graphloop import Agent
from graphloop.cli.errors import Status
from graphloop.testing import ScriptedModel

from .command_line import STORE, graphloop, here, refused, shown, started, write
from .pay_desk import run_ids

PAYS = "- calls: [{name: pay, arguments: {amount: 5}}]\n- text: done\n"
SCREENED = """
from graphloop import Agent, tool

@tool
async def pay(amount: int) -> str:
    "Pay."
    return f"{amount} paid"

def polite(text):
    return True

def build(model):
    return Agent(model, tools=[pay], screen=polite)

PROMPT = "Pay 5."
"""

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


def test_a_run_in_a_directory_is_followed_to_its_end_by_its_graph(pay_desk: Path) -> None:
    """JSON lines hold events alone; the table of the run's graph tells the end."""
    store = ("--store", "journals")
    shown("run", "pay", *store, status=Status.PARKED)
    (run_id,) = run_ids("journals")
    with started("watch", run_id[:8], *store, "--target", "pay", "--json", cwd=pay_desk) as watcher:
        assert watcher.stderr is not None
        assert watcher.stderr.readline() == f"{run_id[:8]}: not over\n"
        assert "waits for c0.0: approval of pay(" in watcher.stderr.readline()

        resume = ("resume", run_id, *store, "--target", "pay", "--approve", "always")
        resumed = graphloop(*resume, cwd=pay_desk)
        assert resumed.returncode == Status.OK, resumed.stderr

        out, err = watcher.communicate()

    assert watcher.returncode == Status.OK
    assert err.endswith(f"{run_id[:8]}: done\n")
    assert shown("replay", run_id, *store, "--json") == out


def test_a_run_that_was_cancelled_in_a_directory_is_a_failure() -> None:
    """A script that watches a run goes by its exit status, whatever the store."""
    asyncio.run(cancelled("journals"))

    done = here("watch", "r", "--store", "journals", "--target", "pay/agent.py")

    assert (Status.FAILED, "r: cancelled\n") == (done.returncode, done.stderr)


async def cancelled(path: str) -> None:
    """Leave a run of the target `pay` that its caller aborted."""
    stream = Agent(ScriptedModel(["Never."]), store=path).stream("Pay 5.", run_id="r")
    stream.abort()
    await stream.result()


def test_calls_and_checks_are_told_by_name_and_in_words(pay_desk: Path) -> None:
    """A watcher sees `c0.0 pay`, and not the number of an effect."""
    write({"pay/agent.py": SCREENED, "pay/script.yaml": PAYS})
    shown("run", "pay", *STORE)
    (run_id,) = run_ids("runs.db")

    lines = shown("watch", run_id, *STORE).splitlines()
    (pay_desk / "pay/agent.py").unlink()
    bare = here("watch", run_id, *STORE)

    kept = [line.split(maxsplit=4)[3:] for line in lines]
    assert ["CallbackReturned", "screen:polite accepted"] in kept
    assert ["EffectsStarted", "c0.0 pay"] in kept
    assert ["ToolReturned", "c0.0 pay content=5 paid"] in kept
    assert "the calls have no names: " in bare.stderr
    assert "effect 1 accepted" in bare.stdout


def test_a_directory_needs_the_target() -> None:
    shown("run", "team", "--store", "journals", status=Status.PARKED)
    (child, root) = sorted(run_ids("journals"), key=len, reverse=True)

    bare = refused("watch", root, "--store", "journals")
    below = refused("watch", child, "--store", "journals", "--target", "team")

    assert f"--target: expected the target of run '{root}', found none" in bare
    assert f"is a part of run '{root}'" in below
