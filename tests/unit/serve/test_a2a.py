"""An agent as a server of the Agent2Agent protocol, as the SDK's own client sees it."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from a2a.client import Client, ClientConfig, create_client
from a2a.helpers import (
    get_artifact_text,
    get_data_parts,
    get_message_text,
    new_data_part,
    new_message,
    new_text_part,
)
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    InternalError,
    InvalidParamsError,
    ListTasksRequest,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskNotCancelableError,
    TaskNotFoundError,
    TaskState,
    UnsupportedOperationError,
)

from graphloop import Agent
from graphloop.errors import ConfigError
from graphloop.serve import a2a_app
from graphloop.stores import SqliteStore
from graphloop.testing import ScriptedModel
from tests.served_desk import ROOT, agents, started

LOOKS_MAX = 10_000
LIMIT_S = 100.0
KEY = "c0.0"
"""The key of the first call of a run."""


@dataclass(frozen=True)
class Served:
    """A served agent: its folder, and where its server listens."""

    folder: Path
    url: str

    @asynccontextmanager
    async def client(self, who: str = "ann", *, streaming: bool = False) -> AsyncGenerator[Client]:
        """Connect the SDK's client."""
        headers = {"authorization": f"Bearer {who}"}
        async with httpx.AsyncClient(headers=headers, timeout=LIMIT_S) as http:
            config = ClientConfig(streaming=streaming, httpx_client=http)
            yield await create_client(self.url, config)

    @property
    def paid(self) -> list[str]:
        ledger = self.folder / "ledger"
        return ledger.read_text().split() if ledger.exists() else []

    async def statuses(self) -> dict[str, str]:
        """Return the status of each run in the store."""
        store = SqliteStore(self.folder / "runs.db")
        found: dict[str, str] = {one.run_id: one.status for one in await store.overview()}
        await store.aclose()
        return found


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("a2a")
    with started(folder, "a2a", "desk") as url:
        yield Served(folder, url)


@pytest.fixture
def desk(web: Served) -> Served:
    (web.folder / "ledger").unlink(missing_ok=True)
    return web


async def events(client: Client, *parts: Part, task: Task | None = None) -> list[StreamResponse]:
    """Send a message, for a task if one is given, and return all that the server says."""
    known = {} if task is None else {"task_id": task.id, "context_id": task.context_id}
    message = new_message(list(parts), role=Role.ROLE_USER, **known)
    return [one async for one in client.send_message(SendMessageRequest(message=message))]


async def sent(client: Client, *parts: Part, task: Task | None = None) -> Task:
    """Send a message without streaming, and return the task."""
    (event,) = await events(client, *parts, task=task)
    return event.task


async def asks(client: Client) -> tuple[Task, dict[str, Any]]:
    """Ask for a payment, and return the task and the question about it."""
    task = await sent(client, new_text_part("Pay."))
    assert task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    return task, question(task)


def question(task: Task) -> dict[str, Any]:
    """Return the one approval that a task waits for."""
    (data,) = get_data_parts(task.status.message.parts)
    (approval,) = data["approvals"]
    return cast("dict[str, Any]", approval)


def text(task: Task) -> str:
    (artifact,) = task.artifacts
    assert artifact.artifact_id == "answer"
    return get_artifact_text(artifact)


async def test_the_card_tells_name_skills_and_version(desk: Served) -> None:
    async with httpx.AsyncClient() as http:
        answer = await http.get(f"{desk.url}.well-known/agent-card.json")
    card = answer.json()

    assert card["name"] == "desk"
    assert [(one["name"], one["description"]) for one in card["skills"]] == [
        ("pay", "Pay an amount.")
    ]
    assert card["version"] == agents(desk.folder)["desk"].revision
    assert card["supportedInterfaces"][0]["url"] == desk.url


