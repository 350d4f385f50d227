"""`graphloop submit` and `graphloop steer`: runs that a worker drives, from a shell."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from graphloop.events import Queued, Started
from graphloop.stores import SqliteStore
from graphloop.values import Message, UserMessage
from graphloop.workers import Client
from tests.unit.cli.command_line import STORE, refused, shown, started, write

DESK = """
from graphloop import Agent
from graphloop.testing import ScriptedModel

agent = Agent(ScriptedModel(["Done.", "And that."], restart=True), name="support")
"""


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the agent to a directory of its own."""
    monkeypatch.chdir(tmp_path)
    write({"desk.py": DESK})


async def texts_of(run_id: str) -> tuple[str, list[Message]]:
    """Wait for the end of a run, and return its answer and what users have said in it."""
    async with Client("runs.db", poll_s=0.01) as client:
        ended = await client.result(run_id, timeout_s=60)
    store = SqliteStore(Path("runs.db"))
    events = await store.load(run_id)
    await store.aclose()
    first = events[0]
    assert isinstance(first, Started)
    return ended.text, [
        *first.messages,
        *[event.message for event in events if isinstance(event, Queued)],
    ]


def test_a_submitted_run_is_driven_by_a_worker_with_what_was_said_meanwhile() -> None:
    """The command prints the id alone, so that a script can keep it."""
    place = ("--queue", "bulk", "--tenant", "acme", "--priority", "5", "--deadline", "600")
    run_id = shown("submit", "desk.py", "Refund order 7.", *STORE, *place).strip()
    told = shown("steer", run_id[:8], "Be quick.", "--follow-up", *STORE)
    waits = shown("runs", *STORE)
    with started("worker", "desk.py", *STORE, cwd=Path.cwd()) as process:
        text, said = asyncio.run(texts_of(run_id))
        process.terminate()
        process.communicate()

    assert told == f"run {run_id} has the message\n"
    assert "bulk" in waits
    assert text == "And that."
    assert [one.content for one in said if isinstance(one, UserMessage)] == [
        "Refund order 7.",
        "Be quick.",
    ]


def test_a_command_that_is_repeated_submits_once() -> None:
    """The same id with another question is a mistake."""
    first = shown("submit", "desk.py", "Refund order 7.", *STORE, "--run-id", "order-7")
    again = shown("submit", "desk.py", "Refund order 7.", *STORE, "--run-id", "order-7")
    listed = shown("runs", *STORE, "--json")

    assert first == again == "order-7\n"
    assert listed.count('"run_id"') == 1
    assert "order-7" in refused("submit", "desk.py", "Refund 8.", *STORE, "--run-id", "order-7")


def test_what_no_store_takes_is_refused() -> None:
    """Each message names the option."""
    run_id = shown("submit", "desk.py", "Refund order 7.", *STORE).strip()

    assert "deadline" in refused("submit", "desk.py", "Go.", *STORE, "--deadline", "-1")
    assert "--store" in refused("submit", "desk.py", "Go.")
    assert "MESSAGE" in refused("steer", run_id, " ", *STORE)
    write({"folder/notes.txt": "mine"})
    for where in ("folder", "journals"):
        told = refused("submit", "desk.py", "Go.", "--store", where)
        assert "expected a database, which workers share" in told
    assert "expected a folder at 'gone'" in refused(
        "submit", "desk.py", "Go.", "--store", "gone/x.db"
    )
    assert "no run that has it" in refused("steer", "nobody", "Go.", *STORE)
