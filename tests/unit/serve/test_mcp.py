"""Agents as tools of an MCP server, as the SDK's own client sees them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.session import ElicitationFnT
from mcp.client.streamable_http import streamable_http_client

from graphloop import Agent, tool
from graphloop.errors import ConfigError
from graphloop.events import ToolReturned
from graphloop.serve import McpServer
from graphloop.stores import SqliteStore
from graphloop.testing import ScriptedModel
from graphloop.tools import ToolContext
from tests.served_desk import ROOT, started
from tests.warm_python import warm_python

LOOKS_MAX = 10_000
LIMIT_S = 100.0
PAY = {"prompt": "Pay."}


@dataclass(frozen=True)
class Desk:
    """A served folder: its store, its ledger, and where its server listens over HTTP."""

    folder: Path
    url: str

    @asynccontextmanager
    async def client(
        self,
        transport: str,
        mode: str = "auto",
        ask: ElicitationFnT | None = None,
        who: str = "ann",
    ) -> AsyncGenerator[Client]:
        """Connect the SDK's client."""
        to: StdioServerParameters | AbstractAsyncContextManager[Any]
        headers = {"authorization": f"Bearer {who}"}
        async with httpx2.AsyncClient(headers=headers, timeout=LIMIT_S) as http:
            if transport == "stdio":
                words = [*warm_python(), "-m", "tests.served_desk", str(self.folder), "stdio"]
                to = StdioServerParameters(command=words[0], args=words[1:], cwd=ROOT)
            else:
                to = streamable_http_client(self.url, http_client=http)
            async with Client(to, mode=mode, elicitation_callback=ask) as client:
                yield client

    @property
    def paid(self) -> list[str]:
        ledger = self.folder / "ledger"
        return ledger.read_text().split() if ledger.exists() else []


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Start a server on a free port."""
    folder = tmp_path_factory.mktemp("web")
    with started(folder, "http") as url:
        yield Desk(folder, f"{url}mcp")


@pytest.fixture
def desk(web: Desk) -> Desk:
    (web.folder / "ledger").unlink(missing_ok=True)
    return web


async def yes(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
    """Approve what the form asks about."""
    assert params.message == 'Run pay with {"amount": 5}?'
    return types.ElicitResult(action="accept", content={"approve": True, "reason": "fine"})


async def edits(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"approve": True, "edit": '{"amount": 7}'})


async def leaves(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
    return types.ElicitResult(action="cancel")


async def parked(client: Client) -> types.InputRequiredResult:
    """Call the desk, and return what it asks."""
    asked = await client.session.call_tool("desk", PAY, allow_input_required=True)
    assert isinstance(asked, types.InputRequiredResult)
    return asked


def said(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


def answers(asked: types.InputRequiredResult, *, approve: bool = True) -> Any:
    answer = types.ElicitResult(action="accept", content={"approve": approve})
    return dict.fromkeys(asked.input_requests or {}, answer)


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_approved_call_runs_once(desk: Desk, transport: str, mode: str) -> None:
    """The approval is a form of the client, and the answer fits the tool's schema."""
    seen: list[str] = []

    async def told(progress: float, total: float | None, message: str | None) -> None:
        seen.append(f"{progress:.0f} {message}")

    async with desk.client(transport, mode, yes) as client:
        tools = (await client.list_tools()).tools
        result = await client.call_tool("desk", PAY, progress_callback=told)
        assert result.structured_content is not None
        run_id = result.structured_content["run_id"]
        status = await client.call_tool("run_status", {"run_id": run_id})

    assert [tool.name for tool in tools] == ["desk", "sleeper", "run_status"]
    assert said(result) == "Paid."
    assert result.structured_content == {
        "text": "Paid.",
        "end_reason": "completed",
        "run_id": run_id,
    }
    assert desk.paid == ["5"]
    assert said(status) == "done: Paid."
    assert seen[0] == "1 step 1"
    assert any("pay: executing" in line for line in seen)


