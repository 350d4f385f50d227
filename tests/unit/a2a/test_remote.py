"""A remote agent as a tool: on the SDK's own server, and on ours, with kills of both sides."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Final

import pytest
from a2a.helpers import new_data_part, new_message, new_task
from a2a.types import Role, TaskState

from graphloop import Agent, check
from graphloop.a2a import remote
from graphloop.a2a.task_questions import asked_by
from graphloop.agent import RunResult
from graphloop.effects import CallTool
from graphloop.errors import ConfigError
from graphloop.policy import approve, decline
from graphloop.questions import Pending
from graphloop.testing import ScriptedModel
from graphloop.tools import ToolContext, ToolProgress
from graphloop.values import ToolResult
from tests.remote_caller import caller
from tests.served_desk import IN_COLOUR, free_port, listening, module_process, started

pytestmark = pytest.mark.deadline(60)


@dataclass(frozen=True)
class Clerk:
    """A remote agent in a process of its own: its folder, and where it listens."""

    folder: Path
    url: str

    @property
    def ledger(self) -> list[str]:
        found = self.folder / "ledger"
        return found.read_text().splitlines() if found.exists() else []

    async def has(self, line: str) -> None:
        """Wait until the ledger has a line."""
        while line not in self.ledger:  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)

    def agent(self, word: str = "") -> Agent:
        return caller(str(self.folder / "runs.db"), self.url, word)

    @contextmanager
    def asking(self, *words: str) -> Generator[ForkServerProcess]:
        """Start a process whose run `r` gives the clerk a task or an answer; kill it at the end."""
        store = str(self.folder / "runs.db")
        with module_process("tests.remote_caller", store, self.url, *words) as (process, _):
            yield process


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clerk]:
    folder, port = tmp_path_factory.mktemp("clerk"), free_port()
    with listening("tests.a2a_agent", str(folder), str(port), port=port) as url:
        yield Clerk(folder, url)


@pytest.fixture
def clerk(office: Clerk) -> Clerk:
    """Return the remote agent, with an empty folder."""
    for file in office.folder.iterdir():
        file.unlink()
    return office


def old(version: str, binding: str = "JSONRPC") -> dict[str, str]:
    """Return an interface of a card."""
    return {"url": "http://127.0.0.1:9/", "protocolBinding": binding, "protocolVersion": version}


def contents(result: RunResult[str]) -> list[object]:
    return [one.content for one in result.messages if isinstance(one, ToolResult)]


def the_question(result: RunResult[str]) -> Pending:
    (pending,) = result.pending
    return pending


def words(pending: Pending) -> str:
    return str(json.loads(pending.arguments)["question"])


async def test_a_task_ends_with_its_answer(clerk: Clerk) -> None:
    """The pieces of a streamed text are joined as they came."""
    result = await clerk.agent("go").generate("Go on.")

    assert contents(result) == ["one two"]
    assert clerk.ledger == ["start go"]


async def test_all_parts_of_an_answer_reach_the_model(clerk: Clerk) -> None:
    """A URL is named, and not loaded; data are text for the model, and data for programs."""
    result = await clerk.agent("parts").generate("Go on.")
    (said,) = [one for one in result.messages if isinstance(one, ToolResult)]
    assert isinstance(said.content, tuple)

    assert [getattr(part, "text", "") for part in said.content] == [
        "three",
        '{"rows": 3}',
        "[file 'a.pdf' at https://else.example/a.pdf]",
        "",
    ]
    assert getattr(said.content[-1], "media_type", "") == "image/png"
    assert json.loads(said.data) == {"rows": 3}


@pytest.mark.parametrize(
    ("word", "said"), [("fail", "is failed. no paper"), ("reject", "is rejected. not mine")]
)
async def test_a_task_without_success_is_an_error(clerk: Clerk, word: str, said: str) -> None:
    result = await clerk.agent(word).generate("Go on.")

    assert contents(result) == [f"The task of remote agent 'clerk' {said}"]
    assert [one.status for one in result.messages if isinstance(one, ToolResult)] == ["error"]


async def test_the_text_of_a_task_comes_as_progress(clerk: Clerk) -> None:
    """The reader sees the text before the task is over."""
    stream = clerk.agent("wait").stream("Go on.")
    shown: list[str] = []
    async for part in stream.full_stream:
        if isinstance(part, ToolProgress):
            shown.append(part.message)
            (clerk.folder / "end").touch()

    assert shown[0] == "one "
    assert contents(await stream.result()) == ["one two"]


async def test_a_task_that_needs_input_parks_the_run(clerk: Clerk) -> None:
    """The answer goes to the same task, from any process with the store."""
    parked = await clerk.agent("ask").generate("Go on.", run_id="r")
    pending = the_question(parked)
    done = await clerk.agent().resume("r", approvals={pending.key: approve(edit={"answer": "42"})})

    assert words(pending) == "clerk asks: Which size?"
    assert pending.server == clerk.url
    assert contents(done) == ["size 42"]
    assert clerk.ledger == ["start ask", "answer 42"]


async def test_a_question_without_a_message_is_answered_once(clerk: Clerk) -> None:
    """The protocol leaves the message out where the client can know what is wanted."""
    parked = await clerk.agent("mute").generate("Go on.", run_id="r")
    pending = the_question(parked)
    done = await clerk.agent().resume("r", approvals={pending.key: approve(edit={"answer": "42"})})

    assert contents(done) == ["size 42"]
    assert clerk.ledger == ["start mute", "answer 42"]


async def test_a_declined_question_cancels_its_task(clerk: Clerk) -> None:
    """An agent that takes any words for a yes must not read a refusal as one."""
    parked = await clerk.agent("ask").generate("Go on.", run_id="r")
    refused = {the_question(parked).key: decline("too dear")}
    done = await clerk.agent().resume("r", approvals=refused)

    assert str(contents(done)[0]).endswith("its task was cancelled. too dear")
    assert clerk.ledger == ["start ask", "cancel"]


async def test_an_authentication_elsewhere_parks_the_run(clerk: Clerk) -> None:
    parked = await clerk.agent("login").generate("Go on.", run_id="r")
    pending = the_question(parked)
    (clerk.folder / "logged-in").touch()
    done = await clerk.agent().resume("r", approvals={pending.key: approve()})

    assert words(pending) == "clerk needs an authentication: Open the page. Say when it is done."
    assert contents(done) == ["in"]


async def test_an_aborted_run_cancels_its_task(clerk: Clerk) -> None:
    stream = clerk.agent("wait").stream("Go on.")
    async for part in stream.full_stream:
        if isinstance(part, ToolProgress):
            stream.abort("enough")
    await stream.result()

    assert clerk.ledger == ["start wait", "cancel"]


async def test_an_aborted_parked_run_cancels_its_task(clerk: Clerk) -> None:
    """The run waits for an answer, and no call of the tool is under way."""
    agent = clerk.agent("ask")
    await agent.generate("Go on.", run_id="r")
    stream = agent.resume_stream("r")
    stream.abort("enough")
    await stream.consume()

    assert clerk.ledger == ["start ask", "cancel"]


async def test_a_late_task_is_cancelled(clerk: Clerk) -> None:
    slow = remote(clerk.url, name="clerk", description="Slow.", timeout_s=1.0)
    calls = [{"name": "clerk", "arguments": {"prompt": "wait"}}]
    agent = Agent(ScriptedModel([{"calls": calls}, "Done."]), tools=[slow])
    result = await agent.generate("Go on.")

    assert "has not ended the task within 1.0 s" in str(contents(result)[0])
    assert clerk.ledger == ["start wait", "cancel"]


async def test_a_killed_caller_goes_on_with_its_task(clerk: Clerk) -> None:
    """The journal has the task's id, so no second task starts."""
    with clerk.asking("wait") as process:
        await clerk.has("start wait")
        while not await kept(clerk):  # noqa: ASYNC110 - another process journals it
            await asyncio.sleep(0.01)
        process.kill()
        process.join()
    (clerk.folder / "end").touch()
    done = await clerk.agent().resume("r")

    assert contents(done) == ["one two"]
    assert clerk.ledger == ["start wait"]


