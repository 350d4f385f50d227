"""The approval web app answers over HTTP for a run whose agent it does not know."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn

from examples.approval import agent as payer
from examples.approval_web import app
from graphloop.errors import StoreError
from graphloop.stores import MemoryStore, PostgresStore, SqliteStore
from graphloop.testing import ScriptedModel
from graphloop.workers import Client, Worker
from tests.postgres_server import Server


@asynccontextmanager
async def served(client: Client) -> AsyncGenerator[httpx.AsyncClient]:
    """Serve the web app on a free port, and yield a client of it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(app.build(client), log_level="error", lifespan="off")
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve([listening]))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        async with httpx.AsyncClient(base_url=url, timeout=60) as browser:
            yield browser
        server.should_exit = True
        await serving


async def test_a_person_approves_on_a_page_and_the_run_goes_on(tmp_path: Path) -> None:
    """The refund is made by the worker; a second click and a wrong address change nothing."""
    path = tmp_path / "runs.db"
    store = SqliteStore(path)
    agent = payer.build(ScriptedModel([payer.reply, payer.reply]))
    run_id = await agent.runs(store).submit(payer.PROMPT, run_id="refunds")
    worker = Worker([agent], store)
    assert await worker.drive(run_id) == "parked"

    async with Client(path) as client, served(client) as browser:
        page = (await browser.get("/")).text
        assert "B-42" in page
        assert "A-17" not in page
        for _ in range(2):
            assert (await browser.post("/refunds?key=c0.1", data={"answer": "yes"})).is_redirect
        refused = await browser.post("/refunds?key=c0.1", data={"answer": "no"})
        assert (refused.status_code, refused.text) == (409, "Another answer was first, and counts.")
        assert (await browser.post("/refunds", data={"answer": "yes"})).status_code == 400
        assert (await browser.post("/refunds?key=c0.1", content=b"\xff")).status_code == 400
        assert (await browser.post("/other?key=c0.1", data={"answer": "yes"})).status_code == 409
        assert (await browser.post("/refunds?key=c9.9", data={"answer": "yes"})).status_code == 409

        assert await worker.drive(run_id) == "over"
        assert (await browser.get("/")).text == "Nothing waits."

    results = (await agent.runs(store).replay(run_id)).record.steps[0].tool_results
    assert [one.text for one in results] == [
        "20 dollars paid back for A-17",
        "250 dollars paid back for B-42",
    ]
    await store.aclose()


async def test_a_database_that_is_away_is_told_and_comes_back(
    stoppable_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that fails says when to come again; one that waits for long is no better."""
    server = stoppable_server
    patient, hasty = PostgresStore(server.dsn), PostgresStore(server.dsn, patience_s=0.001)
    agent = payer.build(ScriptedModel([payer.reply, payer.reply]))
    run_id = await agent.runs(patient).submit(payer.PROMPT, run_id="refunds")
    assert await Worker([agent], patient).drive(run_id) == "parked"

    for store, wait_s in ((patient, 0.01), (hasty, app.WAIT_S)):
        async with Client(store) as client, served(client) as browser:
            assert "B-42" in (await browser.get("/")).text
            server.stop()
            with monkeypatch.context() as patched:
                patched.setattr(app, "WAIT_S", wait_s)
                page = await browser.get("/")
                answer = await browser.post("/refunds?key=c0.1", data={"answer": "yes"})
            server.start()
            assert "B-42" in (await browser.get("/")).text

        assert [one.status_code for one in (page, answer)] == [503, 503]
        assert [one.headers["Retry-After"] for one in (page, answer)] == ["10", "10"]
        assert str(server.port) not in page.text
        assert answer.text.endswith("Your answer may still count.")

    async with Client(hasty) as client, served(client) as browser:
        assert (await browser.post("/refunds?key=c0.1", data={"answer": "yes"})).is_redirect
        assert (await browser.get("/")).text == "Nothing waits."
    for store in (patient, hasty):
        await store.aclose()


async def test_a_store_that_fails_otherwise_is_not_away() -> None:
    """Whoever tries again has no better luck: the server logs the error."""
    store = MemoryStore()

    async def fail(*_: object, **__: object) -> object:
        raise StoreError("damaged")

    vars(store)["overview"] = vars(store)["page"] = fail
    transport = httpx.ASGITransport(app.build(Client(store)), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as browser:
        assert (await browser.get("/")).status_code == 500