async def test_an_edit_takes_the_place_of_the_arguments(desk: Desk) -> None:
    async with desk.client("http", ask=edits) as client:
        await client.call_tool("desk", PAY)

    assert desk.paid == ["7"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_form_that_is_left_denies_the_call(desk: Desk, mode: str) -> None:
    """All but a clear yes is a no."""
    async with desk.client("http", mode, leaves) as client:
        result = await client.call_tool("desk", PAY)

    assert said(result) == "Paid."
    assert desk.paid == []


async def test_a_client_that_cannot_be_asked_reads_how_to_answer(desk: Desk) -> None:
    async with desk.client("http", "legacy") as client:
        result = await client.call_tool("desk", PAY)

    assert result.is_error
    assert "graphloop approve" in said(result)
    assert desk.paid == []


async def test_another_process_takes_the_answers(tmp_path: Path) -> None:
    """The run waits in the store; the process that asked is gone."""
    desk = Desk(tmp_path, "")
    async with desk.client("stdio", ask=yes) as client:
        asked = await parked(client)
    assert desk.paid == []

    async with desk.client("stdio", ask=yes) as client:
        result = await client.call_tool(
            "desk", PAY, input_responses=answers(asked), request_state=asked.request_state
        )

    assert said(result) == "Paid."
    assert desk.paid == ["5"]


async def test_a_changed_or_used_state_starts_nothing(desk: Desk) -> None:
    """A client holds the state, and may be hostile."""
    chance = random.Random(7)  # noqa: S311 - a trial must be repeatable
    async with desk.client("http", ask=yes) as client:
        asked, other = await parked(client), await parked(client)
        state = asked.request_state
        assert state is not None
        assert other.request_state is not None
        head, body, _ = state.split(".")
        changed = ["", "v1..", f"{head}.{body}.", f"{head}.{body}.{other.request_state[-43:]}"]
        while len(changed) < 100:
            at = chance.randrange(len(state))
            letter = chance.choice("ABCabc012-_.")
            if letter != state[at]:
                changed.append(state[:at] + letter + state[at + 1 :])

        for text in changed:
            refused = await client.call_tool(
                "desk", PAY, input_responses=answers(asked), request_state=text
            )
            assert refused.is_error, text
            assert "request_state" in said(refused)
        wrong_tool = await client.call_tool(
            "sleeper", PAY, input_responses=answers(asked), request_state=state
        )
        assert wrong_tool.is_error
        assert desk.paid == []

        first, second = [
            await client.call_tool("desk", PAY, input_responses=answers(asked), request_state=state)
            for _ in range(2)
        ]

    assert not first.is_error
    assert second.is_error
    assert first.structured_content is not None
    assert f"run {first.structured_content['run_id']}. Fix: ask" in said(second)
    assert desk.paid == ["5"]


async def test_a_run_belongs_to_its_caller(desk: Desk) -> None:
    """No other caller may answer for it, or ask how it stands."""
    async with desk.client("http", ask=yes, who="ada") as client:
        asked = await parked(client)
        result = await client.call_tool("desk", PAY)
        assert result.structured_content is not None
        run_id = result.structured_content["run_id"]

    async with desk.client("http", ask=yes, who="eve") as client:
        answered = await client.call_tool(
            "desk", PAY, input_responses=answers(asked), request_state=asked.request_state
        )
        status = await client.call_tool("run_status", {"run_id": run_id})

    assert said(answered).startswith("`request_state`: expected one of this caller")
    assert said(status) == f"no run {run_id!r} of this caller."
    assert desk.paid == ["5"]


async def test_a_cancelled_request_aborts_its_run(desk: Desk) -> None:
    """Its journal has an end, and nothing goes on behind the client's back."""
    ended: list[str] = []
    async with desk.client("http") as client:
        call = asyncio.create_task(client.call_tool("sleeper", {"prompt": "Wait."}))
        while not (desk.folder / "waiting").exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.01)
        call.cancel()
        await asyncio.wait([call])
        store = SqliteStore(desk.folder / "runs.db")
        for _ in range(LOOKS_MAX):
            records = await store.overview()
            ended = [one.status for one in records if one.graph == "sleeper"]
            if ended == ["cancelled"]:
                break

    assert ended == ["cancelled"]


