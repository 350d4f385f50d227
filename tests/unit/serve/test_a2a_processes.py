"""Tasks that two servers of one store know, and what a message may hold; by the SDK's client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import Client, ClientConfig, create_client
from a2a.helpers import get_message_text, new_data_part, new_message, new_text_part
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    InternalError,
    InvalidParamsError,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskNotCancelableError,
    TaskState,
    UnsupportedOperationError,
)

from graphloop import Agent, tool
from graphloop.events import Setup, Started
from graphloop.media import Inline, MediaPart
from graphloop.serve import a2a_app
from graphloop.serve.caller_binding import CallerClaims
from graphloop.serve.served import by_authorization
from graphloop.stores import MemoryStore, SqliteStore
from graphloop.testing import ScriptedModel
from graphloop.values import TextPart, UserMessage
from tests.served_desk import SECRET, agents, started
from tests.unit.serve.test_a2a import KEY, Served, events, question, sent, text

URL = "http://127.0.0.1:8700/"
YES = new_data_part({KEY: {"approved": True}})


@asynccontextmanager
async def served(
    agent: Agent[Any, Any], store: Path, *, streaming: bool = False
) -> AsyncGenerator[Client]:
    """Serve an agent, as a process with its own memory would, and connect a client."""
    opened = SqliteStore(store)
    transport = httpx.ASGITransport(a2a_app(agent, URL, store=opened, secret=SECRET))
    async with httpx.AsyncClient(transport=transport, timeout=100) as http:
        yield await create_client(URL, ClientConfig(httpx_client=http, streaming=streaming))
    await opened.aclose()


async def told(client: Client, task: Task) -> Task:
    return await client.get_task(GetTaskRequest(id=task.id))


async def pays_in(client: Client, context_id: str) -> Task:
    message = new_message([new_text_part("Pay.")], role=Role.ROLE_USER, context_id=context_id)
    asked = client.send_message(SendMessageRequest(message=message))
    return [event.task async for event in asked][-1]


async def test_a_task_that_is_answered_elsewhere_asks_no_more(tmp_path: Path) -> None:
    """Each server tells the truth of the store, and not what it knew last."""
    desk, store = agents(tmp_path)["desk"], tmp_path / "runs.db"
    async with served(desk, store) as here, served(desk, store) as there:
        task = await sent(here, new_text_part("Pay."))
        await sent(there, YES, task=task)
        after = await told(here, task)
        with pytest.raises(UnsupportedOperationError):
            await sent(here, YES, task=task)

    assert after.status.state == TaskState.TASK_STATE_COMPLETED
    assert text(after) == "Paid."
    assert get_message_text(after.history[0]) == "Pay."
    assert Served(tmp_path, URL).paid == ["5"]


async def test_a_task_that_is_cancelled_elsewhere_is_over(tmp_path: Path) -> None:
    desk, store = agents(tmp_path)["desk"], tmp_path / "runs.db"
    async with served(desk, store) as here, served(desk, store) as there:
        task = await sent(here, new_text_part("Pay."))
        await there.cancel_task(CancelTaskRequest(id=task.id))
        after = await told(here, task)

    assert after.status.state == TaskState.TASK_STATE_CANCELED


async def test_a_task_that_works_elsewhere_is_known(tmp_path: Path) -> None:
    """Its client may poll any server; only that of the run can end it or stream it."""
    sleeper, store = agents(tmp_path)["sleeper"], tmp_path / "runs.db"
    elsewhere = served(sleeper, store, streaming=True)
    async with served(sleeper, store) as here, elsewhere as there:
        message = new_message([new_text_part("Wait.")], role=Role.ROLE_USER)
        request = SendMessageRequest(message=message)
        request.configuration.return_immediately = True
        (task,) = [event.task async for event in here.send_message(request)]
        while not (tmp_path / "waiting").exists():  # noqa: ASYNC110 - the tool makes it
            await asyncio.sleep(0)

        works = await told(there, task)
        with pytest.raises(TaskNotCancelableError, match="another process"):
            await there.cancel_task(CancelTaskRequest(id=task.id))
        subscription = SubscribeToTaskRequest(id=task.id)
        with pytest.raises(UnsupportedOperationError, match="poll"):
            _ = [event async for event in there.subscribe(subscription)]
        still = await told(here, task)
        await here.cancel_task(CancelTaskRequest(id=task.id))
        after = await told(there, task)

    assert works.status.state == still.status.state == TaskState.TASK_STATE_WORKING
    assert after.status.state == TaskState.TASK_STATE_CANCELED


async def killed(folder: Path, name: str) -> Task:
    """Return a task whose server was killed while its tool waited."""
    message = new_message([new_text_part("Wait.")], role=Role.ROLE_USER)
    request = SendMessageRequest(message=message)
    request.configuration.return_immediately = True
    with started(folder, "a2a", name) as url:
        async with Served(folder, url).client() as client:
            (task,) = [event.task async for event in client.send_message(request)]
            while not (folder / "waiting").exists():  # noqa: ASYNC110 - another process makes it
                await asyncio.sleep(0.01)
    (folder / "waiting").unlink()
    return task


async def test_a_task_whose_server_was_killed_goes_on_when_it_is_asked_for(tmp_path: Path) -> None:
    """The next server resumes its run, which does not repeat the call."""
    task = await killed(tmp_path, "sleeper")
    with started(tmp_path, "a2a", "sleeper") as url:
        async with Served(tmp_path, url).client() as client:
            first = after = await told(client, task)
            while after.status.state == TaskState.TASK_STATE_WORKING:
                after = await told(client, task)

    assert first.status.state == TaskState.TASK_STATE_WORKING
    assert first.context_id == task.context_id
    assert not (tmp_path / "waiting").exists()
    assert (after.status.state, text(after)) == (TaskState.TASK_STATE_COMPLETED, "Up.")


async def test_a_task_goes_on_whose_question_the_operator_has_answered(tmp_path: Path) -> None:
    """As by `graphloop approve`; its client reads the end when it asks for the task."""
    desk, store = agents(tmp_path)["desk"], tmp_path / "runs.db"
    async with served(desk, store) as client:
        after = task = await sent(client, new_text_part("Pay."))
        operator = SqliteStore(store)
        await desk.runs(operator).approve(task.id, KEY, answer=True)
        await operator.aclose()
        while after.status.state != TaskState.TASK_STATE_COMPLETED:
            after = await told(client, task)

    assert text(after) == "Paid."
    assert Served(tmp_path, URL).paid == ["5"]


async def test_deps_that_fail_at_the_next_server_tell_only_their_type(
    tmp_path: Path,
) -> None:
    """A run whose process was killed is resumed with `deps` of the user's function."""

    def fails(_: str) -> str:
        raise LookupError("the password is 1234")

    agent, store = Agent(ScriptedModel(["Hi."]), deps_type=str), SqliteStore(tmp_path / "runs.db")
    run_id = CallerClaims(SECRET).new_run(by_authorization({}))
    await store.append(run_id, 1, Started(1.0, run_id, agent.name, (), Setup()))
    await store.aclose()
    store = SqliteStore(tmp_path / "runs.db")
    app = a2a_app(agent, URL, store=store, secret=SECRET, deps=fails)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as http:
        client = await create_client(URL, ClientConfig(httpx_client=http, streaming=False))
        with pytest.raises(InternalError) as caught:
            await told(client, Task(id=run_id))
    await store.aclose()

    assert caught.value.message == "LookupError"


