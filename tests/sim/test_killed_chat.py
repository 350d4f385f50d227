"""A chat whose process is killed again and again loses nothing and asks nothing twice."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Final

import pytest

from graphloop.agent import Chat
from graphloop.stores import PostgresStore
from graphloop.stores.base import Store
from graphloop.stores.jsonl import JsonlStore
from graphloop.stores.memory import MemoryStore
from graphloop.stores.postgres.schema import opened
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.values import Message, UserMessage
from tests.forked import server
from tests.postgres_server import database
from tests.sim.killed_chat import CHAT, build, contend, question, talk_by_turns
from tests.sizes import NIGHTLY, sized

QUESTIONS = sized(80, 200)
COUNTED = 120
"""How many questions write bytes that are counted."""

TURNS = 20
"""How many questions each of several processes asks."""

EVENTS = range(2, 14) if NIGHTLY else (10,)
"""After how many events each process is killed; with one, no process could start a question."""


async def calm(directory: Path) -> tuple[Message, ...]:
    """Return the chat that nobody kills."""
    chat = build(MemoryStore(), directory / "calm").chat(CHAT)
    for number in range(QUESTIONS):
        await chat.send(question(number))
    return await chat.messages()


async def left_in(directory: Path) -> tuple[tuple[Message, ...], int]:
    """Return the chat in a database, and how many runs are there."""
    store = SqliteStore(directory / "chats.db")
    try:
        chat = build(store, directory / "after").chat(CHAT)
        return await chat.messages(), len(await store.runs())
    finally:
        await store.aclose()


@pytest.mark.timeout(0 if NIGHTLY else 180)
@pytest.mark.parametrize("events", EVENTS)
def test_a_chat_killed_after_each_tenth_event_is_the_chat_that_nobody_kills(
    events: int, tmp_path: Path
) -> None:
    """Many questions over one real file, and a real SIGKILL after each so many events."""
    process = server().Process(target=talk_by_turns, args=(tmp_path, QUESTIONS, events))
    process.start()
    process.join()

    messages, runs = asyncio.run(left_in(tmp_path))

    assert 0 == process.exitcode
    assert int((tmp_path / "kills").read_text(encoding="utf-8")) >= QUESTIONS * 4 // events
    assert QUESTIONS == runs
    assert asyncio.run(calm(tmp_path)) == messages
    asked = [one.content for one in messages if isinstance(one, UserMessage)]
    assert [question(number) for number in range(QUESTIONS)] == asked
    calmly = (tmp_path / "calm").read_text(encoding="utf-8")
    assert calmly == (tmp_path / "ledger").read_text(encoding="utf-8")


@pytest.mark.timeout(180)
def test_processes_that_ask_at_once_take_turns(tmp_path: Path) -> None:
    """A refused question is not in the chat; sent again, it is there once."""
    names = ("ada", "bob", "eve")
    processes = [server().Process(target=contend, args=(tmp_path, name, TURNS)) for name in names]
    for process in processes:
        process.start()
    for process in processes:
        process.join()

    messages, runs = asyncio.run(left_in(tmp_path))

    assert [0, 0, 0] == [process.exitcode for process in processes]
    asked = [str(one.content) for one in messages if isinstance(one, UserMessage)]
    assert len(names) * TURNS == runs == len(asked)
    for name in names:
        own = [text for text in asked if text.startswith(name)]
        assert [f"{name} {number}" for number in range(TURNS)] == own
    ledger = (tmp_path / "ledger").read_text(encoding="utf-8").splitlines()
    assert asked == [line.partition(" ")[2] for line in ledger]


async def steps_of(work: Callable[[], Awaitable[object]]) -> int:
    """Return how many Python functions some work calls in this thread."""
    called = 0

    def seen(frame: FrameType, event: str, _: object) -> None:
        nonlocal called
        called += event == "call"

    sys.setprofile(seen)
    try:
        await work()
    finally:
        sys.setprofile(None)
    return called


STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda _: MemoryStore(),
    "jsonl": JsonlStore,
    "sqlite": lambda directory: SqliteStore(directory / "chats.db"),
}


@pytest.mark.parametrize("opened_anew", [False, True])
@pytest.mark.parametrize("kind", STORES)
async def test_one_more_question_costs_what_it_costs_at_the_start(
    kind: str, opened_anew: bool, tmp_path: Path
) -> None:
    """The cost is counted in calls of Python functions, since a clock measures the machine.

    Copies of the conversation are left out: each request to a model holds it, too. So is reading
    it from a disk, which a chat that is opened anew has to do, and the threads of a database.
    """
    store = STORES[kind](tmp_path / "store")
    agent = build(store, tmp_path / "ledger")
    chat, costs = agent.chat(CHAT), list[int]()

    async def ask() -> None:
        asking: Chat = agent.chat(CHAT) if opened_anew and kind == "memory" else chat
        await asking.send(question(len(costs)))

    for _ in range(QUESTIONS):
        costs.append(await steps_of(ask))
    await agent.aclose()

    first, last = sorted(costs[5:25])[10], sorted(costs[-20:])[10]
    assert last <= first * 1.1


LENGTHS: Final = "SELECT length(data) FROM entry UNION ALL SELECT length(data) FROM blob"


def bytes_in(directory: Path, dsn: str) -> int:
    """Return the bytes of all events and blobs that a store has."""
    file = directory / "chats.db"
    if dsn:
        with opened(dsn) as link:
            return sum(length for (length,) in link.execute(LENGTHS).fetchall())
    if not file.exists():
        return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    with closing(sqlite3.connect(file)) as connection:
        return sum(length for (length,) in connection.execute(LENGTHS))


@pytest.mark.parametrize("kind", ["jsonl", "sqlite", "postgres"])
async def test_one_more_question_writes_what_it_writes_at_the_start(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The journals grow with the conversation, not with its square.

    Each second question is asked through a new object, which reads the conversation first. A part
    of it is written now and then, so a stretch of questions is compared with another.
    """
    dsn = database(request.getfixturevalue("postgres")) if kind == "postgres" else ""
    store = PostgresStore(dsn) if dsn else STORES[kind](tmp_path / "store")
    agent = build(store, tmp_path / "ledger")
    chat, sizes = agent.chat(CHAT), [0]

    for number in range(COUNTED):
        asking: Chat = agent.chat(CHAT) if number % 2 else chat
        await asking.send(question(number))
        sizes.append(bytes_in(tmp_path / "store", dsn))
    said = await chat.messages()
    await agent.aclose()

    asked = [one.content for one in said if isinstance(one, UserMessage)]
    assert [question(number) for number in range(COUNTED)] == asked
    at_the_start, at_the_end = sizes[45] - sizes[5], sizes[COUNTED] - sizes[COUNTED - 40]
    assert at_the_end <= at_the_start * 1.1
