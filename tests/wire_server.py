"""A small honest HTTP/1.1 server on the loopback, for everything that must cross a real socket.

It answers every request, whatever its path, with the next of its answers, and writes down what it
was asked. Bodies go out as chunked encoding, one HTTP chunk for each element, so that a test
decides where the bytes are cut; an `asyncio.Event` before a chunk takes the place of a sleep.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, TypeAlias, final

__all__ = ["Answer", "Cut", "Request", "WireServer", "json_answer", "sse"]

Cut: TypeAlias = Literal["", "before_answer", "after_status"]


@final
@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came; header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@final
@dataclass(frozen=True, slots=True)
class Answer:
    """What to answer, and how to fail at it.

    Attributes:
        body: the HTTP chunks.
        status: the HTTP status.
        headers: `content-type: text/event-stream` unless it is said otherwise.
        gates: before the chunk of this number (or the end, the number of chunks) wait for this.
        cut_after: close the connection after so many chunks, without the end of the body.
        cut: close before any answer, or reset the connection right after the status line.
    """

    body: Sequence[bytes] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    gates: Mapping[int, asyncio.Event] = field(default_factory=dict[int, asyncio.Event])
    cut_after: int | None = None
    cut: Cut = ""


def sse(*events: str | tuple[str, str]) -> list[bytes]:
    """Return one chunk for each event: its data, or a pair of its name and its data."""
    return [
        f"data: {one}\n\n".encode()
        if isinstance(one, str)
        else f"event: {one[0]}\ndata: {one[1]}\n\n".encode()
        for one in events
    ]


def json_answer(status: int, text: str, **headers: str) -> Answer:
    """Return an answer of JSON text; `retry_after="1"` becomes the header `retry-after`."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer([text.encode()], status, {"content-type": "application/json", **names})


class _ClientLeft(Exception):
    """The client closed the connection before the answer was over."""


@final
class WireServer:
    """Serves `answers` one after the other; `async with` gives it its port.

    Attributes:
        requests: every request, in the order of arrival.
        connections: how many connections were accepted.
        connections_open: how many of them stand.
        waiting: set when an answer waits at a gate for the first time.
        client_left: set when a client closes its connection in the middle of an answer.
    """

    def __init__(self, answers: Iterable[Answer] = ()) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self.connections_open = 0
        self.waiting = asyncio.Event()
        self.client_left = asyncio.Event()
        self._answers = list(answers)
        self._handlers: set[asyncio.Task[object]] = set()
        self._server: asyncio.Server | None = None
        self._port = 0
        self._changed = asyncio.Event()

    async def __aenter__(self) -> WireServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for handler in self._handlers:
            handler.cancel()
        if self._handlers:
            await asyncio.wait(self._handlers)

    @property
    def url(self) -> str:
        """The base URL, without a path."""
        return f"http://127.0.0.1:{self._port}"

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait until `happened()`; it is asked after every arrival of a request and departure."""
        while not happened():
            self._changed.clear()
            await self._changed.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handler = asyncio.current_task()
        assert handler is not None
        self._handlers.add(handler)
        self.connections += 1
        self.connections_open += 1
        try:
            while (request := await _read_request(reader)) is not None:
                self.requests.append(request)
                self._changed.set()
                if not await self._write(self._next_answer(), reader, writer):
                    break
        except (_ClientLeft, ConnectionError):
            self.client_left.set()
        except asyncio.CancelledError:
            # Only `__aexit__` cancels. A handler that ends cancelled is logged by asyncio.
            handler.uncancel()
        finally:
            writer.close()
            self.connections_open -= 1
            self._changed.set()
            self._handlers.discard(handler)

    async def _write(
        self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Write `answer`; return whether the connection may serve another request."""
        if answer.cut == "before_answer":
            return False
        writer.write(f"HTTP/1.1 {answer.status} As-Told\r\n".encode())
        await writer.drain()
        if answer.cut == "after_status":
            _reset(writer)
            return False
        headers = {"content-type": "text/event-stream", **answer.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"{lines}transfer-encoding: chunked\r\n\r\n".encode())
        for number, chunk in enumerate(answer.body):
            if number == answer.cut_after:
                break
            await self._pass(answer.gates.get(number), reader)
            writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            await writer.drain()
        if answer.cut_after is not None:
            return False
        await self._pass(answer.gates.get(len(answer.body)), reader)
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    async def _pass(self, gate: asyncio.Event | None, reader: asyncio.StreamReader) -> None:
        """Wait for `gate`, or notice that the client has left."""
        if gate is None:
            return
        self.waiting.set()
        async with asyncio.TaskGroup() as group:
            opened = group.create_task(gate.wait())
            left = group.create_task(_until_closed(reader))
            await asyncio.wait((opened, left), return_when=asyncio.FIRST_COMPLETED)
            opened.cancel()
            left.cancel()
        if not gate.is_set():
            raise _ClientLeft

    def _next_answer(self) -> Answer:
        if self._answers:
            return self._answers.pop(0)
        return json_answer(500, '{"error": {"message": "WireServer has no answer left"}}')


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    """Return the next request of a connection, or None when the client has closed it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        start, *lines = head.decode("latin-1").rstrip().split("\r\n")
        method, path, _ = start.split(" ")
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return Request(method, path, headers, body)


async def _until_closed(reader: asyncio.StreamReader) -> None:
    """Wait for the end of what the client sends; nobody pipelines requests."""
    try:
        while await reader.read(1):
            pass
    except ConnectionError:
        return


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST, as a crashed server's machine does, not with FIN."""
    line = writer.get_extra_info("socket")
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