async def test_a_caller_killed_before_it_knows_its_task_finds_it(clerk: Clerk) -> None:
    """The context of the task follows from the run and the call, which the journal has."""
    with clerk.asking("late") as process:
        await clerk.has("start late")
        process.kill()
        process.join()
    assert not await kept(clerk)
    for name in ("go", "end"):
        (clerk.folder / name).touch()
    await clerk.has("begun late")
    done = await clerk.agent().resume("r")

    assert contents(done) == ["one two"]
    assert clerk.ledger == ["start late", "begun late"]


@pytest.mark.parametrize("is_over", [False, True], ids=["under-way", "over"])
async def test_a_caller_killed_after_its_answer_sends_none_again(
    clerk: Clerk, *, is_over: bool
) -> None:
    """The task no longer asks, so the resumed run follows it; the answer counts once."""
    await clerk.agent("ask").generate("Go on.", run_id="r")
    with clerk.asking("", "slow") as process:
        await clerk.has("answer slow")
        process.kill()
        process.join()
    if is_over:
        (clerk.folder / "end").touch()
        await clerk.has("sized")
    resumed = clerk.agent().resume_stream("r")
    async for part in resumed.full_stream:
        if isinstance(part, ToolProgress):
            (clerk.folder / "end").touch()

    assert contents(await resumed.result()) == ["size slow"]
    assert clerk.ledger == ["start ask", "answer slow", "sized"]


