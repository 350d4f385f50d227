"""How calls of a served agent end: by errors, by questions that are left, and with the server."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import mcp_types as types
import pytest
from mcp import Client

from graphloop import Agent, tool
from graphloop.errors import ConfigError
from graphloop.serve import McpServer
from graphloop.serve.caller_binding import CallerClaims
from graphloop.stores import MemoryStore, SqliteStore
from graphloop.testing import ScriptedModel
from tests.served_desk import ROOT, agents, free_port, module_process
from tests.unit.serve.test_mcp import Desk, said

MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])
HIDDEN = "the password is 1234"
CALL = {"name": "sleeper", "arguments": {"prompt": "Wait."}}
CLIENT = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def fails(*_: object) -> NoReturn:
    raise LookupError(HIDDEN)


async def called(server: McpServer, name: str, mode: str = "auto", **how: Any) -> Any:
    """Call an agent of a server in this process."""
    async with Client(server.connection, mode=mode, **how) as client:
        return await client.call_tool(name, {"prompt": "Pay."})


async def status_is(store: SqliteStore | MemoryStore, word: str) -> bool:
    """Look until the one run of a store has a status."""
    for _ in range(10_000):
        if [one.status for one in await store.overview()] == [word]:
            return True
        await asyncio.sleep(0)
    return False


@MODES
async def test_errors_of_the_users_functions_tell_only_their_type(mode: str) -> None:
    """The message may hold what only the operator may read."""
    agent = Agent(ScriptedModel(["Hello."]), verify=fails, name="desk")
    needy = Agent(ScriptedModel(["Hello."]), deps_type=str, name="desk")
    lost = Agent(ScriptedModel([LookupError(HIDDEN)]), name="desk")
    servers = [
        McpServer([agent]),
        McpServer([lost]),
        McpServer([needy], deps=fails),
        McpServer([agent], caller=fails),
    ]

    results = [await called(server, "desk", mode) for server in servers]

    assert all(result.is_error for result in results)
    assert all(said(result).endswith("failed: LookupError.") for result in results)


async def test_an_answer_that_is_not_complete_is_an_error(tmp_path: Path) -> None:
    """A client's model must not take no words for an answer."""
    agent = Agent(ScriptedModel([{"calls": [{"name": "look"}]}]), name="desk", max_steps=1)

    @tool
    async def look() -> str:
        """Look."""
        return "seen"

    result = await called(McpServer([agent.with_options(tools=[look])]), "desk")

    assert result.is_error
    assert said(result).endswith("ended: max_steps.")
    assert result.structured_content["end_reason"] == "max_steps"


async def test_a_typed_answer_is_its_json_text() -> None:
    """The model gives it by a call, and says no words; the same is told later."""
    store = MemoryStore()
    answer = {"calls": [{"name": "final_answer", "arguments": {"value": [5, 6]}}]}
    server = McpServer(
        [Agent(ScriptedModel([answer]), output_type=list[int], name="desk")], store=store
    )
    async with Client(server.connection) as client:
        result = await client.call_tool("desk", {"prompt": "Count."})
        assert result.structured_content is not None
        run_id = result.structured_content["run_id"]
        status = await client.call_tool("run_status", {"run_id": run_id})

    assert json.loads(said(result)) == [5, 6]
    assert result.structured_content["text"] == said(result)
    assert said(status) == f"done: {said(result)}"


@MODES
async def test_an_edit_that_does_not_fit_is_asked_again(tmp_path: Path, mode: str) -> None:
    """The run would wait for ever otherwise: the client has no other way to its question."""
    asked: list[str] = []

    async def edits(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        edit = '{"amount": 7}' if len(asked) == 2 else '{"sum": 7}'
        return types.ElicitResult(action="accept", content={"approve": True, "edit": edit})

    server = McpServer([agents(tmp_path)["desk"]])
    result = await called(server, "desk", mode, elicitation_callback=edits)

    assert said(result) == "Paid."
    assert Desk(tmp_path, "").paid == ["7"]
    assert "Fix:" not in asked[0]
    assert "amount" in asked[1]
    assert asked[1].endswith(asked[0])


async def test_edits_that_never_fit_deny_the_call(tmp_path: Path) -> None:
    async def edits(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"approve": True, "edit": "5"})

    server = McpServer([agents(tmp_path)["desk"]])
    result = await called(server, "desk", "legacy", elicitation_callback=edits)

    assert said(result) == "Paid."
    assert Desk(tmp_path, "").paid == []


async def test_a_client_that_fails_to_ask_denies_the_call(tmp_path: Path) -> None:
    async def ask(context: object, params: types.ElicitRequestParams) -> types.ErrorData:
        return types.ErrorData(code=-32603, message="no terminal")

    server = McpServer([agents(tmp_path)["desk"]])
    result = await called(server, "desk", "legacy", elicitation_callback=ask)

    assert said(result) == "Paid."
    assert Desk(tmp_path, "").paid == []


