"""The artifact of a task under way: its pieces, and clients that do not read them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import httpx
import pytest
from a2a.client import ClientConfig, create_client
from a2a.helpers import get_artifact_text, new_message, new_text_part
from a2a.server.events.event_queue_v2 import EventQueueSource
from a2a.server.tasks import TaskUpdater
from a2a.types import (
    Artifact,
    GetTaskRequest,
    ListTasksRequest,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskArtifactUpdateEvent,
)

from graphloop import Agent
from graphloop.providers import StreamItem, TextDelta
from graphloop.serve import a2a_app
from graphloop.serve.a2a_answer import AnswerSender, join_texts
from graphloop.values import AssistantMessage, FinishReason, ModelRequest, Reply
from graphloop.values import TextPart as Text

URL = "http://127.0.0.1:8700/"
WORDS = [f"word{number} " for number in range(20)]
ROUNDS = 50
"""The rounds of the event loop between two words, in which a piece arrives."""


class SlowModel:
    """Says words with a pause after each; the reply waits until `ends` is set."""

    label = "slow"

    def __init__(self) -> None:
        self.ends = asyncio.Event()

    def session(self) -> SlowModel:
        return self

    async def aclose(self) -> None:
        """Do nothing."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        del request
        for word in WORDS:
            yield TextDelta(word)
            for _ in range(ROUNDS):
                await asyncio.sleep(0)
        await self.ends.wait()
        yield Reply(AssistantMessage((Text("".join(WORDS)),)), FinishReason.STOP)


@pytest.mark.parametrize("reads", [True, False])
async def test_a_client_that_does_not_read_gets_no_further_piece(reads: bool) -> None:
    """The SDK queues a copy of the task for each piece that the client has not taken."""
    model, client, queue = SlowModel(), object(), EventQueueSource()
    model.ends.set()
    sender = AnswerSender(TaskUpdater(queue, "t", "c"), {client})
    driving = asyncio.create_task(sender.send(Agent(model).stream("Talk.")))
    texts: list[str] = []
    while "".join(texts) != "".join(WORDS):
        event = await queue.dequeue_event()
        queue.task_done()
        assert isinstance(event, TaskArtifactUpdateEvent)
        texts.append(get_artifact_text(event.artifact))
        sender.arrive()
        if reads:
            sender.arrive(client)
    await driving
    await queue.close()

    assert len(texts) == (len(WORDS) if reads else 2)


async def test_the_text_of_a_task_under_way_is_one_part() -> None:
    """Readers of a task put a line break between its parts."""
    model = SlowModel()
    app = a2a_app(Agent(model), URL)
    async with (
        httpx.AsyncClient(transport=httpx.ASGITransport(app)) as http,
        app.router.lifespan_context(app),
    ):
        client = await create_client(URL, ClientConfig(httpx_client=http, streaming=False))
        message = new_message([new_text_part("Talk.")], role=Role.ROLE_USER)
        at_once = SendMessageConfiguration(return_immediately=True)
        request = SendMessageRequest(message=message, configuration=at_once)
        (event,) = [one async for one in client.send_message(request)]
        found = event.task
        while not found.artifacts or get_artifact_text(found.artifacts[0]) != "".join(WORDS):
            for _ in range(ROUNDS):
                await asyncio.sleep(0)
            found = await client.get_task(GetTaskRequest(id=event.task.id))
        (listed,) = (await client.list_tasks(ListTasksRequest(include_artifacts=True))).tasks
        model.ends.set()

    assert [len(task.artifacts[0].parts) for task in (found, listed)] == [1, 1]


def test_few_parts_are_left_as_they_are() -> None:
    """A task keeps the memory of its former parts: to join each would cost the square of them."""
    task = Task(artifacts=[Artifact(parts=[new_text_part("a") for _ in range(5)])])

    join_texts(task, parts_max=5)
    kept = len(task.artifacts[0].parts)
    join_texts(task, parts_max=4)

    assert kept == 5
    assert [part.text for part in task.artifacts[0].parts] == ["aaaaa"]
