"""HTTP answers: the largest answer of a server behind a URL, and its refusals in words.

The SDK bounds the events of a stream, and no other body. Of a status that says no, such as 401, it
tells only that there was an error. So a hook of the HTTP client bounds each body, and writes the
status and the body's first words where the SDK looks for an error of the protocol.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final, final

from httpx2 import AsyncByteStream, AsyncClient, ByteStream, Request, Response, StreamError, Timeout
from mcp.client.streamable_http import streamable_http_client
from mcp.types import INTERNAL_ERROR

from .target import MESSAGE_BYTES_MAX, Address

__all__ = ["reached"]

SHOWN_CHARS_MAX: Final = 300
GOODBYE_S: Final = 5.0
"""The seconds that a server gets to hear that its session is over."""


@asynccontextmanager
async def reached(target: Address) -> AsyncGenerator[Any, None]:
    """Yield the streams of the messages of a server behind a URL."""
    client = AsyncClient(
        # A compressed answer of a few bytes would fill the memory.
        headers={"accept-encoding": "identity", **target.headers},
        auth=target.auth,
        # The SDK's limits: an answer may take long, so the time limit is the caller's.
        timeout=Timeout(30.0, read=None),
        event_hooks={"request": [_bound_goodbye], "response": [_mend_answer]},
    )
    async with (
        client,
        streamable_http_client(
            target.url, http_client=client, max_sse_event_size=MESSAGE_BYTES_MAX
        ) as streams,
    ):
        yield streams


async def _bound_goodbye(request: Request) -> None:
    """Bound the wait for the answer to the end of a session: all is over by then."""
    if request.method == "DELETE":
        request.extensions["timeout"] = Timeout(GOODBYE_S).as_dict()


async def _mend_answer(response: Response) -> None:
    """Bound an answer, and make an error of the protocol of a status that says no."""
    if "text/event-stream" not in response.request.headers.get("accept", ""):
        return  # The requests of an authentication have answers of their own.
    response.headers.pop("content-encoding", None)
    is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
    if is_stream and not response.is_error:
        return  # The SDK bounds each event, and there may be events for days.
    assert isinstance(response.stream, AsyncByteStream), "the client is asynchronous"
    response.stream = _Bounded(response.stream)
    # The SDK takes 404 for a session or a method that the server does not know.
    if response.is_error and response.status_code != HTTPStatus.NOT_FOUND:
        body = b"".join([chunk async for chunk in response.stream])
        await response.stream.aclose()
        response.stream = ByteStream(body if _is_error(body) else _explained(response, body))
        response.headers["content-type"] = "application/json"


def _is_error(body: bytes) -> bool:
    """Whether a body is an error of the protocol."""
    try:
        found: object = json.loads(body)
    except ValueError:
        return False
    return isinstance(found, dict) and "jsonrpc" in found


def _explained(response: Response, body: bytes) -> bytes:
    """Return an error of the protocol that tells the status, and begins to quote the body."""
    said = body.decode("utf-8", "replace").strip()[:SHOWN_CHARS_MAX]
    message = f"HTTP {response.status_code} {response.reason_phrase}".strip()
    error = {"code": INTERNAL_ERROR, "message": f"{message}: {said}" if said else message}
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()


@final
class _Bounded(AsyncByteStream):
    """The bytes of a body, which end with an error after the size of the largest message."""

    def __init__(self, body: AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._body:
            size += len(chunk)
            if size > MESSAGE_BYTES_MAX:
                raise StreamError(f"an answer of more than {MESSAGE_BYTES_MAX} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._body.aclose()
