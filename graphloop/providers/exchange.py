"""One HTTP request for a model call, and its response stream.

The exchange reads the response under the time limits of a `Watch`, and converts each failure to a
`ProviderError`. It never retries; the session does.
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
from .whole_reply import WholeReply, comes_whole
from .wire_json import parse_json, quoted

__all__ = ["HttpExchange"]

T = TypeVar("T")

BODY_BYTES_MAX = 65_536
"""The maximum number of bytes kept of a response that is not an event stream."""

ERROR_BODY_S = 2.0
"""The seconds to wait for the body of an error response, whose status is already known."""

DRAIN_S = 0.05
"""The seconds to wait for a response's end after its terminal marker, to reuse the connection."""

REPLY_BYTES_MAX = 128 * 2**20
"""The maximum size of a reply: three times that of 128,000 tokens in one event each."""

EVENT_BYTES_MAX = 16 * 2**20
"""The maximum size of one event: more than the largest image that a model generates."""

QUOTE_BYTES = 200


@final
class HttpExchange:
    """An attempt at a model call over HTTP; the caller must close it.

    Attributes:
        decoder: the wire's decoder for this response.
        items: the items that `begin` decoded; the caller yields them first.
        events: the events that `begin` received but did not decode; the caller decodes them next.
        spent: the last usage that the server reported for this attempt.
        ended: whether the response has ended.
    """

    _read: Callable[[], Awaitable[bytes]]
    """Reads the next bytes of the response; `open` sets this function."""

    def __init__(self, wire: Wire, watch: Watch) -> None:
        self.decoder = wire.decoder()
        self.items: list[Live | UsageSoFar] = []
        self.events: list[ServerEvent] = []
        self.spent = Usage()
        self.ended = False
        self._wire = wire
        self._watch = watch
        self._sse = WholeReply(wire) if comes_whole(wire) else SseDecoder()
        self._response: httpx.Response | None = None
        self._host = ""
        self._now = 0.0
        self._status = 0
        self._headers: Mapping[str, str] = {}
        self._bytes = self._unended = 0
        # The first bytes of the response: an error quotes them if the response has no event.
        self._head: bytes | None = b""

    async def open(
        self,
        client: httpx.AsyncClient,
        make_request: Callable[[], Awaitable[httpx.Request]],
        now: float,
    ) -> None:
        """Send a request, and return when the server has responded with a success status.

        Args:
            client: sends the request.
            make_request: makes the request; the time limits hold for it, too.
            now: the Unix time.

        Raises:
            ProviderError: the server refused the request, or could not be reached.
        """
        self._watch.attempt()
        request = await self._call_within_limits(make_request)
        self._host, self._now = request.url.host, now
        response = await self._call_within_limits(lambda: client.send(request, stream=True))
        self._response = response
        self._status, self._headers = response.status_code, response.headers
        self._read = response.aiter_raw().__anext__
        encoding = response.headers.get("content-encoding", "").strip()
        # Unrequested compression is refused, because 2 kB can decompress to gigabytes.
        if encoding.lower() not in {"", "identity"}:
            problem = f"content-encoding: expected 'identity', as asked for, found {encoding!r}"
            if response.is_success:
                raise BadReply(f"{problem}. Fix: have the server, or its proxy, not compress.")
            raise self._error_of_body(problem.encode())
        if not response.is_success:
            raise self._error_of_body(await self._error_body())

    async def begin(self) -> bool:
        """Receive until the reply's content starts, then return True.

        If the server reports usage before the content, return False at once, with the usage in
        `spent`; the caller calls `begin` again. After such a report, even a failed attempt costs
        money. A complete reply without content also returns True.

        Raises:
            ProviderError: the attempt failed before any content.
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
        """Await the next bytes of the response; return the events they complete, possibly none.

        Raises:
            ProviderError: the connection broke, a time limit ran out, the reply is too long, or the
                response is not an event stream.
        """
        try:
            chunk = await self._call_within_limits(self._read)
        except StopAsyncIteration:
            self.ended = True
            return self._last_events()
        events = self._sse.feed(chunk)
        self._bytes += len(chunk)
        ended = bool(events) or isinstance(self._sse, WholeReply)
        self._unended = 0 if ended else self._unended + len(chunk)
        if self._bytes > REPLY_BYTES_MAX or self._unended > EVENT_BYTES_MAX:
            raise BadReply(
                f"reply: expected at most {REPLY_BYTES_MAX} bytes (REPLY_BYTES_MAX), and in one "
                f"event {EVENT_BYTES_MAX} (EVENT_BYTES_MAX), found more from {self._host}."
            )
        if self._head is not None and not isinstance(self._sse, WholeReply):
            self._keep_head(self._head, chunk, events)
        return events

    async def drain(self) -> None:
        """Wait briefly for the end of the response, so that the connection can be reused."""
        self._watch.at_most(DRAIN_S)
        with suppress(ProviderError, StopAsyncIteration):
            while True:
                await self._call_within_limits(self._read)

    async def close(self) -> None:
        """Release the connection; it can be reused only if the response has ended."""
        self._watch.stop()
        if self._response is not None:
            await self._response.aclose()

    async def _call_within_limits(self, call: Callable[[], Awaitable[T]]) -> T:
        """Await `call()` under the time limits, and convert failures to `ProviderError`.

        A `StopAsyncIteration`, which marks the end of the response, passes through.
        """
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
            raise self._connection_error(error) from error
        finally:
            watch.end()

    async def _error_body(self) -> bytes:
        """Return the part of an error response's body that arrives within the time limit."""
        body = b""
        self._watch.at_most(ERROR_BODY_S)
        with suppress(ProviderError, StopAsyncIteration):
            while len(body) < BODY_BYTES_MAX:
                body += await self._call_within_limits(self._read)
        return body[:BODY_BYTES_MAX]

    def _decode_to_content(self, events: list[ServerEvent]) -> bool:
        """Decode events until the content starts; return True at a usage report before it.

        The remaining events stay in `events`, so that an error among them loses neither earlier
        deltas nor usage.
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
        """Return the stream's last event if only its closing empty line is missing.

        The decoder decides whether the stream may end there.
        """
        if isinstance(self._sse, WholeReply):
            if is_report(body := self._sse.body):
                raise self._error_of_body(body)
            return self._sse.close()
        events = self._sse.close()
        if not (events or self._head is None or self._begins_stream(self._head)):
            raise self._no_stream(self._head)
        return [event for event in events if _is_whole(event.data)]

    def _error_of_body(self, body: bytes) -> ProviderError:
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
        """Whether `head`, the first bytes of the response, starts an event stream."""
        if not head.strip():  # The response ended before its first event.
            return self._headers.get("content-type", "").startswith("text/event-stream")
        start = head.lstrip(b"\xef\xbb\xbf\r\n")
        return start.startswith((b":", b"data:", b"event:", b"id:", b"retry:"))

    def _no_stream(self, head: bytes) -> ProviderError:
        """Return the error for a response with a success status but without any event."""
        if is_report(head):
            return self._error_of_body(head)
        return BadReply(
            "expected a stream of server-sent events, found "
            f"content-type {self._headers.get('content-type', '')!r} and a body that begins "
            f"{head[:QUOTE_BYTES]!r}. Fix: check that {self._host} speaks the wire "
            f"{self._wire.name!r} at this path; if it does not stream, ask it by "
            "connect(…, stream=False).",
            status=self._status,
        )

    def _connection_error(self, error: httpx.RequestError) -> ProviderError:
        cause = f"{type(error).__name__}: {error}"
        if isinstance(error, httpx.ConnectTimeout):
            return ProviderTimeout(
                f"no connection to {self._host} within Timeouts.connect_s ({cause}).",
                layer="connect",
            )
        if self.decoder.content_started:
            return StreamTruncated(
                f"expected the terminal marker of the wire {self._wire.name!r}, but the "
                f"connection broke before it ({cause}). The part that arrived is no answer; "
                "ask again."
            )
        return ConnectionFailed(
            f"expected an answer from {self._host}, but the connection failed ({cause})."
        )


def _is_whole(data: bytes) -> bool:
    """Whether the data of a stream's last event is complete JSON or the marker `[DONE]`."""
    try:
        parse_json(data)
    except ValueError:
        return data == b"[DONE]"
    return True
