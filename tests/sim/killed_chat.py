"""Processes that have a chat until it is done, or until the kernel kills them after some events.

Each run of a tool leaves a line in the file `ledger`. Run by `test_killed_chat.py`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import AsyncGenerator
from pathlib import Path

from graphloop import Agent, ToolContext, tool
from graphloop.errors import StoreError
from graphloop.events import Event
from graphloop.providers.base import StreamItem
from graphloop.stores.base import Store
from graphloop.stores.sqlite.store import SqliteStore
from graphloop.values import ModelRequest, UserMessage
from tests.mortal_store import Fate, MortalSqliteStore
from tests.planned_model import call, line

__all__ = ["CHAT", "build", "contend", "question", "talk_by_turns"]

CHAT = "user-42"


def question(number: int) -> str:
    """Return what the user asks."""
    return f"question {number}"


class Echo:
    """A model that notes each question down by a tool, and then answers it."""

    label = "echo"

    def session(self) -> Echo:
        """Return itself: it remembers nothing."""
        return self

    async def aclose(self) -> None:
        """Do nothing."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Say what follows from the last question and what was said since."""
        since = 1
        while not isinstance(asked := request.messages[-since], UserMessage):
            since += 1
        if since > 1:
            yield line(f"answer to {asked.content!s}")
        else:
            yield line([call("note", text=str(asked.content))])


def build(store: Store, ledger: Path) -> Agent:
    """Return the agent, as every process makes it anew."""

    @tool(effect="at_least_once")
    def note(text: str, context: ToolContext) -> str:
        """Note a text."""
        with ledger.open("a", encoding="utf-8") as file:
            file.write(f"{context.run_id} {text}\n")
        return f"noted {text}"

    return Agent(Echo(), tools=[note], instructions="Note each question down.", store=store)


class DoomedStore(MortalSqliteStore):
    """A database whose process is killed once it has kept so many events."""

    def __init__(self, disk: SqliteStore, events: int) -> None:
        super().__init__(disk, Fate())
        self._left = events

    async def append(self, run_id: str, seq: int, *events: Event) -> None:
        """Keep events, and die after the last that this process may keep."""
        await super().append(run_id, seq, *events)
        self._left -= len(events)
        if self._left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)


def talk_by_turns(directory: Path, questions: int, events: int) -> None:
    """Have a chat in one process after another, and write the number of kills into `kills`.

    Each process is forked here and inherits nothing of the chat. It inherits what the first
    question of a process imports, which costs more than the question.

    Args:
        directory: where the database and the ledger are.
        questions: how many questions the chat has in the end.
        events: the number of events after which each process is killed.

    Raises:
        RuntimeError: a process failed; its traceback is printed.
    """
    elsewhere = directory / "elsewhere"
    elsewhere.mkdir()
    asyncio.run(_talk(elsewhere, 1, sys.maxsize))
    kills = 0
    while (ended := _ended(directory, questions, events)) == -signal.SIGKILL:
        kills += 1
    if ended != 0:
        raise RuntimeError(f"a process ended with status {ended}")
    (directory / "kills").write_text(str(kills), encoding="utf-8")


def _ended(directory: Path, questions: int, events: int) -> int:
    """Return the exit status of a process that has the chat: 0, 1, or minus a signal."""
    process = os.fork()
    if process == 0:
        status = 1
        try:
            asyncio.run(_talk(directory, questions, events))
            status = 0
        except Exception:  # noqa: BLE001 - the process ends here, and its parent raises
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


async def _talk(directory: Path, questions: int, events: int) -> None:
    """Ask all questions that were not asked yet, and finish the last."""
    disk = SqliteStore(directory / "chats.db", durability="process")
    try:
        chat = build(DoomedStore(disk, events), directory / "ledger").chat(CHAT)
        for number in range(len(await chat.run_ids()), questions):
            await chat.send(question(number))
        await chat.send()
    finally:
        await disk.aclose()


def contend(directory: Path, name: str, questions: int) -> None:
    """Ask questions in a chat in which other processes ask, too.

    Args:
        directory: where the database and the ledger are.
        name: the name of this process, which is a part of each of its questions.
        questions: how many questions it asks.
    """
    asyncio.run(_contend(directory, name, questions))


async def _contend(directory: Path, name: str, questions: int) -> None:
    disk = SqliteStore(directory / "chats.db", durability="process")
    try:
        chat = build(disk, directory / "ledger").chat(CHAT)
        for number in range(questions):
            while True:
                try:
                    await chat.send(f"{name} {number}")
                except StoreError:
                    continue
                break
    finally:
        await disk.aclose()