async def kept(clerk: Clerk) -> bool:
    """Whether the journal of run `r` has a task's id."""
    run = await clerk.agent().runs(str(clerk.folder / "runs.db")).replay("r")
    return any(isinstance(one, CallTool) and one.answer for one in run.pending.values())


async def test_a_remote_agent_that_is_absent_draws_and_checks() -> None:
    """No card is read before the first call, and the tool counts as acting."""
    tool = remote("http://127.0.0.1:9/", name="clerk", description="Absent.")
    agent = Agent(ScriptedModel([]), tools=[tool])

    assert check(agent.graph).ok
    assert tool.effect == "reconcile"


async def test_an_absent_server_is_an_error_of_the_call() -> None:
    agent = caller("", "http://127.0.0.1:9/", "go").with_options(store=None)
    result = await agent.generate("Go on.")

    assert "no agent card was found at http://127.0.0.1:9/" in str(contents(result)[0])


def test_a_wrong_address_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="begins with https"):
        remote("desk.example", name="desk", description="Wrong.")


async def test_our_own_server_asks_for_approvals(tmp_path: Path) -> None:
    """The answer comes to another process of the server; an edit is JSON text."""
    store, port = str(tmp_path / "caller.db"), free_port()
    with started(tmp_path, "a2a", "desk", port=port) as url:
        parked = await caller(store, url, "Pay.").generate("Go on.", run_id="r")
    pending = the_question(parked)
    yes = {pending.key: approve(edit={"edit": '{"amount": 7}'})}
    with started(tmp_path, "a2a", "desk", port=port) as url:
        done = await caller(store, url).resume("r", approvals=yes)

    assert words(pending) == 'clerk asks: Run pay with {"amount": 5}?'
    assert contents(done) == ["Paid."]
    assert (tmp_path / "ledger").read_text() == "7\n"


async def test_an_edit_that_does_not_fit_our_own_server_is_asked_again(tmp_path: Path) -> None:
    """Each question is a new one, so neither side waits for what has been answered."""
    store, wrong, right = str(tmp_path / "caller.db"), '{"sum": 7}', '{"amount": 7}'
    with started(tmp_path, "a2a", "desk") as url:
        result = await caller(store, url, "Pay.").generate("Go on.", run_id="r")
        asked: list[str] = []
        for edit in (wrong, wrong, right):
            pending = the_question(result)
            asked.append(words(pending))
            answer = {pending.key: approve(edit={"edit": edit})}
            result = await caller(store, url).resume("r", approvals=answer)

    assert contents(result) == ["Paid."]
    assert asked[1] == asked[2]
    assert "amount" in asked[1].splitlines()[0]
    assert asked[1].splitlines()[1] == asked[0]
    assert (tmp_path / "ledger").read_text() == "7\n"


async def test_a_question_of_our_own_server_has_its_own_form(tmp_path: Path) -> None:
    """The question of a tool passes through two agents, word for word, and its answer back."""
    store = str(tmp_path / "caller.db")
    with started(tmp_path, "a2a", "painter") as url:
        parked = await caller(store, url, "Paint.").generate("Go on.", run_id="r")
        pending = the_question(parked)
        red = {pending.key: approve(edit={"colour": "red"})}
        done = await caller(store, url).resume("r", approvals=red)

    assert words(pending) == "clerk asks: paint asks: Which colour?\nAny will do."
    assert pending.parameters == IN_COLOUR
    assert contents(done) == ['painted {"colour":"red"}']


@pytest.mark.parametrize(
    "takes",
    [
        "",
        "5",
        "{",
        '{"properties": 5}',
        '{"properties": {"x": true}}',
        '{"properties": {}, "required": 5}',
        "[" * 9_999,
    ],
)
def test_a_form_of_a_stranger_that_is_none_is_left_out(takes: str) -> None:
    """The question is then one about a call, as of any other server."""
    task = new_task("t", "c", TaskState.TASK_STATE_INPUT_REQUIRED)
    asked = {"key": "k", "tool": "pay", "arguments": "{}", "takes": takes}
    task.status.message.CopyFrom(
        new_message([new_data_part({"approvals": [asked]})], role=Role.ROLE_AGENT)
    )

    assert str(asked_by("clerk", task)) == "clerk asks: Run pay with {}?"