async def test_an_approved_call_runs_once_with_its_integers(desk: Served) -> None:
    """Arguments are JSON text: in a data part, 5 would be 5.0."""
    async with desk.client() as client:
        task, asked = await asks(client)
        assert get_message_text(task.status.message) == 'Run pay with {"amount": 5}?'
        assert (asked["tool"], asked["arguments"]) == ("pay", '{"amount": 5}')
        assert text(task) == "I will pay."
        assert desk.paid == []
        yes = new_data_part({asked["key"]: {"approved": True, "reason": "fine"}})
        done = await sent(client, yes, task=task)
        again = await client.get_task(GetTaskRequest(id=task.id))

    assert done.status.state == TaskState.TASK_STATE_COMPLETED
    assert text(done) == text(again) == "Paid."
    assert desk.paid == ["5"]


async def test_a_stream_tells_states_and_the_text_of_each_turn(desk: Served) -> None:
    """The artifact of a turn begins anew; each later piece of the turn appends to it."""
    states: list[TaskState] = []
    turns: list[str] = []
    async with desk.client(streaming=True) as client:
        first, *rest = await events(client, new_text_part("Pay."))
        asked = question(Task(status=rest[-1].status_update.status))
        yes = new_data_part({asked["key"]: {"approved": True}})
        for event in (*rest, *await events(client, yes, task=first.task)):
            if event.HasField("status_update"):
                states.append(event.status_update.status.state)
            else:
                update = event.artifact_update
                assert update.artifact.artifact_id == "answer"
                said = turns.pop() if update.append else ""
                turns.append(said + get_artifact_text(update.artifact))
        done = await client.get_task(GetTaskRequest(id=first.task.id))

    assert first.task.status.state == TaskState.TASK_STATE_SUBMITTED
    assert states == [
        TaskState.TASK_STATE_WORKING,
        TaskState.TASK_STATE_INPUT_REQUIRED,
        TaskState.TASK_STATE_WORKING,
        TaskState.TASK_STATE_COMPLETED,
    ]
    assert turns == ["I will pay.", "Paid."]
    assert text(done) == "Paid."
    assert len(done.artifacts[0].parts) == 1


@pytest.mark.parametrize(
    "answer",
    [
        new_text_part("yes, approved"),
        new_data_part({KEY: {"approved": False, "reason": "too much"}}),
        new_data_part({KEY: {"approved": "true"}}),
        new_data_part({KEY: {"approved": 1}}),
        new_data_part({KEY: True}),
        new_data_part({}),
        new_data_part([True]),
    ],
    ids=["words", "no", "text", "number", "no object", "nothing", "a list"],
)
async def test_all_but_a_clear_yes_denies_the_call(desk: Served, answer: Part) -> None:
    async with desk.client() as client:
        task, asked = await asks(client)
        assert asked["key"] == KEY
        assert asked["arguments"] == '{"amount": 5}'
        done = await sent(client, answer, task=task)

    assert done.status.state == TaskState.TASK_STATE_COMPLETED
    assert desk.paid == []


async def test_an_edit_takes_the_place_of_the_arguments(desk: Served) -> None:
    async with desk.client() as client:
        task, asked = await asks(client)
        edit = {"approved": True, "edit": '{"amount": 7}'}
        done = await sent(client, new_data_part({asked["key"]: edit}), task=task)

    assert done.status.state == TaskState.TASK_STATE_COMPLETED
    assert desk.paid == ["7"]


@pytest.mark.parametrize(
    "answer",
    [
        {KEY: {"approved": True, "edit": '{"amount": "all"}'}},
        {"9.9": {"approved": True}},
    ],
)
async def test_an_answer_that_does_not_fit_is_asked_again(desk: Served, answer: object) -> None:
    """Nothing runs, nothing is denied, and the task still takes an answer."""
    async with desk.client() as client:
        task, asked = await asks(client)
        again = await sent(client, new_data_part(answer), task=task)
        assert again.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        assert question(again) == asked
        assert desk.paid == []
        done = await sent(client, new_data_part({KEY: {"approved": True}}), task=task)

    assert done.status.state == TaskState.TASK_STATE_COMPLETED
    assert desk.paid == ["5"]


async def test_an_answered_task_takes_no_message(desk: Served) -> None:
    """An answer that comes twice runs the call once."""
    async with desk.client() as client:
        task, asked = await asks(client)
        yes = new_data_part({asked["key"]: {"approved": True}})
        await sent(client, yes, task=task)
        with pytest.raises(UnsupportedOperationError):
            await sent(client, yes, task=task)

    assert desk.paid == ["5"]


