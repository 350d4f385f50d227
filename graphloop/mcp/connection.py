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
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from contextvars import Context
from typing import Any, Final, TypeAlias, TypeVar, cast, final

import anyio
from httpx2 import AsyncClient, HTTPError, Timeout
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.types import CONNECTION_CLOSED, Implementation, ToolListChangedNotification

from ..errors import ConfigError, ToolError
from .definitions import Definition
from .process import ServerLog, launched
from .results import value_of
from .target import Address, Command, Lost, Mode

__all__ = ["Connection"]

T = TypeVar("T")
_Outcome: TypeAlias = tuple[list[T], Exception | None]
"""The result of a request in a list, or an empty list and its error."""

PAGES_MAX: Final = 100
"""The most pages of a list that are read; a server could send pages for ever."""
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
        changed: is awaited when the server says that its tools have changed.
    """

    def __init__(
        self,
        target: Command | Address,
        name: str,
        mode: Mode,
        changed: Callable[[Connection], Awaitable[object]],
    ) -> None:
        self._target, self._name, self._mode, self._changed = target, name, mode, changed
        self.log = ServerLog(name)
        self._client: Client | None = None
        self._requests: asyncio.TaskGroup | None = None
        self._running: set[asyncio.Task[_Outcome[Any]]] = set()
        self._failure: BaseException | None = None
        self._opened, self._stopped = asyncio.Event(), asyncio.Event()
        self._scope = anyio.CancelScope()
        loop = asyncio.get_running_loop()
        # A context of its own: the connection outlives the call that opens it.
        self._owner = loop.create_task(self._own(), name=f"mcp {name}", context=Context())

    @property
    def is_usable(self) -> bool:
        """Whether requests may be sent, now or once the connection is open."""
        return not self._stopped.is_set() and not self._owner.done()

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
                f"{_described(self._failure)}.{self.log.quoted} Fix: run it by hand, and check the "
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
        client = self._client
        if client is None or self._stopped.is_set():
            raise Lost(f"the connection has ended.{self.log.quoted}")
        task = self._start(ask(client))
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            raise
        if task.cancelled():
            raise Lost(f"the connection has ended.{self.log.quoted}")
        answer, error = task.result()
        if error is None:
            return answer[0]
        if _is_lost(error):
            raise Lost(f"{_described(error)}.{self.log.quoted}") from error
        raise error

    async def definitions(self) -> tuple[Definition, ...]:
        """Return the server's tools as it describes them now.

        Raises:
            Lost: the connection has ended, or the server knows it no longer.
        """

        async def pages(client: Client) -> list[Definition]:
            found: list[Definition] = []
            cursor, known = None, set[str]()
            for _ in range(PAGES_MAX):
                page = await client.list_tools(cursor=cursor, cache_mode="refresh")
                for tool in page.tools:
                    hints = tool.annotations
                    found.append(
                        Definition(
                            tool.name,
                            tool.description or "",
                            tool.input_schema,
                            tool.output_schema,
                            read_only=bool(hints and hints.read_only_hint),
                            idempotent=bool(hints and hints.idempotent_hint),
                        )
                    )
                cursor = page.next_cursor
                if not cursor or cursor in known:
                    break
                known.add(cursor)
            return found

        try:
            return tuple(await self.request(pages))
        except MCPError as error:  # Such as a session that a restarted server does not know.
            raise Lost(f"{error}.{self.log.quoted}") from error

    async def call(
        self,
        name: str,
        arguments: dict[str, object],
        report: Callable[[float, float | None, str], Awaitable[None]],
    ) -> object:
        """Return the result of a call in a form that a tool may return.

        Args:
            name: the server's name of the tool.
            arguments: the checked arguments.
            report: takes how far the call is.

        Raises:
            Lost: the connection ended before the answer came.
            ToolError: the server reports a failure.
        """

        async def told(progress: float, total: float | None, message: str | None) -> None:
            await report(progress, total, message or "")

        try:
            answer = await self.request(
                lambda client: client.call_tool(name, arguments, progress_callback=told)
            )
        except (MCPError, RuntimeError) as error:  # A result that misses its schema is the latter.
            raise ToolError(str(error)) from error
        return value_of(answer)

    async def _own(self) -> None:
        try:
            with self._scope:
                async with self._entered() as client, asyncio.TaskGroup() as requests:
                    self._client, self._requests = client, requests
                    self._start(self._listen(client))
                    self._opened.set()
                    try:
                        await self._stopped.wait()
                    finally:
                        for task in self._running:
                            task.cancel()
        except BaseException as error:
            self._failure = _first_cause(error)
            if isinstance(self._failure, Exception):
                return  # `open` and the requests tell it.
            raise
        finally:
            self._stopped.set()
            self._opened.set()

    def _start(self, work: Awaitable[T]) -> asyncio.Task[_Outcome[T]]:
        assert self._requests is not None
        task = self._requests.create_task(_outcome(work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    @asynccontextmanager
    async def _entered(self) -> AsyncGenerator[Client, None]:
        async with AsyncExitStack() as stack:
            client = Client(
                await self._transport(stack),
                mode=self._mode,
                cache=None,
                message_handler=self._hear,
                client_info=Implementation(name="graphloop", version="1"),
            )
            yield await stack.enter_async_context(client)

    async def _transport(self, stack: AsyncExitStack) -> AbstractAsyncContextManager[Any]:
        target = self._target
        if isinstance(target, Command):
            return launched(target.words, target.env, target.cwd, self.log, self._stopped.set)
        # The SDK's limits: an answer may take long, so the time limit is the caller's.
        http = AsyncClient(
            headers=dict(target.headers), auth=target.auth, timeout=Timeout(30.0, read=None)
        )
        return streamable_http_client(target.url, http_client=await stack.enter_async_context(http))

    async def _listen(self, client: Client) -> None:
        """Ask for news of changed tools, which newer servers send on demand only."""
        tools = client.server_capabilities.tools
        if tools is None or not tools.list_changed:
            return
        with suppress(ListenNotSupportedError, SubscriptionLost, MCPError):
            async with client.listen(tools_list_changed=True) as news:
                async for _ in news:
                    await self._changed(self)

    async def _hear(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification) and self._requests is not None:
            self._start(self._changed(self))  # The session waits for this function.


async def _outcome(work: Awaitable[T]) -> _Outcome[T]:
    """Return the result of `work`, or its error: a failed task would end the owner."""
    try:
        return [await work], None
    except Exception as error:  # noqa: BLE001 - `request` raises it in the caller.
        return [], error


def _first_cause(error: BaseException) -> BaseException:
    """Return the error that began it; groups of errors have messages of no use."""
    cause = error
    while isinstance(cause, BaseExceptionGroup):
        # isinstance does not know the type of the errors.
        cause = cast("BaseExceptionGroup[BaseException]", cause).exceptions[0]
    return cause


def _described(error: BaseException | None) -> str:
    if error is None:
        return "it was closed"
    cause = _first_cause(error)
    return f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__


def _is_lost(error: BaseException) -> bool:
    """Whether an error says that the connection has ended, rather than the request failed."""
    cause = _first_cause(error)
    if isinstance(cause, MCPError):
        return cause.code == CONNECTION_CLOSED
    return isinstance(cause, HTTPError | anyio.ClosedResourceError | anyio.BrokenResourceError)
