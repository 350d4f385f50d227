"""The servers of the tests' MCP server, and calls of their tools without a run."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from graphloop.mcp import Server, stdio
from graphloop.tools import AnyTool, ToolContext, ToolOutcome
from tests.warm_python import warm_python

__all__ = ["CONTEXT", "SERVER", "Make", "ended", "outcome", "own", "tools_of", "until"]

SERVER = str(Path(__file__).parent / "mcp_server.py")
import_module("graphloop.mcp.connection")  # No test should wait for its import.
CONTEXT = ToolContext("run", "c0.0", "call", 0, ())

Make: TypeAlias = Callable[..., Server]


@asynccontextmanager
async def tools_of(server: Server) -> AsyncGenerator[dict[str, AnyTool]]:
    """Yield the tools of a server by name, and close it."""
    try:
        yield {tool.name: tool for tool in await server.tools()}
    finally:
        await server.aclose()


async def outcome(tool: AnyTool, **arguments: object) -> ToolOutcome:
    """Return the outcome of a call."""
    return await tool.run(json.dumps(arguments), CONTEXT)


def own(**options: object) -> Server:
    """Return a server of this test's own, on the newest protocol."""
    return stdio(*warm_python(), SERVER, "stdio", **options)  # type: ignore[arg-type]


async def until(holds: Callable[[], bool]) -> None:
    """Let other tasks run until a condition holds; the test's deadline bounds the wait."""
    while not holds():  # noqa: ASYNC110 - another process decides
        await asyncio.sleep(0.01)


def ended(pid: int) -> bool:
    """Whether a process ends; a killed child stays a while until its parent has read its end."""
    for _ in range(500):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        threading.Event().wait(0.01)
    return False