async def test_two_answers_at_once_run_the_call_once(desk: Served) -> None:
    """A client may send its answer again before it has heard of the first."""
    async with desk.client() as client:
        task, asked = await asks(client)
        yes = new_data_part({asked["key"]: {"approved": True}})
        both = [sent(client, yes, task=task) for _ in range(2)]
        await asyncio.gather(*both, return_exceptions=True)
        done = await client.get_task(GetTaskRequest(id=task.id))

    assert done.status.state == TaskState.TASK_STATE_COMPLETED
    assert desk.paid == ["5"]


async def test_a_changed_task_id_names_no_task(desk: Served) -> None:
    """A client holds the id, and may be hostile."""
    chance = random.Random(7)  # noqa: S311 - a trial must be repeatable
    async with desk.client() as client:
        task, asked = await asks(client)
        yes = new_data_part({asked["key"]: {"approved": True}})
        for _ in range(100):
            at = chance.randrange(len(task.id))
            letter = chance.choice([one for one in "abc012-_" if one != task.id[at]])
            name = task.id[:at] + letter + task.id[at + 1 :]
            with pytest.raises(TaskNotFoundError):
                await sent(client, yes, task=Task(id=name))

    assert desk.paid == []


async def test_a_task_belongs_to_its_caller(desk: Served) -> None:
    """For another caller it does not exist."""
    async with desk.client("ada") as client:
        task, asked = await asks(client)

    async with desk.client("eve") as client:
        yes = new_data_part({asked["key"]: {"approved": True}})
        with pytest.raises(TaskNotFoundError):
            await sent(client, yes, task=task)
        with pytest.raises(TaskNotFoundError):
            await client.get_task(GetTaskRequest(id=task.id))
        with pytest.raises(TaskNotFoundError):
            await client.cancel_task(CancelTaskRequest(id=task.id))
        listed = await client.list_tasks(ListTasksRequest())

    assert list(listed.tasks) == []
    assert desk.paid == []
    assert (await desk.statuses())[task.id] == "parked"


@pytest.mark.parametrize("name", ["unknown", "", "0-0"])
async def test_an_unknown_task_is_refused(desk: Served, name: str) -> None:
    async with desk.client() as client:
        with pytest.raises((TaskNotFoundError, InvalidParamsError)):
            await client.get_task(GetTaskRequest(id=name))
        if name:
            with pytest.raises(TaskNotFoundError):
                await sent(client, new_text_part("Pay."), task=Task(id=name))


async def test_a_message_without_text_starts_no_run(desk: Served) -> None:
    before = await desk.statuses()
    async with desk.client() as client:
        for part in (new_text_part(" "), new_data_part({"a": 1}), Part(raw=b"x")):
            with pytest.raises(InvalidParamsError):
                await sent(client, part)

    assert await desk.statuses() == before


async def test_a_cancelled_question_ends_its_run(desk: Served) -> None:
    async with desk.client() as client:
        task, asked = await asks(client)
        ended = await client.cancel_task(CancelTaskRequest(id=task.id))
        yes = new_data_part({asked["key"]: {"approved": True}})
        with pytest.raises(UnsupportedOperationError):
            await sent(client, yes, task=task)
        with pytest.raises(TaskNotCancelableError):
            await client.cancel_task(CancelTaskRequest(id=task.id))

    assert ended.status.state == TaskState.TASK_STATE_CANCELED
    assert (await desk.statuses())[task.id] == "cancelled"
    assert desk.paid == []


