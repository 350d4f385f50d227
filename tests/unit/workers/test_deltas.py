"""A follower gets the text of a reply while the model streams it, and each event once."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Literal

import pytest

from graphloop import Agent
from graphloop.errors import ConfigError
from graphloop.events import ModelReplied
from graphloop.providers import StreamItem, TextDelta
from graphloop.stores import PostgresStore, Relays
from graphloop.testing import ScriptedModel
from graphloop.values import AssistantMessage, FinishReason, ModelRequest, Reply, TextPart
from graphloop.workers import Client, Streamed, Worker, client, deltas
from tests.postgres_server import database
from tests.unit.workers.stream_process import TURNS, agent
from tests.warm_python import warm_python

RECONNECTS = 20
KILLS = 3


class Speaker:
    """A model that goes on speaking until it has been heard."""

    def __init__(self, heard: asyncio.Event, piece: str) -> None:
        self._heard = heard
        self._piece = piece
        self.label = "speaker"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Reply."""
        text = ""
        while not self._heard.is_set():
            text += self._piece
            yield TextDelta(self._piece)
            try:
                await asyncio.wait_for(self._heard.wait(), 0.01)
            except TimeoutError:
                continue
        yield Reply(AssistantMessage((TextPart(text),)), FinishReason.STOP)

    def session(self) -> Speaker:
        """Return the model itself, which keeps nothing of a run."""
        return self

    async def aclose(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize("piece", ["word ", "\0\U0001f600" * 900], ids=["short", "long"])
async def test_a_follower_gets_text_before_its_event(postgres: str, piece: str) -> None:
    """Each text is a part of the reply at its place, whatever its size and characters."""
    dsn, heard = database(postgres), asyncio.Event()
    speaker = Agent(Speaker(heard, piece), name="speaker")
    run_id = await speaker.runs(dsn).submit("Speak.")
    worker = Worker([speaker], PostgresStore(dsn), poll_s=0.02)
    serving = asyncio.create_task(worker.serve())
    texts, events = list[Streamed](), list[object]()
    async with Client(dsn, poll_s=0.05) as client:
        async for one in client.stream(run_id, deltas=True):
            if isinstance(one, Streamed):
                texts.append(one)
                heard.set()
                assert not any(isinstance(event, ModelReplied) for event in events)
            else:
                events.append(one.event)
                assert one.seq == len(events)
    worker.stop()
    await serving

    (reply,) = [event.reply for event in events if isinstance(event, ModelReplied)]
    said = reply.message.text
    assert texts
    for text in texts:
        assert said[text.at :].startswith(text.text)
        assert len(text.text.encode()) <= 7500


async def test_no_event_is_lost_or_repeated(postgres: str) -> None:
    """Over reconnects of the follower and kills of the worker, each event comes once, in order."""
    dsn = database(postgres)
    run_id = await agent().runs(dsn).submit("Look.")
    command = [*warm_python(), "-m", "tests.unit.workers.stream_process", dsn]
    worker = await asyncio.to_thread(subprocess.Popen, command)
    seen, reconnects, kills, is_over = list[object](), 0, 0, False
    try:
        async with Client(dsn, poll_s=0.02) as client:
            while not is_over:
                is_over = True
                async with aclosing(client.stream(run_id, after=len(seen), deltas=True)) as parts:
                    async for one in parts:
                        if isinstance(one, Streamed):
                            continue
                        seen.append(one.event)
                        assert one.seq == len(seen)
                        if kills < KILLS and len(seen) == 8 * (kills + 1):
                            kills += 1
                            worker.kill()
                            worker.wait()
                            worker = await asyncio.to_thread(subprocess.Popen, command)
                        if reconnects < RECONNECTS:
                            reconnects, is_over = reconnects + 1, False
                            break
            ended = await client.result(run_id)
    finally:
        worker.kill()
        worker.wait()

    async with aclosing_store(dsn) as store:
        assert seen == [*await store.load(run_id)]
    assert (ended.status, kills, reconnects) == ("done", KILLS, RECONNECTS)
    assert sum(isinstance(one, ModelReplied) for one in seen) == TURNS + 1


def aclosing_store(dsn: str) -> aclosing[PostgresStore]:
    return aclosing(PostgresStore(dsn))


@pytest.mark.parametrize("broken", ["say", "heard"])
async def test_a_relay_that_fails_is_told_once_and_the_run_goes_on(
    postgres: str, broken: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A delta may be lost, a run may not; and an operator learns why no text comes."""
    dsn, heard, failures = database(postgres), asyncio.Event(), list[str]()
    speaker = Agent(Speaker(heard, "word "), name="speaker")
    run_id = await speaker.runs(dsn).submit("Speak.")
    store = PostgresStore(dsn)

    async def say(topic: str, text: str) -> None:
        failures.append(text)
        if len(failures) == 2:
            heard.set()
        raise OSError(f"no relay for {topic}")

    async def heard_of(topic: str) -> AsyncGenerator[str]:
        heard.set()
        raise OSError(f"no relay for {topic}")
        yield ""

    monkeypatch.setattr(store, broken, {"say": say, "heard": heard_of}[broken])
    worker = Worker([speaker], store, poll_s=0.02)
    serving = asyncio.create_task(worker.serve())
    async with Client(dsn, poll_s=0.05) as client:
        async for _ in client.stream(run_id, deltas=True):
            pass
        ended = await client.result(run_id)
    worker.stop()
    await serving

    assert ended.status == "done"
    told = [one.getMessage() for one in caplog.records if "deltas" in one.getMessage()]
    assert len(told) == 1
    assert "no relay for" in told[0]


@pytest.mark.parametrize("place", ["here", "anywhere"])
async def test_a_child_run_has_deltas_of_its_own(
    place: Literal["here", "anywhere"], postgres: str
) -> None:
    """Its worker tells them, beside its parent or not; the parent's follower gets none."""
    dsn, heard = database(postgres), asyncio.Event()
    speaker = Agent(Speaker(heard, "word "), name="speaker")
    asks = {"calls": [{"name": "speaker", "arguments": {"prompt": "Speak."}}]}
    root = Agent(
        ScriptedModel([asks, "Done."], restart=True),
        name="root",
        tools=[speaker.as_tool(place=place)],
    )
    run_id = await root.runs(dsn).submit("Let it speak.")
    stores = [PostgresStore(dsn), PostgresStore(dsn)]
    workers = [Worker([root], store, poll_s=0.02) for store in stores]
    serving = [asyncio.create_task(worker.serve()) for worker in workers]
    texts = list[Streamed]()
    async with Client(dsn, poll_s=0.05) as client:
        while f"{run_id}/c0.0" not in await stores[0].runs():  # noqa: ASYNC110 - workers do it
            await asyncio.sleep(0.01)
        async for part in client.stream(f"{run_id}/c0.0", deltas=True):
            if isinstance(part, Streamed):
                texts.append(part)
                heard.set()
        assert (await client.result(run_id)).text == "Done."
    for worker in workers:
        worker.stop()
    await asyncio.gather(*serving)

    assert texts
    assert set("".join(one.text for one in texts).split()) == {"word"}
    (replied,) = [
        at
        for at, event in enumerate(await stores[0].load(f"{run_id}/c0.0"))
        if isinstance(event, ModelReplied)
    ]
    assert {one.seq for one in texts} == {replied}


async def test_a_follower_that_was_there_first_gets_the_text_of_a_new_leg(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker that takes the run has not heard of it before: it is told as the leg begins."""
    dsn, heard, asked = database(postgres), asyncio.Event(), asyncio.Event()

    async def follow(store: Relays, run_id: str) -> None:
        await deltas.follow(store, run_id)
        asked.set()

    monkeypatch.setattr(client, "FOLLOWED_S", 3600.0)
    monkeypatch.setattr(client, "follow", follow)
    speaker = Agent(Speaker(heard, "word "), name="speaker")
    run_id = await speaker.runs(dsn).submit("Speak.")

    async def read() -> None:
        async with Client(dsn, poll_s=0.05) as follower:
            async for part in follower.stream(run_id, deltas=True):
                if isinstance(part, Streamed):
                    heard.set()

    reading = asyncio.create_task(read())
    await asked.wait()
    worker = Worker([speaker], PostgresStore(dsn), poll_s=0.02)
    serving = asyncio.create_task(worker.serve())
    await reading
    worker.stop()
    await serving


async def test_a_store_that_tells_nobody_refuses_deltas(tmp_path: Path) -> None:
    """A follower would wait in vain."""
    async with Client(tmp_path / "runs.db") as client:
        with pytest.raises(ConfigError, match="`deltas`: expected a store that tells"):
            client.stream("r", deltas=True)