async def test_a_foreign_host_is_refused(desk: Desk) -> None:
    """A web page must not reach a server on this machine by a name of its own."""
    async with httpx2.AsyncClient() as client:
        answer = await client.post(desk.url, headers={"host": "evil.example"}, json={})

    assert answer.status_code == 421


@pytest.mark.parametrize("arguments", [{}, {"prompt": " "}, {"prompt": 5}, {"question": "Pay."}])
async def test_arguments_that_do_not_fit_start_no_run(
    desk: Desk, arguments: dict[str, Any]
) -> None:
    async with desk.client("http") as client:
        result = await client.call_tool("desk", arguments)

    assert result.is_error
    assert "`prompt`" in said(result)
    assert f"found {arguments}" in said(result)


def test_two_agents_need_two_names() -> None:
    agent = Agent(ScriptedModel([]), name="desk")

    with pytest.raises(ConfigError, match="different names"):
        McpServer([agent, agent])
    with pytest.raises(ConfigError, match="at least one agent"):
        McpServer([])
    with pytest.raises(ConfigError, match="found 'dsk'"):
        McpServer([agent], descriptions={"dsk": "Pays."})


async def test_runs_have_deps_and_tools_have_descriptions(tmp_path: Path) -> None:
    """A client's model reads the description; the tools of a run get the deps of its id."""

    @tool
    async def owner(context: ToolContext[str]) -> str:
        """Tell whose desk it is."""
        return context.deps

    script = ScriptedModel([{"calls": [{"name": "owner", "arguments": {}}]}, "Told."])
    agent = Agent(script, tools=[owner], name="the desk", deps_type=str)
    store = SqliteStore(tmp_path / "runs.db")
    server = McpServer(
        [agent],
        store=store,
        descriptions={"the_desk": "Knows its owner."},
        deps=lambda run_id: f"run {run_id}",
    )
    async with Client(server.connection) as client:
        listed = {one.name: one.description for one in (await client.list_tools()).tools}
        result = await client.call_tool("the_desk", {"prompt": "Whose?"})
    assert isinstance(result, types.CallToolResult)
    data: dict[str, str] = result.structured_content or {}
    run_id = data["run_id"]
    events = await store.load(run_id)
    await server.aclose()

    assert listed["the_desk"] == "Knows its owner."
    assert [one.content for one in events if isinstance(one, ToolReturned)] == [f"run {run_id}"]
    assert (await store.load(run_id)) == events
    await store.aclose()


async def test_a_run_that_asks_without_end_stays_parked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until 2025-11-25 one call of a client answers; the run waits for a later answer."""
    monkeypatch.setattr("graphloop.serve.mcp.ROUNDS_MAX", 3)
    asked: list[str] = []

    async def answer(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        del context
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"approve": True})

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pay an amount."""
        return f"paid {amount}"

    pays = [{"calls": [{"name": "pay", "arguments": {"amount": at}}]} for at in range(9)]
    store = SqliteStore(tmp_path / "runs.db")
    server = McpServer([Agent(ScriptedModel(pays), tools=[pay], name="desk")], store=store)
    async with Client(server.connection, mode="legacy", elicitation_callback=answer) as client:
        result = await client.call_tool("desk", {"prompt": "Pay."})
    (record,) = await store.overview()
    await store.aclose()

    assert isinstance(result, types.CallToolResult)
    assert result.is_error
    assert "has asked 3 times, and waits." in said(result)
    assert len(asked) == 3
    assert record.status == "parked"


async def test_a_body_above_4_mib_is_refused(desk: Desk) -> None:
    """The SDK's limit holds: a client cannot fill the memory."""
    async with httpx2.AsyncClient(timeout=LIMIT_S) as http:
        answer = await http.post(desk.url, content=b" " * 5 * 1024 * 1024)

    assert answer.status_code == 413