async def test_a_cancelled_task_aborts_its_run(tmp_path: Path) -> None:
    """The tool is stopped, and the stream of the task tells the end."""
    with started(tmp_path, "a2a", "sleeper") as url:
        sleeper = Served(tmp_path, url)
        async with sleeper.client(streaming=True) as client:
            watched = asyncio.create_task(events(client, new_text_part("Wait.")))
            while not (tmp_path / "waiting").exists():  # noqa: ASYNC110 - another process makes it
                await asyncio.sleep(0.01)
            tasks: Sequence[Task] = ()
            while not tasks:  # The tool may wait before the task is listed.
                tasks = (await client.list_tasks(ListTasksRequest())).tasks
            (task,) = tasks
            ended = await client.cancel_task(CancelTaskRequest(id=task.id))
            last = (await watched)[-1]

        assert ended.status.state == TaskState.TASK_STATE_CANCELED
        assert last.status_update.status.state == TaskState.TASK_STATE_CANCELED
        assert await sleeper.statuses() == {task.id: "cancelled"}


async def test_another_process_takes_the_answer(tmp_path: Path) -> None:
    """The run waits in the store; the process that asked is killed."""
    with started(tmp_path, "a2a", "desk") as url:
        async with Served(tmp_path, url).client() as client:
            task, asked = await asks(client)
            dropped, _ = await asks(client)
    with started(tmp_path, "a2a", "desk") as url:
        desk = Served(tmp_path, url)
        async with desk.client() as client:
            found = await client.get_task(GetTaskRequest(id=task.id))
            yes = new_data_part({asked["key"]: {"approved": True}})
            done = await sent(client, yes, task=task)
            ended = await client.cancel_task(CancelTaskRequest(id=dropped.id))
        async with desk.client("eve") as client:
            with pytest.raises(TaskNotFoundError):
                await client.get_task(GetTaskRequest(id=task.id))

    assert question(found) == asked
    assert done.status.state == TaskState.TASK_STATE_COMPLETED
    assert desk.paid == ["5"]
    assert ended.status.state == TaskState.TASK_STATE_CANCELED
    assert (await desk.statuses())[dropped.id] == "cancelled"


async def test_another_process_answers_for_a_finished_task(tmp_path: Path) -> None:
    """The store has the run: its answer is the task's, and another caller has no such task."""
    with started(tmp_path, "a2a", "desk") as url:
        async with Served(tmp_path, url).client() as client:
            task, asked = await asks(client)
            done = await sent(client, new_data_part({asked["key"]: {"approved": True}}), task=task)
            dropped, _ = await asks(client)
            await client.cancel_task(CancelTaskRequest(id=dropped.id))
    with started(tmp_path, "a2a", "desk") as url:
        async with Served(tmp_path, url).client() as client:
            found = await client.get_task(GetTaskRequest(id=task.id))
            ended = await client.get_task(GetTaskRequest(id=dropped.id))
            with pytest.raises(UnsupportedOperationError):
                await sent(client, new_text_part("Again."), task=found)
        async with Served(tmp_path, url).client("eve") as client:
            with pytest.raises(TaskNotFoundError):
                await client.get_task(GetTaskRequest(id=task.id))

    assert found.status.state == done.status.state == TaskState.TASK_STATE_COMPLETED
    assert text(found) == text(done) == "Paid."
    assert ended.status.state == TaskState.TASK_STATE_CANCELED


@pytest.mark.parametrize(("limit", "kept"), [("TASKS_MAX", 2), ("TASKS_BYTES_MAX", 1)])
async def test_memory_keeps_the_latest_tasks_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, kept: int
) -> None:
    """A task that memory has dropped is answered from the store, also if it waits."""
    monkeypatch.setattr(f"graphloop.serve.a2a.{limit}", 2)
    url = "http://127.0.0.1:8700/"
    app = a2a_app(agents(tmp_path)["desk"], url, store=tmp_path / "runs.db")
    async with (
        httpx.AsyncClient(transport=httpx.ASGITransport(app)) as http,
        app.router.lifespan_context(app),
    ):
        config = ClientConfig(streaming=False, httpx_client=http)
        client = await create_client(url, config)
        tasks = [(await asks(client))[0] for _ in range(5)]
        listed = await client.list_tasks(ListTasksRequest())
        found = await client.get_task(GetTaskRequest(id=tasks[0].id))
        yes = new_data_part({question(found)["key"]: {"approved": True}})
        done = await sent(client, yes, task=found)

    assert {one.id for one in listed.tasks} == {one.id for one in tasks[-kept:]}
    assert done.status.state == TaskState.TASK_STATE_COMPLETED


