"""One HTTP request and its response, or the error instead.

Reads one response under a `Watch`, and translates each failure on the way into a `ProviderError`.
It retries nothing: the session does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TypeVar, final

import httpx

from ..errors import (
    BadReply,
    ConnectionFailed,
    ProviderError,
    ProviderTimeout,
    StreamTruncated,
)
from ..values import Usage
from .base import Live, ServerEvent, UsageSoFar, Wire
from .refusals import is_report
from .retries import retry_after_s
from .sse import SseDecoder
from .timeouts import Watch
from .wire_json import parse_json, quoted

__all__ = ["HttpExchange"]

T = TypeVar("T")

BODY_BYTES_MAX = 65_536
"""How many bytes are kept of an answer that is no stream of events."""

ERROR_BODY_S = 2.0
"""How long to wait for the body of an error; its status is known by then."""

DRAIN_S = 0.05
"""How long to wait after the terminal marker for the end, which frees the connection."""

REPLY_BYTES_MAX = 128 * 2**20
"""The most bytes of a reply: three times those of 128,000 tokens, sent one by one."""

EVENT_BYTES_MAX = 16 * 2**20
"""The most bytes of one event: more than any image that a model draws."""

QUOTE_BYTES = 200


@final
class HttpExchange:
    """An attempt at a model call; the caller closes it.

    Attributes:
        decoder: the wire's decoder of this response.
        items: the items that `begin` decoded; the caller passes them on first.
        events: the events that `begin` received and did not decode; the caller decodes them next.
        spent: the usage that the server reported last.
        ended: whether the response has ended.
    """

    _read: Callable[[], Awaitable[bytes]]
    """Reads the next bytes; set with the response."""

    def __init__(self, wire: Wire, watch: Watch) -> None:
        self.decoder = wire.decoder()
        self.items: list[Live | UsageSoFar] = []
        self.events: list[ServerEvent] = []
        self.spent = Usage()
        self.ended = False
        self._wire = wire
        self._watch = watch
        self._sse = SseDecoder()
        self._response: httpx.Response | None = None
        self._host = ""
        self._now = 0.0
        self._status = 0
        self._headers: Mapping[str, str] = {}
        self._bytes = self._unended = 0
        # The first bytes: an error quotes them if no event ever comes.
        self._head: bytes | None = b""

    async def open(self, client: httpx.AsyncClient, request: httpx.Request, now: float) -> None:
        """Send `request`; afterwards the server has agreed to answer it.

        Raises:
            ProviderError: the server refused, or could not be reached.
        """
        self._watch.attempt()
        self._host, self._now = request.url.host, now
        response = await self._watched(lambda: client.send(request, stream=True))
        self._response = response
        self._status, self._headers = response.status_code, response.headers
        self._read = response.aiter_raw().__anext__
        encoding = response.headers.get("content-encoding", "").strip()
        # Nothing is decoded: 2 kB of an encoding that was not asked for can become gigabytes.
        if encoding.lower() not in {"", "identity"}:
            problem = f"content-encoding: expected 'identity', as asked for, found {encoding!r}"
            if response.is_success:
                raise BadReply(f"{problem}. Fix: have the server, or its proxy, not compress.")
            raise self._failure(problem.encode())
        if not response.is_success:
            raise self._failure(await self._body())

    async def begin(self) -> bool:
        """Receive until the reply's content starts, then return True.

        Return False as soon as the server reports usage before that: `spent` holds it, and the
        caller calls `begin` again. The caller pays for an attempt that fails from then on.

        Raises:
            ProviderError: no content has come, and none will.
        """
        decoder = self.decoder
        events = self.events
        while True:
            if self._decode_to_content(events):
                return False
            if decoder.content_started:
                self._watch.content_started()
                return True
            if decoder.complete or self.ended:
                decoder.reply()
                return True
            events = await self.receive()

    async def receive(self) -> list[ServerEvent]:
        """Await more of the response; return the events it completes, maybe none.

        Raises:
            ProviderError: the line broke, a time limit ran out, the reply is too long, or this is
                no stream of events.
        """
        try:
            chunk = await self._watched(self._read)
        except StopAsyncIteration:
            self.ended = True
            return self._last_events()
        events = self._sse.feed(chunk)
        self._bytes += len(chunk)
        self._unended = 0 if events else self._unended + len(chunk)
        if self._bytes > REPLY_BYTES_MAX or self._unended > EVENT_BYTES_MAX:
            raise BadReply(
                f"reply: expected at most {REPLY_BYTES_MAX} bytes (REPLY_BYTES_MAX), and in one "
                f"event {EVENT_BYTES_MAX} (EVENT_BYTES_MAX), found more from {self._host}."
            )
        if self._head is not None:
            self._keep_head(self._head, chunk, events)
        return events

    async def drain(self) -> None:
        """Wait a moment for the end, which makes the connection reusable."""
        self._watch.at_most(DRAIN_S)
        with suppress(ProviderError, StopAsyncIteration):
            while True:
                await self._watched(self._read)

    async def close(self) -> None:
        """Release the connection, for good unless the response has ended."""
        self._watch.stop()
        if self._response is not None:
            await self._response.aclose()

    async def _watched(self, call: Callable[[], Awaitable[T]]) -> T:
        """Await `call()` under the watch; the end of an iteration passes."""
        watch = self._watch
        watch.begin()
        try:
            return await call()
        except asyncio.CancelledError:
            timeout = watch.verdict()
            if timeout is None:
                raise
            raise timeout from None
        except httpx.RequestError as error:
            raise self._broken(error) from error
        finally:
            watch.end()

    async def _body(self) -> bytes:
        """Return as much of an error's body as comes in time."""
        body = b""
        self._watch.at_most(ERROR_BODY_S)
        with suppress(ProviderError, StopAsyncIteration):
            while len(body) < BODY_BYTES_MAX:
                body += await self._watched(self._read)
        return body[:BODY_BYTES_MAX]

    def _decode_to_content(self, events: list[ServerEvent]) -> bool:
        """Decode up to the content's first event, and keep the rest.

        An error later in the same chunk must lose neither shown deltas nor usage. Usage before the
        content ends the decoding too: then return True.
        """
        for at, event in enumerate(events):
            items = self.decoder.feed(event)
            self.events = events[at + 1 :]
            if self.decoder.content_started:
                self.items.extend(items)
                return False
            reports = [item for item in items if isinstance(item, UsageSoFar)]
            if reports:
                self.spent = reports[-1].usage
                return True
        return False

    def _keep_head(self, head: bytes, chunk: bytes, events: list[ServerEvent]) -> None:
        if events:
            self._head = None
        elif len(head) < BODY_BYTES_MAX:
            self._head = head + chunk[:BODY_BYTES_MAX]
        elif head.strip() and not self._begins_stream(head):
            raise self._no_stream(head)
        else:
            self._head = None

    def _last_events(self) -> list[ServerEvent]:
        """Return the last event if it only lacks its empty line.

        The decoder decides whether a stream may end there.
        """
        events = self._sse.close()
        if not (events or self._head is None or self._begins_stream(self._head)):
            raise self._no_stream(self._head)
        return [event for event in events if _is_whole(event.data)]

    def _failure(self, body: bytes) -> ProviderError:
        location = self._headers.get("location")
        if location and 300 <= self._status < 400:
            return BadReply(
                f"expected an answer from {self._host}, found a redirect ({self._status}) to "
                f"{quoted(location)}. No redirect is followed, for the key would go along. "
                "Fix: set base_url to that address if you trust it.",
                status=self._status,
            )
        error = self._wire.error(self._status, body)
        asked_s = retry_after_s(self._headers, self._now)
        error.retry_after_s = error.retry_after_s if asked_s is None else asked_s
        return error

    def _begins_stream(self, head: bytes) -> bool:
        """Whether these first bytes start a stream of events."""
        if not head.strip():  # A stream that was cut before its first event.
            return self._headers.get("content-type", "").startswith("text/event-stream")
        start = head.lstrip(b"\xef\xbb\xbf\r\n")
        return start.startswith((b":", b"data:", b"event:", b"id:", b"retry:"))

    def _no_stream(self, head: bytes) -> ProviderError:
        """Return the error that a successful answer without any event means."""
        if is_report(head):
            return self._failure(head)
        return BadReply(
            "expected a stream of server-sent events, found "
            f"content-type {self._headers.get('content-type', '')!r} and a body that begins "
            f"{head[:QUOTE_BYTES]!r}. Does {self._host} speak the wire {self._wire.name!r} at "
            "this path, with streaming?",
            status=self._status,
        )

    def _broken(self, error: httpx.RequestError) -> ProviderError:
        cause = f"{type(error).__name__}: {error}"
        if isinstance(error, httpx.ConnectTimeout):
            return ProviderTimeout(
                f"no connection to {self._host} within Timeouts.connect_s ({cause}).",
                layer="connect",
            )
        if self.decoder.content_started:
            return StreamTruncated(
                f"expected the terminal marker of the wire {self._wire.name!r}, but the "
                f"connection broke before it ({cause}). What came is not an answer; ask again."
            )
        return ConnectionFailed(
            f"expected an answer from {self._host}, but the connection failed ({cause})."
        )


def _is_whole(data: bytes) -> bool:
    """Whether the last data of a stream is JSON or the marker."""
    try:
        parse_json(data)
    except ValueError:
        return data == b"[DONE]"
    return True
