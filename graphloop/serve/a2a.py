"""A2A: an agent as a server of the Agent2Agent protocol, version 1.0, over JSON-RPC and HTTP.

    message ──► run ──► WORKING, one artifact `answer` in pieces ──► COMPLETED, FAILED, CANCELED
                 │
                 └─ parks on an approval ──► INPUT_REQUIRED; the next message with the task's id
                    (in the store)           answers it, and the run goes on

The protocol: https://a2a-protocol.org/v1.0.0/specification/. A task is a run, and its id is the
run's. A task belongs to its caller, and for another caller it does not exist.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final, cast, final
from urllib.parse import urlsplit

from a2a.helpers import get_message_text
from a2a.server.agent_execution import RequestContext, SimpleRequestContextBuilder
from a2a.server.context import ServerCallContext
from a2a.server.events import Event
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    CancelTaskRequest,
    InvalidParamsError,
    ListTasksRequest,
    ListTasksResponse,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskNotCancelableError,
    TaskState,
    UnsupportedOperationError,
)
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from ..agent import Agent, StoreInput, split_tools
from ..tools import Toolbox
from .a2a_answer import join_texts
from .a2a_desk import Desk
from .a2a_requests import BodyLimit, Callers
from .caller_binding import CallerClaims
from .served import by_authorization, served_store

__all__ = ["a2a_app"]

UNDER_WAY: Final = {TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING}
TASKS_MAX: Final = 1_000
"""The most tasks at rest that memory has: those that are over, and those that wait for answers."""
PIECES_MAX: Final = 256
"""The most parts of an answer under way: to join them costs memory, to copy them costs time."""
TASKS_BYTES_MAX: Final = 64 * 1024 * 1024
"""The most bytes of these tasks, beside the latest: each may have pictures and files."""
IDLE_S: Final = 60.0
"""The seconds after which a task that waits for answers has no queues in memory."""
LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


def a2a_app(  # noqa: PLR0913 - the options of a server
    agent: Agent[Any, Any],
    url: str,
    *,
    store: StoreInput | None = None,
    secret: str | bytes | None = None,
    caller: Callable[[Mapping[str, str]], str] = by_authorization,
    deps: Callable[[str], object] | None = None,
    description: str = "",
) -> Starlette:
    """Return an ASGI application that serves an agent to clients of the A2A protocol.

        app = a2a_app(desk, "http://127.0.0.1:8700/", store="runs.db")  # `uvicorn module:app`

    The card is at `/.well-known/agent-card.json`: the agent's name, its tools as skills, and the
    revision of its code as version. JSON-RPC is at `/`. An approval makes its task
    INPUT_REQUIRED, with a data part `{"approvals": [{"key", "tool", "arguments", "question"}]}`.
    The next message of the task has a data part `{key: {"approved": true, "edit": "JSON text",
    "reason": "…"}}`; all but a clear yes denies the call. A task that is over or waits is answered
    from the store, also in a later process with the same secret. A body above 4 MiB is refused
    (413).

    Args:
        agent: the agent.
        url: where clients reach this application. At a loopback address, requests for another
            host are refused (400), so that no web page reaches the server.
        store: where parked runs wait, in place of the agent's own store: a `Store`, or its path.
            The default is the agent's own store, or else the memory of this process.
        secret: signs the ids of tasks. Processes that share a store need the same one; by default
            it is random, and tasks do not survive the process.
        caller: returns the caller's name from the headers of a request. A task belongs to its
            caller; for another caller it does not exist. Authenticate callers before this
            application: it only tells them apart.
        deps: returns the `deps` of a run by its id, for an agent with a `deps_type`.
        description: what clients read of the agent, on its card.

    Raises:
        ConfigError: the secret is empty, or the store cannot be opened.
        GraphError: the agent's graph has a node that no topology file can represent.
    """
    (runs, opened), claims = served_store(store, [agent]), CallerClaims(secret)
    desk = Desk(agent.with_options(store=runs), runs, deps)
    tasks, card = _Tasks(desk, claims), _make_card(agent, url, description)
    handler = _Handler(
        desk,
        tasks,
        card,
        request_context_builder=_Builder(tasks, claims),
        interrupted_task_timeout=IDLE_S,
    )

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        del app
        try:
            yield
        finally:
            await handler.aclose()
            await desk.settled()
            if opened is not None:
                await opened.aclose()

    local = urlsplit(url).hostname in {"127.0.0.1", "localhost", "::1"}
    only = [Middleware(TrustedHostMiddleware, allowed_hosts=LOOPBACK)] if local else []
    return Starlette(
        routes=[
            *create_agent_card_routes(card),
            *create_jsonrpc_routes(handler, "/", context_builder=Callers(caller)),
        ],
        middleware=[*only, Middleware(BodyLimit)],
        lifespan=lifespan,
    )


def _make_card(agent: Agent[Any, Any], url: str, description: str) -> AgentCard:
    own, _ = split_tools(agent.options.get("tools", ()))
    description = description or f"Ask the agent {agent.name!r} to do a task."
    # A card must have a skill: that of an agent without tools is to answer.
    answers = AgentSkill(id="answer", name=agent.name, description=description, tags=["agent"])
    skills = [
        AgentSkill(id=one.name, name=one.name, description=one.description, tags=["tool"])
        for one in Toolbox(own).specs
    ]
    return AgentCard(
        name=agent.name,
        description=description,
        version=agent.revision,
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain", "application/json"],
        default_output_modes=["text/plain", "application/json"],
        skills=skills or [answers],
    )


@final
class _Tasks(InMemoryTaskStore):
    """The tasks under way, and the latest at rest; the store has the runs of all others."""

    def __init__(self, desk: Desk, claims: CallerClaims) -> None:
        super().__init__()
        self._desk, self._claims = desk, claims
        self._at_rest: dict[str, tuple[ServerCallContext, int]] = {}

    async def save(self, task: Task, context: ServerCallContext) -> None:
        """Save a task, with its text as one part once it rests."""
        join_texts(task, PIECES_MAX if task.status.state in UNDER_WAY else 1)
        await super().save(task, context)
        self._desk.saved(task.id)
        self._at_rest.pop(task.id, None)
        if task.status.state not in UNDER_WAY:
            size = sum(known for _, known in self._at_rest.values())
            while self._at_rest and (len(self._at_rest) >= TASKS_MAX or size > TASKS_BYTES_MAX):
                oldest = next(iter(self._at_rest))
                caller, freed = self._at_rest.pop(oldest)
                await super().delete(oldest, caller)
                size -= freed
            self._at_rest[task.id] = context, task.ByteSize()

    async def get(self, task_id: str, context: ServerCallContext) -> Task | None:
        """Return a task of this caller; None for any other task."""
        if not self._claims.owns(context.user.user_name, task_id):
            return None
        found = await self.own(task_id, context)
        if found is not None and found.status.state != TaskState.TASK_STATE_INPUT_REQUIRED:
            return found
        context_id = self._claims.context_of(task_id) or task_id
        return await self._desk.kept(task_id, context_id, found)

    async def list(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """Return the tasks of this caller that memory has, each with its text as one part."""
        found = await super().list(params, context)
        for task in found.tasks:
            join_texts(task)  # It is a copy.
        return found

    async def works_unheard(self, task_id: str, context: ServerCallContext) -> bool:
        """Whether a task began in another process and works, so that no client hears of it here."""
        own = await self.own(task_id, context)
        if own is not None and own.status.state in UNDER_WAY:
            return False
        task = await self.get(task_id, context)
        return task is not None and task.status.state in UNDER_WAY

    async def own(self, task_id: str, context: ServerCallContext) -> Task | None:
        """Return a task as the memory of this process has it."""
        found = await super().get(task_id, context)
        if found is not None:
            join_texts(found)  # It is a copy.
        return found


@final
class _Builder(SimpleRequestContextBuilder):
    """Gives new tasks their ids, and refuses messages that start or answer nothing."""

    def __init__(self, tasks: _Tasks, claims: CallerClaims) -> None:
        super().__init__()
        self._tasks, self._claims = tasks, claims

    async def build(
        self,
        context: ServerCallContext,
        params: SendMessageRequest | None = None,
        task_id: str | None = None,
        context_id: str | None = None,
        task: Task | None = None,
    ) -> RequestContext:
        """Return the context of a message.

        Raises:
            InvalidParamsError: the message of a new task has no words or names a URL, or the
                context is too long.
            UnsupportedOperationError: the task waits for no answer.
        """
        assert params is not None, "only messages have a context"
        if task_id is None:
            parts = params.message.parts
            words = get_message_text(params.message).strip()
            if not words or any(part.HasField("url") for part in parts):
                raise InvalidParamsError(
                    "`parts`: expected a text, and data or files beside it, found no words or a "
                    "URL. Fix: say the task in words; send a file as bytes, since no URL is loaded."
                )
            try:
                made = self._claims.new_run(context.user.user_name, context_id or "")
            except ValueError as error:
                raise InvalidParamsError(
                    f"`contextId`: {error}. Fix: send a shorter one."
                ) from None
            task_id = params.message.task_id = made
            context_id = params.message.context_id = context_id or task_id
        else:
            known = await self._tasks.get(task_id, context)
            assert known is not None, "the handler has found it"
            if known.status.state != TaskState.TASK_STATE_INPUT_REQUIRED:
                raise UnsupportedOperationError(
                    "the task waits for no answer. Fix: start another, without a task id."
                )
            context_id = params.message.context_id = known.context_id
        return await super().build(context, params, task_id, context_id, task)


@final
class _Handler(DefaultRequestHandler):
    """Cancels a task also if an earlier process has parked its run."""

    agent_executor: Desk

    @property
    def _tasks(self) -> _Tasks:
        return cast("_Tasks", self.task_store)

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of a task that began in this process.

        Raises:
            UnsupportedOperationError: the task began in another process.
        """
        if await self._tasks.works_unheard(params.id, context):
            raise UnsupportedOperationError("the task began in another process. Fix: poll it.")
        # The SDK's decorators hide the type of the method.
        found = super().on_subscribe_to_task(params, context)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        async with aclosing(self._told(cast("AsyncGenerator[Event, None]", found))) as events:
            async for event in events:
                yield event

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of a task that a message starts or goes on with."""
        # The SDK's decorators hide the type of the method.
        found = super().on_message_send_stream(params, context)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        async with aclosing(self._told(cast("AsyncGenerator[Event, None]", found))) as events:
            async for event in events:
                yield event

    async def _told(self, found: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
        """Yield the events of a stream, and tell the desk how far its client has read."""
        stream, desk, task_id = object(), self.agent_executor, ""
        try:
            async with aclosing(found) as events:
                async for event in events:
                    task_id = event.id if isinstance(event, Task) else event.task_id
                    if isinstance(event, Task):
                        join_texts(event)
                    desk.reads(stream, task_id)
                    yield event
                    if isinstance(event, TaskArtifactUpdateEvent):
                        desk.has_read(stream, task_id)
        finally:
            desk.leaves(stream, task_id)

    async def on_cancel_task(
        self, params: CancelTaskRequest, context: ServerCallContext
    ) -> Task | None:
        """Cancel a task, and abort its run.

        Raises:
            TaskNotCancelableError: another process drives the run.
        """
        if await self._tasks.works_unheard(params.id, context):
            if not self.agent_executor.drives(params.id):
                raise TaskNotCancelableError("another process of this server works on the task.")
            await self.agent_executor.aborted(params.id)
            return await self._tasks.get(params.id, context)
        # The SDK's decorator hides the type of the method.
        found = await super().on_cancel_task(params, context)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        task = cast("Task | None", found)
        if task is not None:
            await self.agent_executor.aborted(task.id)
        return task