async def test_a_declined_approval_is_told_to_our_own_server(tmp_path: Path) -> None:
    store = str(tmp_path / "caller.db")
    with started(tmp_path, "a2a", "desk") as url:
        parked = await caller(store, url, "Pay.").generate("Go on.", run_id="r")
        no = {the_question(parked).key: decline("too dear")}
        done = await caller(store, url).resume("r", approvals=no)

    assert contents(done) == ["Paid."]
    assert not (tmp_path / "ledger").exists()


async def test_a_server_that_vanishes_is_an_error_of_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model reads that the task may go on there."""
    monkeypatch.setattr("graphloop.a2a.link.PAUSE_S", 0.01)
    port = free_port()
    with listening("tests.a2a_agent", str(tmp_path), str(port), port=port) as url:
        clerk = Clerk(tmp_path, url)
        stream = clerk.agent("wait").stream("Go on.")
        parts = stream.full_stream
        async for part in parts:
            if isinstance(part, ToolProgress):
                break
    async for _ in parts:
        pass

    assert "its server has vanished, and task" in str(contents(await stream.result())[0])


@pytest.mark.parametrize(
    ("card", "said"),
    [
        ({}, "found []"),
        ({"supportedInterfaces": [old("0.3")]}, "found [('JSONRPC', '0.3')]"),
        ({"supportedInterfaces": [old("2.0")]}, "found [('JSONRPC', '2.0')]"),
        ({"supportedInterfaces": [old("1.0", "GRPC")]}, "found [('GRPC', '1.0')]"),
        ({"supportedInterfaces": "none"}, "no agent card was found"),
        (["no card"], "no agent card was found"),
        (
            {
                "supportedInterfaces": [old("1.0")],
                "capabilities": {"extensions": [{"uri": "urn:x", "required": True}]},
            },
            "requires extensions ['urn:x']",
        ),
    ],
)
async def test_a_card_that_does_not_fit_is_told(card: object, said: str) -> None:
    """The error says what was expected, and what the card has."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = json.dumps(card).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        tool = remote(f"http://127.0.0.1:{port}", name="clerk", description="Odd.")
        outcome = await tool.run('{"prompt": "go"}', ToolContext())

    assert outcome.status == "error"
    assert said in str(outcome.content)


JSON: Final = "content-type: application/json\r\n"
ENDLESS: Final = b" " * 4_096


@dataclass
class Hostile:
    """A server of raw HTTP that answers each request by a head, and a body that may never end.

    Attributes:
        heads: the head and the first bytes of the answer to a request for the card, and to others.
        sent: the bytes that the client has taken of endless bodies.
    """

    heads: tuple[tuple[str, bytes], tuple[str, bytes]]
    sent: int = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer a request, and close the connection."""
        asked = await reader.readuntil(b"\r\n\r\n")
        head, body = self.heads[asked.startswith(b"POST")]
        writer.write(f"HTTP/1.1 200 OK\r\n{head}connection: close\r\n\r\n".encode() + body)
        try:
            while not body.endswith(b"}"):
                writer.write(ENDLESS)
                await writer.drain()
                self.sent += len(ENDLESS)
        except ConnectionError:
            pass
        writer.close()


async def told_by(server: Hostile) -> str:
    """Return what a model reads of a call of a hostile server."""
    async with await asyncio.start_server(server.answer, "127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/"
        card = json.dumps({"supportedInterfaces": [{**old("1.0"), "url": url}]}).encode()
        if not server.heads[0][1]:
            server.heads = ((JSON, card), server.heads[1])
        tool = remote(url, name="clerk", description="Hostile.")
        outcome = await tool.run('{"prompt": "go"}', ToolContext())
    assert outcome.status == "error"
    return str(outcome.content)


@pytest.mark.parametrize(
    ("heads", "said"),
    [
        (((JSON, b"{"), (JSON, b"{")), "no agent card was found"),
        (((JSON, b""), (JSON, b"{")), "Whether a task has started there is not known"),
        (((JSON, b""), ("content-type: text/event-stream\r\n", b"data: ")), "is not known"),
        (((JSON + "content-encoding: gzip\r\n", b"{}"), (JSON, b"{}")), "found 'gzip'"),
    ],
    ids=["card", "reply", "events", "compressed"],
)
async def test_no_reply_of_a_hostile_server_fills_the_memory(
    monkeypatch: pytest.MonkeyPatch, heads: tuple[tuple[str, bytes], tuple[str, bytes]], said: str
) -> None:
    """An endless reply ends at a limit; a compressed one, of which few bytes are many, at once."""
    monkeypatch.setattr("graphloop.a2a.link.REPLY_BYTES_MAX", 1_000_000)
    server = Hostile(heads)
    told = await told_by(server)

    assert said in told
    assert "expected a reply" in told
    assert server.sent < 20_000_000
