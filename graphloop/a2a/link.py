"""Link: the requests of one call to the server of a remote agent, by the SDK's client.

A task goes on at its server whatever becomes of this connection. So a lost stream is no failure:
the link asks for the task again. A server that does not answer several times has vanished.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Final, Protocol, final

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.helpers import get_artifact_text, new_message
from a2a.types import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskNotFoundError,
    TaskState,
)
from a2a.utils.errors import A2AError
from google.protobuf.json_format import ParseError

from ..errors import ToolError

__all__ = ["ASKING", "FAILURES", "Hear", "Link", "asked_id", "linked"]

WORKING: Final = frozenset({TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING})
"""The states in which a task goes on by itself."""
ASKING: Final = frozenset({TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED})
FAILURES: Final = (A2AError, httpx.HTTPError, httpx.InvalidURL, ParseError, ValueError, KeyError)
"""The SDK raises these for a server that refuses, does not answer, or answers with rubbish."""
CONNECT_S: Final = 10.0
QUIET_S: Final = 60.0
"""The seconds without a byte after which the link asks for the task anew."""
PAUSE_S: Final = 0.5
TRIES_MAX: Final = 4
"""How often the link asks in a row for a task before it gives its server up."""
REPLY_BYTES_MAX: Final = 32 * 2**20
"""The most bytes of one reply, or of one stream of events: a hostile server could never end it."""


class Hear(Protocol):
    """Takes the texts of an answer as they come."""

    def __call__(self, text: str, *, continues: bool) -> None:
        """Take a text, which continues the last one or begins anew."""
        ...


@asynccontextmanager
async def linked(name: str, url: str, headers: Mapping[str, str]) -> AsyncGenerator[Link]:
    """Read the card of a remote agent, and connect to the server that the card names.

    Raises:
        ToolError: there is no such card, or the agent speaks another protocol or version.
    """
    async with httpx.AsyncClient(
        # No reply may be compressed: a few bytes could be gigabytes.
        headers={**headers, "accept-encoding": "identity"},
        timeout=httpx.Timeout(QUIET_S, connect=CONNECT_S),
        event_hooks={"response": [_bound_body]},
    ) as http:
        with _as_tool_errors(name, f"no agent card was found at {url}"):
            card = await A2ACardResolver(http, url).get_agent_card()
        offers = card.supported_interfaces
        kept = [
            one
            for one in offers
            if one.protocol_binding == "JSONRPC" and one.protocol_version.split(".")[0] == "1"
        ]
        if not kept:
            found = [(one.protocol_binding, one.protocol_version) for one in offers]
            raise ToolError(
                f"Remote agent {name!r} at {url}: expected an agent that speaks A2A 1.0 by "
                f"JSONRPC, found {found}. Fix: ask its operator for that."
            )
        needed = [one.uri for one in card.capabilities.extensions if one.required]
        if needed:
            raise ToolError(f"Remote agent {name!r} requires extensions {needed}; none is known.")
        del card.supported_interfaces[1:]
        card.supported_interfaces[0].CopyFrom(kept[0])
        with _as_tool_errors(name, "its card has no address"):
            client = ClientFactory(ClientConfig(polling=True, httpx_client=http)).create(card)
        yield Link(name, client, card)


@final
class _Bounded(httpx.AsyncByteStream):
    """The body of a reply, up to `REPLY_BYTES_MAX` bytes."""

    def __init__(self, body: httpx.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        size = 0
        async for chunk in self._body:
            size += len(chunk)
            if size > REPLY_BYTES_MAX:
                raise httpx.RemoteProtocolError(
                    f"expected a reply of at most {REPLY_BYTES_MAX} bytes, found more"
                )
            yield chunk

    async def aclose(self) -> None:
        await self._body.aclose()


async def _bound_body(response: httpx.Response) -> None:
    """Bound the body of a reply before any of it is read.

    Raises:
        httpx.RemoteProtocolError: the body is compressed.
    """
    encoding = response.headers.get("content-encoding", "identity")
    if encoding.strip().lower() != "identity":
        raise httpx.RemoteProtocolError(f"expected a reply without compression, found {encoding!r}")
    assert isinstance(response.stream, httpx.AsyncByteStream), "the client is asynchronous"
    response.stream = _Bounded(response.stream)


@contextmanager
def _as_tool_errors(name: str, what: str) -> Generator[None]:
    """Raise errors of the SDK as a ToolError that names the agent and its failure."""
    try:
        yield
    except FAILURES as error:
        found = f"{type(error).__name__}: {error}"
        raise ToolError(f"Remote agent {name!r}: {what} ({found:.500}).") from error


@final
class Link:
    """The connection of one call to the server of a remote agent."""

    def __init__(self, name: str, client: Client, card: AgentCard) -> None:
        self._name, self._client = name, client
        self._streams = card.capabilities.streaming

    async def start(self, prompt: Part, context_id: str) -> Task | Message:
        """Start a task in a context of its own, and return it, or the whole answer.

        Raises:
            ToolError: the agent refuses, or whether a task has started is not known.
        """
        try:
            return await self._send([prompt], message_id=context_id, context_id=context_id)
        except FAILURES as error:
            found = await self.find(context_id)
            if found is None:
                words = f"{type(error).__name__}: {error}"
                raise ToolError(
                    f"Remote agent {self._name!r} did not take the task ({words:.500}). Whether a "
                    "task has started there is not known."
                ) from error
            return found

    async def find(self, context_id: str) -> Task | None:
        """Return the task of a context; None if the server has none, or does not tell."""
        try:
            found = await self._client.list_tasks(ListTasksRequest(context_id=context_id))
        except FAILURES:
            return None
        return next((one for one in found.tasks if one.context_id == context_id), None)

    async def answer(self, task: Task, parts: Iterable[Part]) -> None:
        """Send the answer to a task that asks.

        Raises:
            ToolError: the agent refuses.
        """
        message_id = f"re-{asked_id(task)}"
        with _as_tool_errors(self._name, f"task {task.id} does not take the answer"):
            await self._send(
                parts, message_id=message_id, task_id=task.id, context_id=task.context_id
            )

    async def cancel(self, task_id: str) -> None:
        """Cancel a task; errors of the SDK say that it is over, or that its server is gone."""
        await self._client.cancel_task(CancelTaskRequest(id=task_id))

    async def task(self, task_id: str) -> Task:
        """Return a task as it stands.

        Raises:
            ToolError: the server does not know the task, or has not answered several times.
        """
        for pause_s in [PAUSE_S * 2**number for number in range(TRIES_MAX - 1)]:
            try:
                return await self._client.get_task(GetTaskRequest(id=task_id))
            except TaskNotFoundError:
                raise ToolError(
                    f"Remote agent {self._name!r} no longer knows task {task_id}. Whether the task "
                    "took effect is not known."
                ) from None
            except FAILURES:
                await asyncio.sleep(pause_s)
        with _as_tool_errors(
            self._name, f"its server has vanished, and task {task_id} may go on there"
        ):
            return await self._client.get_task(GetTaskRequest(id=task_id))

    async def followed(self, task: Task, hear: Hear, *, asked: str) -> Task:
        """Return a task when it no longer goes on by itself.

        Args:
            task: the task as it stood.
            hear: takes the texts of the answer.
            asked: the id of a question that was answered; a task that still has it goes on.

        Raises:
            ToolError: the errors of `task`.
        """
        while _goes_on(task, asked):
            if self._streams:
                await self._hear_stream(task.id, hear, asked)
            after = await self.task(task.id)
            if _goes_on(after, asked):
                await asyncio.sleep(PAUSE_S)
            task = after
        return task

    async def _hear_stream(self, task_id: str, hear: Hear, asked: str) -> None:
        """Hear the stream of a task until the task rests, or the stream breaks.

        The stream begins with the task as it stands: the task may have come to rest before.
        """
        try:
            async for event in self._client.subscribe(SubscribeToTaskRequest(id=task_id)):
                if _is_rest(event) or (event.HasField("task") and not _goes_on(event.task, asked)):
                    return
                for artifact in event.task.artifacts:
                    hear(get_artifact_text(artifact), continues=False)
                if event.HasField("artifact_update"):
                    update = event.artifact_update
                    hear(get_artifact_text(update.artifact), continues=update.append)
        except FAILURES:
            return  # `task` tells what became of it.

    async def _send(
        self, parts: Iterable[Part], *, message_id: str, **known: str
    ) -> Task | Message:
        message = new_message(list(parts), role=Role.ROLE_USER, **known)
        message.message_id = message_id
        request = SendMessageRequest(message=message)
        request.configuration.return_immediately = True
        async for event in self._client.send_message(request):
            return event.message if event.HasField("message") else event.task
        raise ValueError("the server has answered with nothing")


def asked_id(task: Task) -> str:
    """Return the id of the message by which a task asks; the task's id if there is no message."""
    return task.status.message.message_id or task.id


def _goes_on(task: Task, asked: str) -> bool:
    """Whether a task goes on by itself, or still waits for the answer to `asked`, which was sent.

    A server may take the message of the question away first, and change the state later.
    """
    status = task.status
    waits = bool(asked) and status.state in ASKING and status.message.message_id in {"", asked}
    return waits or status.state in WORKING


def _is_rest(event: StreamResponse) -> bool:
    """Whether a task no longer goes on by itself after an event of its stream."""
    return event.HasField("status_update") and event.status_update.status.state not in WORKING
