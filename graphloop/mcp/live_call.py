"""LiveCall: a call that its server holds open while it asks, until protocol 2025-11-25.

The server asks by requests of its own, which name no call. So a connection has one such call at a
time. The call goes on in a task of the connection while its run is parked.
"""

from __future__ import annotations

import asyncio
from secrets import token_hex
from typing import Any, Final, cast, final

from mcp.types import CallToolResult, ElicitRequestParams, ElicitResult

from ..tools import ToolContext
from .server_questions import HeldCall, Json, question

__all__ = ["LiveCall"]


@final
class LiveCall:
    """A call in flight, and the question of its server that waits for an answer.

    Args:
        server: the server's name in questions.
        context: the call's context, which a later part of the call replaces.

    Attributes:
        token: names the waiting question; empty while none waits.
    """

    def __init__(self, server: str, context: ToolContext) -> None:
        self._server, self.context = server, context
        self.token = ""
        self._asked: Final[asyncio.Queue[ElicitRequestParams | None]] = asyncio.Queue()
        self._answers: Final[asyncio.Queue[ElicitResult]] = asyncio.Queue()
        self._one_at_a_time: Final = asyncio.Lock()
        self._task: asyncio.Task[Any] | None = None

    def follow(self, task: asyncio.Task[Any]) -> None:
        """Note the task of the request to the server."""
        self._task = task
        task.add_done_callback(lambda _: self._asked.put_nowait(None))

    async def elicit(self, params: ElicitRequestParams) -> ElicitResult:
        """Return a person's answer to a question of the server; the server waits."""
        async with self._one_at_a_time:
            self._asked.put_nowait(params)
            return await self._answers.get()

    def answer(self, response: Json, context: ToolContext) -> None:
        """Give the server the answer to the waiting question; the call goes on in `context`."""
        self.token, self.context = "", context
        self._answers.put_nowait(ElicitResult.model_validate(response))

    async def cancelled(self) -> None:
        """Cancel the request, and wait until the server has been told."""
        assert self._task is not None, "the call is followed"
        self.token = ""
        self._task.cancel()
        await asyncio.wait({self._task})

    async def ended(self) -> asyncio.Task[tuple[list[CallToolResult], Exception | None]]:
        """Wait for the end of the request, and return its task; a cancelled wait cancels it.

        Raises:
            ToolAsks: the server asks first, and waits.
        """
        assert self._task is not None, "the call is followed"
        try:
            asked = await self._asked.get()
        except asyncio.CancelledError:
            self._task.cancel()
            raise
        if asked is not None and not self._task.done():
            self.token = token_hex(16)
            params = asked.model_dump(by_alias=True, mode="json", exclude_none=True)
            raise question(self._server, params, HeldCall(self.token))
        return cast("asyncio.Task[tuple[list[CallToolResult], Exception | None]]", self._task)