async def test_a_task_that_goes_on_at_the_next_server_can_be_cancelled(tmp_path: Path) -> None:
    task = await killed(tmp_path, "dozer")
    with started(tmp_path, "a2a", "dozer") as url:
        async with Served(tmp_path, url).client() as client:
            await told(client, task)
            while not (tmp_path / "waiting").exists():  # noqa: ASYNC110 - another process makes it
                await asyncio.sleep(0.01)
            ended = await client.cancel_task(CancelTaskRequest(id=task.id))
            after = await told(client, task)

    assert ended.status.state == after.status.state == TaskState.TASK_STATE_CANCELED


@pytest.mark.parametrize("context_id", ["trip 7/ä", "c" * 96])
async def test_a_context_outlives_its_server(tmp_path: Path, context_id: str) -> None:
    """A client answers in the context that it has given, and the next server knows it."""
    desk, store = agents(tmp_path)["desk"], tmp_path / "runs.db"
    async with served(desk, store) as client:
        asked = await pays_in(client, context_id)
    async with served(desk, store) as client:
        kept = await told(client, asked)
        after = await sent(client, YES, task=asked)

    assert question(kept) == question(asked)
    assert kept.context_id == asked.context_id == context_id
    assert after.status.state == TaskState.TASK_STATE_COMPLETED
    assert Served(tmp_path, URL).paid == ["5"]


