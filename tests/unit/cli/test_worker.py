"""`graphloop worker`: it drives what other processes submit, until the service manager stops it."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from graphloop import Agent, engines
from graphloop.testing import ScriptedModel
from graphloop.workers import Client
from tests.postgres_server import database
from tests.temporal_server import namespace
from tests.unit.cli.command_line import STORE, here, refused, shown, started, write

DESK = """
from graphloop import Agent, engines
from graphloop.testing import ScriptedModel

agent = Agent(ScriptedModel(["Done."], restart=True), name="support")
"""


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the agent to a directory of its own."""
    monkeypatch.chdir(tmp_path)
    write({"desk.py": DESK})


async def submitted(store: str = "runs.db") -> str:
    """Submit a run to the store, as a web server would, and return its result's text."""
    agent = Agent(ScriptedModel([]), name="support")
    run_id = await agent.runs(store).submit("Refund order 7.")
    async with Client(store, poll_s=0.01) as client:
        ended = await client.result(run_id, timeout_s=60)
    return ended.text


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_drives_submitted_runs_until_it_is_stopped(stop: signal.Signals) -> None:
    """A service manager starts it, and stops it in order."""
    with started("worker", "desk.py", *STORE, "--pin", cwd=Path.cwd()) as process:
        assert process.stderr is not None
        ready = process.stderr.readline()
        text = asyncio.run(submitted())
        process.send_signal(stop)
        _, log = process.communicate()

    assert "support" in ready
    assert text == "Done."
    assert process.returncode == 0
    assert "completed after 1 step" in log
    assert "done" in shown("runs", "--all", *STORE)


def test_a_worker_of_dbos_drives_submitted_runs(postgres: str) -> None:
    """Its first start makes the tables; the program that submits has nothing of DBOS."""
    store = database(postgres)
    options = ("--store", store, "--engine", "dbos")
    with started("worker", "desk.py", *options, cwd=Path.cwd()) as process:
        text = asyncio.run(submitted(store))
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate()

    assert text == "Done."
    assert process.returncode == 0, log


def test_a_worker_of_temporal_drives_submitted_runs(temporal: str) -> None:
    """The program that submits has nothing of Temporal; the store may be a file."""
    options = (*STORE, "--engine", "temporal", "--temporal", temporal)
    name = ("--namespace", namespace(temporal))
    with started("worker", "desk.py", *options, *name, cwd=Path.cwd()) as process:
        text = asyncio.run(submitted())
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate()

    assert text == "Done."
    assert process.returncode == 0, log


def test_a_worker_says_that_temporal_does_not_answer() -> None:
    """Its address is that of a server, or a mistake."""
    at = ("--temporal", "127.0.0.1:1")

    assert "127.0.0.1:1" in refused("worker", "desk.py", *STORE, "--engine", "temporal", *at)
    assert "--engine temporal" in refused("worker", "desk.py", *STORE, *at)


@pytest.mark.parametrize("engine", ["pull", "dbos"])
def test_an_address_that_has_never_answered_ends_the_worker_at_once(engine: str) -> None:
    """It is a mistake more often than an outage, and no log that grows each second tells it."""
    nowhere = "postgresql://app:secret@127.0.0.1:1/runs"
    done = here("worker", "desk.py", "--store", nowhere, "--engine", engine)

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "127.0.0.1:1/runs" in done.stderr
    assert "secret" not in done.stderr


def test_a_mistake_gets_a_hint(tmp_path: Path) -> None:
    """Nothing is served from a place that nobody else can submit to."""
    (tmp_path / "lines").mkdir()

    assert "--store" in refused("worker", "desk.py")
    assert "nowhere" in refused("worker", "desk.py", "--store", "nowhere/runs.db")
    assert "runs.db" in refused("worker", "desk.py", "--store", "lines")


def test_an_engine_that_cannot_serve_the_store_is_refused() -> None:
    """The error says which store it needs."""
    assert "postgresql://" in refused("worker", "desk.py", *STORE, "--engine", "dbos")
    assert "pull" in refused("worker", "desk.py", *STORE, "--engine", "celery")


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        (("--queue", "bulk:many"), "--queue bulk:many: expected a number"),
        (("--queue", "bulk:1:many"), "--queue bulk:1:many: expected a number"),
        (("--queue", "bulk:nan"), "--queue bulk:nan: expected a number"),
        (("--queue", "bulk:1.5"), "--queue bulk:1.5: expected a number"),
        (("--queue", "bulk:0"), "queue 'bulk': slots"),
        (("--queue", ":5"), "--queue :5: expected the name of a queue"),
        (("--queue", "bulk:5", "--queue", "bulk"), "found 'bulk' twice"),
        (("--queue", "bulk", "--weight", "acme"), "--weight acme: expected a number"),
        (("--queue", "b", "--weight", "a:1", "--weight", "a:2"), "found 'a' twice"),
        (("--weight", "acme:3"), "--queue beside it"),
    ],
)
def test_a_queue_that_cannot_be_read_is_refused(options: tuple[str, ...], wrong: str) -> None:
    """Its runs would wait for ever."""
    assert wrong in refused("worker", "desk.py", *STORE, *options)


def test_a_worker_takes_the_runs_of_its_queues() -> None:
    """With slots for each, and a limit for all workers."""
    queues = "--queue", "bulk:1", "--queue", "default:2:5", "--weight", "acme:3"
    with started("worker", "desk.py", *STORE, *queues, cwd=Path.cwd()) as process:
        text = asyncio.run(submitted())
        process.send_signal(signal.SIGTERM)
        process.communicate()

    assert text == "Done."


@pytest.mark.parametrize(
    ("option", "package", "module", "name"),
    [("dbos", "dbos", "dbos", "Dbos"), ("temporal", "temporalio", "temporal_io", "TemporalIo")],
)
def test_an_engine_without_its_package_says_what_to_install(
    option: str, package: str, module: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is an extra of its own."""
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"graphloop.engines.{module}", raising=False)
    monkeypatch.delitem(vars(engines), name, raising=False)

    missing = refused("worker", "desk.py", *STORE, "--engine", option)

    assert f"pip install 'graphloop[{option}]'" in missing
