"""Requests: what the A2A server takes of an HTTP request: its caller, and a bounded body."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final, final

from a2a.auth.user import User
from a2a.server.context import ServerCallContext
from a2a.server.routes.common import ServerCallContextBuilder
from a2a.types import InternalError
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["BodyLimit", "Callers"]

LOG: Final = logging.getLogger("graphloop")
BODY_BYTES_MAX: Final = 4 * 1024 * 1024
"""The largest body of a request, as in the SDK of MCP."""


@final
class BodyLimit:
    """ASGI middleware that answers a request with too large a body by status 413."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body up to the limit, and pass the request on with it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return  # The client has left.
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > BODY_BYTES_MAX:
                await PlainTextResponse("The body is too large.", 413)(scope, receive, send)
                return
        whole: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def read() -> Message:
            return whole.pop() if whole else await receive()

        await self._app(scope, read, send)


@final
class _Caller(User):
    """The caller of a request, as a user of the SDK, by the name that `caller` returned."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def is_authenticated(self) -> bool:
        """False: this server only tells callers apart."""
        return False

    @property
    def user_name(self) -> str:
        """The caller's name."""
        return self._name


@final
class Callers(ServerCallContextBuilder):
    """Names the caller of each request."""

    def __init__(self, caller: Callable[[Mapping[str, str]], str]) -> None:
        self._caller = caller

    def build(self, request: Request) -> ServerCallContext:
        """Return the context of a request.

        Raises:
            InternalError: `caller` has raised an error; the client reads only its type.
        """
        try:
            name = self._caller(request.headers)
        except Exception as error:
            LOG.exception("`caller` of an A2A server failed")
            raise InternalError(type(error).__name__) from None
        return ServerCallContext(user=_Caller(name), state={"headers": dict(request.headers)})
