"""Connection: an open MCP server on one event loop, and the task that owns it.

The SDK opens and closes a connection in one task only. So an owner task enters the SDK's client,
waits for the stop, and leaves the client; any task may call the server or stop the owner:

    connecting ──> open ──> closed        `stop`, the server's end, or the loop's end
         └────────────────────^           a failure, or no answer in time

Each request runs in a task of the owner. A cancelled caller cancels its request at the server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from contextvars import Context
from typing import Any, Final, TypeAlias, TypeVar, final

import anyio
from mcp import Client, MCPError
from mcp.client.context import ClientRequestContext
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.types import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    Implementation,
    InputRequiredResult,
    ToolListChangedNotification,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from ..errors import ConfigError
from ..media import MediaPart
from ..tools import ToolContext
from ..values import Message, TextPart
from .definitions import Definition
from .http_answers import reached
from .inputs import Inputs, sampled
from .live_call import LiveCall
from .materials import Prompt, Resource
from .process import ServerLog, launched
from .requests import (
    REFUSALS,
    Page,
    all_pages,
    as_tool_errors,
    error_words,
    first_cause,
    is_lost,
    prompts_page,
    refusal_words,
    request_of,
    resources_page,
    tools_page,
)
from .results import messages_of_prompt, parts_of_resource, value_of
from .server_questions import Json, Rounds
from .target import Address, Command, Lost, Mode, Taken

__all__ = ["Connection"]

T = TypeVar("T")
_Outcome: TypeAlias = tuple[list[T], Exception | None]
"""The result of a request in a list, or an empty list and its error."""

NEWS_PAUSE_S: Final = 1.0
"""The seconds between two looks at tools whose server keeps telling that it changed them."""
NO_CALL: Final = "A request is answered only while a call of a tool runs."
# Without a handler, the SDK's records of each bad line would go to the terminal.
for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


@final
class Connection:
    """An open connection; make it in the event loop that uses it.

    Args:
        target: where the server is.
        name: the server's name in errors and logs.
        mode: how the protocol's version is found out.
        inputs: answers the server's requests for input.
        changed: is awaited when the server says that its tools have changed.
    """

    def __init__(
        self,
        target: Command | Address,
        name: str,
        mode: Mode,
        inputs: Inputs,
        changed: Callable[[Connection], Awaitable[object]],
    ) -> None:
        self._target, self._name, self._mode, self._changed = target, name, mode, changed
        self._inputs, self._one_call = inputs, asyncio.Lock()
        self._live: LiveCall | None = None
        self.log = ServerLog(name)
        self._client: Client | None = None
        self._requests: asyncio.TaskGroup | None = None
        self._running: set[asyncio.Task[_Outcome[Any]]] = set()
        self._failure: BaseException | None = None
        self._opened, self._stopped, self._news = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._scope = anyio.CancelScope()
        loop = asyncio.get_running_loop()
        # A context of its own: the connection outlives the call that opens it.
        self._owner = loop.create_task(self._own(), name=f"mcp {name}", context=Context())

    @property
    def is_usable(self) -> bool:
        """Whether requests may be sent, now or once the connection is open."""
        return not self._stopped.is_set() and not self._owner.done()

    @property
    def held_token(self) -> str:
        """The token of the call that the server holds open for an answer; empty for none."""
        return "" if self._live is None else self._live.token

    def is_held_by(self, context: ToolContext) -> bool:
        """Whether the server waits for an answer to this call of this run."""
        live = self._live
        if live is None or not live.token:
            return False
        return (live.context.run_id, live.context.key) == (context.run_id, context.key)

    @property
    def is_closed(self) -> bool:
        """Whether the owner has left the connection, and the server's process has ended."""
        return self._owner.done()

    async def open(self, timeout_s: float | None) -> None:
        """Wait until the connection is open.

        Raises:
            ConfigError: the server cannot be started or reached, or does not answer in time.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self._opened.wait()
        except TimeoutError:
            self.stop()
            raise ConfigError(
                f"MCP server {self._name!r}: expected an answer to the first request within "
                f"{timeout_s} s, found none.{self.log.quoted} Fix: run it by hand, or raise "
                "timeout_s."
            ) from None
        if self._client is None:
            raise ConfigError(
                f"MCP server {self._name!r}: expected a server that speaks MCP, found: "
                f"{error_words(self._failure)}.{self.log.quoted} Fix: run it by hand; check the "
                "command, the URL and the key."
            ) from self._failure

    def stop(self) -> None:
        """Begin to close the connection; any task of the event loop may call it, also twice."""
        self._stopped.set()
        if self._client is None:
            self._scope.cancel()

    async def aclose(self) -> None:
        """Close the connection, and wait until the server's process has ended."""
        self.stop()
        await asyncio.wait({self._owner})

    async def request(self, ask: Callable[[Client], Awaitable[T]]) -> T:
        """Return the answer to a request; a cancelled caller cancels it at the server.

        Raises:
            Lost: the connection ended first.
            Exception: any other error of the SDK; `MCPError` is the server's own.
        """
        task = self._send(ask)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            raise
        return self._answer_of(task)

    def _send(self, ask: Callable[[Client], Awaitable[T]]) -> asyncio.Task[_Outcome[T]]:
        if self._client is None or self._stopped.is_set():
            raise Lost(f"the connection has ended.{self.log.quoted}")
        return self._start(ask(self._client))

    def _answer_of(self, task: asyncio.Task[_Outcome[T]]) -> T:
        """Return the answer to a request that is over."""
        if task.cancelled():
            raise Lost(f"the connection has ended.{self.log.quoted}")
        answer, error = task.result()
        if error is None:
            return answer[0]
        if is_lost(error):
            raise Lost(f"{error_words(error)}.{self.log.quoted}") from error
        raise error

    async def definitions(self) -> tuple[Definition, ...]:
        """Return the server's tools as it describes them now.

        Raises:
            Lost: the connection has ended, or the server knows it no longer.
        """
        return await self._list_all(tools_page)

    async def resources(self) -> tuple[Resource, ...]:
        """Return the resources that the server offers; `Lost` as for `definitions`."""
        return await self._list_all(resources_page)

    async def prompts(self) -> tuple[Prompt, ...]:
        """Return the prompts that the server offers; `Lost` as for `definitions`."""
        return await self._list_all(prompts_page)

    async def read(self, uri: str) -> tuple[TextPart | MediaPart, ...]:
        """Return the content of a resource.

        Raises:
            ConfigError: the server refuses, such as for an unknown address.
        """
        return parts_of_resource(await self._ask_material(lambda client: client.read_resource(uri)))

    async def prompt(self, name: str, arguments: dict[str, str]) -> tuple[Message, ...]:
        """Return the messages of a prompt; `ConfigError` as for `read`."""
        return messages_of_prompt(
            await self._ask_material(lambda client: client.get_prompt(name, arguments))
        )

    async def _ask_material(self, ask: Callable[[Client], Awaitable[T]]) -> T:
        try:
            return await self.request(ask)
        except REFUSALS as error:
            raise ConfigError(
                f"MCP server {self._name!r} refuses: {refusal_words(error)}"
            ) from error

    async def _list_all(
        self, page: Callable[[Client, str | None], Awaitable[Page[T]]]
    ) -> tuple[T, ...]:
        try:
            return tuple(await self.request(lambda client: all_pages(client, page)))
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND:
                return ()
            # Such as a session that a restarted server does not know.
            raise Lost(f"{error}.{self.log.quoted}") from error
        except REFUSALS as error:
            raise ConfigError(f"MCP server {self._name!r}: {refusal_words(error)}") from error

    async def call(
        self,
        name: str,
        arguments: dict[str, object],
        context: ToolContext,
        rounds: Rounds | None = None,
    ) -> object:
        """Return the result of a call in a form that a tool may return.

        Args:
            name: the server's name of the tool.
            arguments: the checked arguments.
            context: receives the call's progress, and counts the server's model calls.
            rounds: the answers that the server has asked for; None for a new call.

        Raises:
            Lost: the connection ended before the answer came.
            Taken: the server waits for an answer to another call.
            ToolAsks: the server asks a person.
            ToolError: the server reports a failure.
        """
        client = self._client
        is_old = client is None or client.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
        if is_old and self._inputs.are_offered:
            async with self._one_call:
                if self._live is not None:
                    raise Taken
                self._live = live = LiveCall(self._name, context)
                live.follow(self._send(request_of(name, arguments, live)))
                return await self._follow(live)
        while True:  # `Inputs` bounds the rounds.
            with as_tool_errors():
                answer = await self.request(request_of(name, arguments, context, rounds))
            if not isinstance(answer, InputRequiredResult):
                return value_of(answer)
            rounds = await self._inputs.gathered(answer, rounds, context)

    async def go_on(self, response: Json, context: ToolContext) -> object:
        """Give the server the answer that it waits for; return and raise as `call` does."""
        assert self._live is not None, "the server waits"
        self._live.answer(response, context)
        return await self._follow(self._live)

    async def give_up(self) -> None:
        """Cancel, at the server, the call that it holds open for an answer."""
        live, self._live = self._live, None
        assert live is not None, "the server waits"
        await live.cancelled()

    async def _follow(self, live: LiveCall) -> object:
        try:
            with as_tool_errors():
                return value_of(self._answer_of(await live.ended()))
        finally:
            if not live.token:
                self._live = None

    async def _elicit(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        if self._live is None:
            return ErrorData(code=INVALID_REQUEST, message=f"{NO_CALL} ({context.request_id})")
        return await self._live.elicit(params)

    async def _sample(
        self, context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        model = self._inputs.model
        if self._live is None or model is None:
            return ErrorData(code=INVALID_REQUEST, message=f"{NO_CALL} ({context.request_id})")
        return await sampled(model, params, self._live.context)

    async def _own(self) -> None:
        try:
            with self._scope:
                async with self._make_client() as client, asyncio.TaskGroup() as requests:
                    self._client, self._requests = client, requests
                    self._start(self._listen(client))
                    self._start(self._tell_changes())
                    self._opened.set()
                    try:
                        await self._stopped.wait()
                    finally:
                        for task in self._running:
                            task.cancel()
        except BaseException as error:
            self._failure = first_cause(error)
            if isinstance(self._failure, Exception):
                return  # `open` and the requests tell it.
            raise
        finally:
            self._stopped.set()
            self._opened.set()

    def _start(self, work: Awaitable[T]) -> asyncio.Task[_Outcome[T]]:
        assert self._requests is not None
        task = self._requests.create_task(_outcome_of(work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def _make_client(self) -> Client:
        return Client(
            self._transport(),
            mode=self._mode,
            cache=None,
            message_handler=self._hear,
            elicitation_callback=self._elicit if self._inputs.ask else None,
            list_roots_callback=self._inputs.roots,
            sampling_callback=None if self._inputs.model is None else self._sample,
            client_info=Implementation(name="graphloop", version="1"),
        )

    def _transport(self) -> AbstractAsyncContextManager[Any]:
        target = self._target
        if isinstance(target, Command):
            return launched(target.words, target.env, target.cwd, self.log, self._stopped.set)
        return reached(target)

    async def _listen(self, client: Client) -> None:
        """Ask for news of changed tools, which newer servers send on demand only."""
        tools = client.server_capabilities.tools
        if tools is None or not tools.list_changed:
            return
        with suppress(ListenNotSupportedError, SubscriptionLost, MCPError):
            async with client.listen(tools_list_changed=True) as news:
                async for _ in news:
                    self._news.set()

    async def _hear(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._news.set()  # The session waits for this function.

    async def _tell_changes(self) -> None:
        """Look at the tools after news of a change, at most once in `NEWS_PAUSE_S`."""
        while True:  # The end of the connection cancels it.
            await self._news.wait()
            self._news.clear()
            await _outcome_of(self._changed(self))
            await asyncio.sleep(NEWS_PAUSE_S)


async def _outcome_of(work: Awaitable[T]) -> _Outcome[T]:
    """Return the result of `work`, or its error: a failed task would end the owner."""
    try:
        return [await work], None
    except Exception as error:  # noqa: BLE001 - `request` raises it in the caller.
        return [], error
