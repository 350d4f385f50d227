"""Listening: how an MCP server meets its clients: by standard streams, or by HTTP on this machine.

Ctrl-C ends both while calls are under way. A thread that reads the standard input cannot be stopped
in its read, so the SDK's reader gets a socket in its place, which ends when the server does.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final

import uvicorn
from mcp.server import Server
from mcp.server.stdio import stdio_server
from starlette.applications import Starlette

from ..errors import ConfigError

__all__ = ["closing_app", "serve_http", "serve_stdio"]

STDIN: Final = 0
CHUNK_BYTES: Final = 65_536
GRACE_S: Final = 1
"""The seconds that calls under way get to end by themselves, once the server is interrupted."""


async def serve_stdio(server: Server[dict[str, Any]]) -> None:
    """Serve the client at the standard streams until it leaves, or this task is cancelled."""
    with _endable_stdin() as end:
        async with stdio_server() as (reading, writing):
            try:
                await server.run(reading, writing, server.create_initialization_options())
            finally:
                end()
                # The buffer may hold what tools have printed, which belongs to standard error.
                sys.stdout.flush()


async def serve_http(app: Starlette, port: int, told: Callable[[str], object] | None) -> None:
    """Serve an application at a port of this machine until the process is interrupted.

    Args:
        app: the application.
        port: the port; 0 for a free one.
        told: is called with the address once clients can connect.

    Raises:
        ConfigError: the port cannot be had.
    """
    try:
        listening = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise ConfigError(
            f"`port`: expected a free port of this machine, found {port}: "
            f"{os.strerror(error.errno or 0)}. Fix: choose another, or 0 for any."
        ) from error
    with listening:
        if told is not None:
            told(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp")
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=GRACE_S)
        await uvicorn.Server(config).serve(sockets=[listening])


def closing_app(app: Starlette, close: Callable[[], Awaitable[None]]) -> Starlette:
    """Return an application that calls `close` at its end, after its last request."""
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[Any]:
        try:
            async with inner(app) as state:
                yield state
        finally:
            await close()

    app.router.lifespan_context = lifespan
    return app


@contextmanager
def _endable_stdin() -> Generator[Callable[[], None]]:
    """Put a socket in the place of standard input, and yield a function that ends it.

    The standard input is the client's again at the end. Windows has no sockets in its place.
    """
    if os.name != "posix":
        yield lambda: None
        return
    real = os.dup(STDIN)
    # A shut socket wakes its reader and its writer, which a closed pipe would not.
    reading, writing = socket.socketpair()
    with reading:
        os.dup2(reading.fileno(), STDIN)

    def end() -> None:
        with suppress(OSError):  # The other side has left.
            writing.shutdown(socket.SHUT_RDWR)

    def pump() -> None:
        with suppress(OSError):  # `end` was called, or the reader has left.
            while data := os.read(real, CHUNK_BYTES):
                writing.sendall(data)
        end()

    threading.Thread(target=pump, daemon=True, name="standard input").start()
    try:
        yield end
    finally:
        end()
        os.dup2(real, STDIN)