async def test_a_context_that_is_too_long_is_refused(tmp_path: Path) -> None:
    """It is a part of the run's id, which has a largest length."""
    async with served(agents(tmp_path)["desk"], tmp_path / "runs.db") as client:
        with pytest.raises(InvalidParamsError, match="96 bytes, found 97"):
            await pays_in(client, "c" * 97)


async def test_files_and_data_reach_the_model() -> None:
    """A picture is a part of the question, and whole numbers stay whole."""
    store = MemoryStore()
    transport = httpx.ASGITransport(a2a_app(Agent(ScriptedModel(["Seen."])), URL, store=store))
    async with httpx.AsyncClient(transport=transport) as http:
        client = await create_client(URL, ClientConfig(httpx_client=http, streaming=False))
        picture = Part(raw=b"\x89PNG", media_type="image/png", filename="a.png")
        await sent(client, new_text_part("What?"), picture, new_data_part({"page": 5}))
    (record,) = await store.overview()
    started = next(iter(await store.load(record.run_id)))

    assert isinstance(started, Started)
    parts = (
        TextPart("What?"),
        MediaPart("image/png", Inline(b"\x89PNG"), "a.png"),
        TextPart('{"page": 5}'),
    )
    assert list(started.messages) == [UserMessage(parts)]


async def test_text_that_comes_while_a_piece_is_sent_goes_out_as_one(tmp_path: Path) -> None:
    """The SDK copies a task for each piece; a long answer would cost the square of its length."""
    long = " ".join(["word"] * 1_000)
    call = {"text": long, "calls": [{"name": "look"}]}

    @tool
    async def look() -> str:
        """Look."""
        return "seen"

    agent = Agent(ScriptedModel([call, long]), tools=[look])
    async with served(agent, tmp_path / "runs.db", streaming=True) as client:
        told = await events(client, new_text_part("Talk."))

    pieces = [event.artifact_update for event in told if event.HasField("artifact_update")]
    texts = ["".join(part.text for part in one.artifact.parts) for one in pieces]
    anew = [at for at, piece in enumerate(pieces) if not piece.append]
    assert len(anew) == 2
    assert "".join(texts[: anew[1]]) == "".join(texts[anew[1] :]) == long
    assert len(pieces) < 100


async def test_a_url_starts_no_run(tmp_path: Path) -> None:
    """No message of a client makes this machine load a URL."""
    async with served(agents(tmp_path)["desk"], tmp_path / "runs.db") as client:
        with pytest.raises(InvalidParamsError, match="no URL"):
            await sent(client, new_text_part("See."), Part(url="http://a.example/b.png"))


async def test_a_typed_answer_is_its_json_text(tmp_path: Path) -> None:
    """The model gives it by a call, and says no words; a later process tells the same."""
    answer = {"calls": [{"name": "final_answer", "arguments": {"value": [5, 6]}}]}
    agent = Agent(ScriptedModel([answer]), output_type=list[int])
    async with served(agent, tmp_path / "runs.db") as client:
        task = await sent(client, new_text_part("Count."))
    async with served(agent, tmp_path / "runs.db") as client:
        later = await told(client, task)

    assert json.loads(text(task)) == [5, 6]
    assert text(later) == text(task)


async def test_an_agent_without_tools_has_a_skill() -> None:
    """The protocol wants one on each card."""
    app = a2a_app(Agent(ScriptedModel([]), name="poet"), URL, description="Writes poems.")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=URL) as http:
        card = (await http.get(".well-known/agent-card.json")).json()

    assert card["description"] == "Writes poems."
    assert [skill["description"] for skill in card["skills"]] == ["Writes poems."]