async def test_a_question_that_is_cancelled_ends_its_run(tmp_path: Path) -> None:
    """Until 2025-11-25 only the open call can be answered, so nothing could end the run later."""
    asked = asyncio.Event()

    async def never(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.set()
        return await asyncio.Future()

    store = MemoryStore()
    server = McpServer([agents(tmp_path)["desk"]], store=store)
    async with Client(server.connection, mode="legacy", elicitation_callback=never) as client:
        call = asyncio.create_task(client.call_tool("desk", {"prompt": "Pay."}))
        await asked.wait()
        assert await status_is(store, "parked")
        call.cancel()
        ended = await status_is(store, "cancelled")
    await server.aclose()

    assert ended


async def test_the_agents_own_store_keeps_the_runs(tmp_path: Path) -> None:
    """An agent that survives a crash does so too when it is served."""
    place = str(tmp_path / "own.db")
    agent = Agent(ScriptedModel(["Hello."]), name="desk", store=place)
    server = McpServer([agent, Agent(ScriptedModel([]), name="other")])

    await called(server, "desk")
    await server.aclose()

    store = SqliteStore(place)
    assert [one.status for one in await store.overview()] == ["done"]
    await store.aclose()


def test_agents_of_two_stores_need_one() -> None:
    """The error names no store, which may be a URL with a password."""
    urls = [f"postgresql://ada:secret@{host}/runs" for host in "ab"]
    first, second = [Agent(ScriptedModel([]), name=url[-6], store=url) for url in urls]

    with pytest.raises(ConfigError, match="share a store") as error:
        McpServer([first, second])

    assert "secret" not in str(error.value)


async def test_the_status_of_a_run_that_is_over_has_its_answer(tmp_path: Path) -> None:
    """A client that could not be asked gets the answer that an operator let the run find."""
    store = SqliteStore(tmp_path / "runs.db")
    agent = agents(tmp_path)["desk"]
    server = McpServer([agent], store=store)
    async with Client(server.connection, mode="legacy") as client:
        refused = await client.call_tool("desk", {"prompt": "Pay."})
        (record,) = await store.overview()
        await agent.runs(store).approve(record.run_id, record.asks[0].key)
        await agent.runs(store).resume(record.run_id)
        status = await client.call_tool("run_status", {"run_id": record.run_id})
    await store.aclose()

    assert record.run_id in said(refused)
    assert said(status) == "done: Paid."
    assert status.structured_content == {
        "run_id": record.run_id,
        "status": "done",
        "waits_for": [],
        "text": "Paid.",
        "end_reason": "completed",
    }


async def test_without_a_store_no_command_is_named(tmp_path: Path) -> None:
    """No other process can read the memory of this one."""
    result = await called(McpServer([agents(tmp_path)["desk"]]), "desk", "legacy")

    assert "Fix: a client with elicitation" in said(result)


@pytest.mark.parametrize("run_id", ["", "-", "é-é", "\ud800-\ud800"])
def test_a_run_id_may_be_any_text(run_id: str) -> None:
    """JSON text can hold half a surrogate pair."""
    assert not CallerClaims("secret").owns("ann", run_id)


def _line(method: str, params: Mapping[str, object] | None = None, number: int = 0) -> bytes:
    known: dict[str, object] = {"id": number} if number else {}
    message = {"jsonrpc": "2.0", "method": method, **known, "params": params or {}}
    return json.dumps(message).encode() + b"\n"


async def test_ctrl_c_ends_a_server_at_a_terminal(tmp_path: Path) -> None:
    """Its standard input stays open; the call under way is aborted, and all output is protocol."""
    code, told, logged = await asyncio.to_thread(_interrupted, tmp_path)

    assert code != 0
    assert b"a tool prints" in logged
    assert all("jsonrpc" in json.loads(line) for line in told.splitlines())
    assert await _statuses(tmp_path) == ["cancelled"]


def _interrupted(folder: Path) -> tuple[int, bytes, bytes]:
    """Interrupt a server with a call under way; return its exit code, and all that it writes."""
    words = [sys.executable, "-m", "tests.served_desk", str(folder), "stdio"]
    pipe = subprocess.PIPE
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        words, stdin=pipe, stdout=pipe, stderr=pipe, cwd=ROOT, env=env
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(_line("initialize", CLIENT, 1))
        process.stdin.write(_line("notifications/initialized"))
        process.stdin.write(_line("tools/call", CALL, 2))
        process.stdin.flush()
        while not (folder / "waiting").exists():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        told, logged = process.stdout.read(), process.stderr.read()
        return process.wait(), told, logged


@MODES
async def test_ctrl_c_ends_a_server_over_http(tmp_path: Path, mode: str) -> None:
    """It does not wait for the call under way, which may never end."""
    port = free_port()
    words = (str(tmp_path), "http", str(port))
    with module_process("tests.served_desk", *words) as (process, told):
        while b"running on" not in await asyncio.to_thread(told.readline):
            pass
        desk = Desk(tmp_path, f"http://127.0.0.1:{port}/mcp")
        call = asyncio.create_task(_wait_at(desk, mode))
        while not (tmp_path / "waiting").exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.01)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGINT)
        await asyncio.to_thread(process.join)
        call.cancel()
        await asyncio.wait([call])

    assert await _statuses(tmp_path) == ["cancelled"]


async def _wait_at(desk: Desk, mode: str) -> None:
    async with desk.client("http", mode) as client:
        await client.call_tool("sleeper", {"prompt": "Wait."})


async def _statuses(folder: Path) -> list[str]:
    store = SqliteStore(folder / "runs.db")
    found: list[str] = [one.status for one in await store.overview()]
    await store.aclose()
    return found


async def test_a_port_that_is_taken_is_named() -> None:
    server = McpServer([Agent(ScriptedModel([]), name="desk")])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(ConfigError, match=rf"`port`.*{port}"):
            await server.http(port)