@pytest.mark.parametrize("chunked", [True, False])
async def test_a_body_above_4_mib_is_refused(desk: Served, chunked: bool) -> None:
    async def pieces() -> AsyncGenerator[bytes]:
        for _ in range(5):
            yield b" " * 1024 * 1024

    async with httpx.AsyncClient(timeout=LIMIT_S) as http:
        answer = await http.post(desk.url, content=pieces() if chunked else b" " * 5 * 1024 * 1024)

    assert answer.status_code == 413


async def test_the_end_of_the_server_ends_its_runs(tmp_path: Path) -> None:
    """Its runs have an answer for each call, and the store that it opened is closed."""
    url = "http://127.0.0.1:8700/"
    app = a2a_app(agents(tmp_path)["sleeper"], url, store=tmp_path / "runs.db")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as http:
        config = ClientConfig(streaming=False, polling=True, httpx_client=http)
        client = await create_client(url, config)
        async with app.router.lifespan_context(app):
            task = await sent(client, new_text_part("Wait."))
            while not (tmp_path / "waiting").exists():  # noqa: ASYNC110 - the tool makes it
                await asyncio.sleep(0.01)

    assert await Served(tmp_path, url).statuses() == {task.id: "cancelled"}


async def test_a_foreign_host_is_refused(desk: Served) -> None:
    """A web page must not reach a server on this machine by a name of its own."""
    async with httpx.AsyncClient() as client:
        answer = await client.post(desk.url, headers={"host": "evil.example"}, json={})

    assert answer.status_code == 400


async def test_a_form_of_a_web_page_starts_no_run(desk: Served) -> None:
    """A browser sends text to any address; the protocol's header it sends only if allowed to."""
    before = await desk.statuses()
    message = {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "Pay."}]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    async with httpx.AsyncClient() as client:
        plain = {"content-type": "text/plain"}
        answer = await client.post(desk.url, headers=plain, content=json.dumps(call))

    assert "version" in answer.json()["error"]["message"]
    assert await desk.statuses() == before


async def test_an_agent_with_functions_of_its_own_is_served() -> None:
    """No file could hold the functions; the card's version needs only their names."""

    def is_good(_: object) -> bool:
        return True

    agent = Agent(ScriptedModel(["Hello."]), verify=is_good, stop_when=is_good)
    url = "http://127.0.0.1:8700/"
    transport = httpx.ASGITransport(a2a_app(agent, url))

    async with httpx.AsyncClient(transport=transport, base_url=url) as http:
        card = (await http.get(".well-known/agent-card.json")).json()

    assert card["version"] == agent.revision


async def test_an_error_tells_only_its_type() -> None:
    """What a provider or a function says may be for the operator only."""

    def fails(_: object) -> str:
        raise LookupError("the password is 1234")

    agent = Agent(ScriptedModel([]), deps_type=str)
    url = "http://127.0.0.1:8700/"
    said: list[str] = []
    for app in (
        a2a_app(agent, url, caller=fails),
        a2a_app(agent, url, deps=fails),
        a2a_app(agent, url, deps=str),
    ):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=url) as http:
            client = await create_client(url, ClientConfig(streaming=False, httpx_client=http))
            try:
                task = await sent(client, new_text_part("Hi."))
            except InternalError as error:
                said.append(error.message)
            else:
                said.append(get_message_text(task.status.message))

    assert said == [
        "LookupError",
        "run failed: LookupError.",
        "run failed: ScriptExhausted.",
    ]


def test_a_missing_extra_is_named() -> None:
    """A module that is None in `sys.modules` is not installed, for Python's imports."""
    program = (
        "import sys; sys.modules['a2a'] = None\n"
        "import graphloop.serve\n"
        "graphloop.serve.McpServer\n"
        "graphloop.serve.a2a_app"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=False, capture_output=True
    )

    assert b"Fix: pip install 'graphloop[a2a]'" in done.stderr


def test_an_empty_secret_is_refused() -> None:
    with pytest.raises(ConfigError, match="secret"):
        a2a_app(Agent(ScriptedModel([])), "http://127.0.0.1:8700/", secret="")
