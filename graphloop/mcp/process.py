"""Process: an MCP server that this process starts, and its three streams.

The server gets the messages on its standard input, and answers on its standard output. All other
lines, there or on standard error, go to the logger `graphloop.mcp`. The server runs in a process
group of its own, which ends with the connection, also where a task is cancelled twice.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeAlias, cast

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from .target import MESSAGE_BYTES_MAX

__all__ = ["ServerLog", "Streams", "launched"]

LOG: Final = logging.getLogger("graphloop.mcp")

SHOWN_CHARS_MAX: Final = 500
CHUNK_BYTES: Final = 65_536
TOO_LONG: Final = f"(a line of more than {MESSAGE_BYTES_MAX} bytes)".encode()
"""Stands for a line that is larger than a message may be."""
GRACE_S: Final = 2.0
"""The seconds that a server gets to end after its input has closed, and again after SIGTERM."""
KILL_S: Final = 10.0
"""The seconds until the connection leaves a killed server that its system does not end."""

Streams: TypeAlias = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


class ServerLog:
    """The lines that a server prints beside the protocol; `last` is the last of them.

    Args:
        name: the server's name, which begins each record.
    """

    def __init__(self, name: str) -> None:
        self._name, self.last = name, ""

    def add(self, line: bytes) -> None:
        """Log a line, cut to a length that a person reads; blank lines are left out."""
        text = line[: 4 * SHOWN_CHARS_MAX].decode("utf-8", "replace").strip()[:SHOWN_CHARS_MAX]
        if text:
            self.last = text
            LOG.info("%s: %s", self._name, text)

    @property
    def quoted(self) -> str:
        """The last line, as the end of an error message; empty without a line."""
        return f" Its last line was: {self.last!r}." if self.last else ""


@asynccontextmanager
async def launched(
    command: Sequence[str],
    env: Mapping[str, str],
    cwd: str | None,
    log: ServerLog,
    ended: Callable[[], object],
) -> AsyncGenerator[Streams, None]:
    """Start a server, yield the streams of its messages, and end it with all its children.

    Args:
        command: the program and its arguments.
        env: variables beside the few that each server inherits, such as PATH and HOME.
        cwd: the directory in which the server starts.
        log: takes what the server prints beside the protocol.
        ended: is called when the server closes its output.

    Raises:
        OSError: the program cannot be started.
    """
    process = await _start_process(command, get_default_environment() | dict(env), cwd)
    answers, into_session = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    requests, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    is_heard = anyio.Event()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read, process, answers, log, ended)
            tasks.start_soon(_write, process, from_session)
            tasks.start_soon(_hear, process, log, is_heard)
            try:
                yield into_session, requests
            finally:
                with anyio.CancelScope(shield=True):
                    await _end(process)
                    with anyio.move_on_after(GRACE_S):  # A grandchild may hold the stream open.
                        await is_heard.wait()
                tasks.cancel_scope.cancel()
    finally:
        for stream in (answers, into_session, requests, from_session):
            stream.close()
        await _kill(process)


async def _start_process(
    command: Sequence[str], env: Mapping[str, str], cwd: str | None
) -> Process:
    with anyio.CancelScope(shield=True):  # A cancelled start would leave a process behind.
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
    raise AssertionError("no cancellation passes the shield")


async def _read(
    process: Process,
    answers: MemoryObjectSendStream[SessionMessage | Exception],
    log: ServerLog,
    ended: Callable[[], object],
) -> None:
    """Send each message on the server's output to the session, and other lines to the log."""
    with answers:
        async for line in _read_lines(process.stdout):
            if line is TOO_LONG:
                log.add(line)
                break  # It may have been an answer, for which a caller would wait.
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                log.add(line)  # Servers print greetings there, too.
                continue
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await answers.send(SessionMessage(message))
    ended()


async def _write(process: Process, sent: MemoryObjectReceiveStream[SessionMessage]) -> None:
    """Give the server what the session sends."""
    assert process.stdin is not None
    async for each in sent:
        text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
        process.stdin.write(text.encode() + b"\n")
        with suppress(ConnectionError):  # The end of the server's output tells the session.
            await process.stdin.drain()


async def _hear(process: Process, log: ServerLog, is_heard: anyio.Event) -> None:
    """Give the log what the server prints on standard error."""
    try:
        async for line in _read_lines(process.stderr):
            log.add(line)
    finally:
        is_heard.set()  # The end of an event loop cancels this task, too.


async def _read_lines(stream: asyncio.StreamReader | None) -> AsyncGenerator[bytes, None]:
    assert stream is not None
    rest = bytearray()
    while chunk := await stream.read(CHUNK_BYTES):
        begin = len(rest)
        rest += chunk
        end = rest.rfind(b"\n", begin)
        if end >= 0:
            for line in bytes(rest[:end]).split(b"\n"):
                yield line
            del rest[: end + 1]
        elif len(rest) > MESSAGE_BYTES_MAX:
            rest.clear()
            yield TOO_LONG
    if rest:
        yield bytes(rest)


async def _end(process: Process) -> None:
    """Close the server's input, and send SIGTERM to a server that does not end by itself."""
    assert process.stdin is not None
    process.stdin.close()
    with anyio.move_on_after(GRACE_S):
        await process.wait()
        return
    _signal(process, signal.SIGTERM)
    with anyio.move_on_after(GRACE_S):
        await process.wait()


async def _kill(process: Process) -> None:
    """End what is left of the server's process group, and wait for the server.

    A cancelled task sends the signal, too. Without the wait, an event loop that ends next would
    leave a process that no parent waits for.
    """
    _signal(process, signal.SIGKILL)
    try:
        with anyio.move_on_after(KILL_S, shield=True):
            await process.wait()
    finally:
        transport = cast("asyncio.BaseTransport", getattr(process, "_transport"))  # noqa: B009
        transport.close()  # Nothing public closes the pipes that a grandchild holds.


def _signal(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
