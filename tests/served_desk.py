"""Served agents for tests: `python -m tests.served_desk FOLDER stdio`, or `FOLDER http PORT`.

`FOLDER a2a PORT NAME` serves the agent of that name by A2A, at the same port.
The folder holds the store and a ledger with a line for each payment.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from io import BufferedReader
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import uvicorn

from graphloop import Agent, tool
from graphloop.serve import McpServer, a2a_app
from graphloop.testing import ScriptedModel
from graphloop.tools import ToolAsks, ToolContext
from graphloop.values import ModelRequest, ToolResult
from tests import forked

ROOT = Path(__file__).parents[1]
SECRET = "a secret of the desk"  # noqa: S105 - of a test
IN_COLOUR = '{"type":"object","properties":{"colour":{"type":"string"}},"required":["colour"]}'
PAYS = {"text": "I will pay.", "calls": [{"name": "pay", "arguments": {"amount": 5}}]}


def told_by_tool(request: ModelRequest) -> str:
    """Return the last result as the model's text."""
    result = request.messages[-1]
    assert isinstance(result, ToolResult)
    return str(result.content)


def agents(folder: Path) -> dict[str, Agent]:
    """Return agents that pay after an approval, wait, and paint after a question."""

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pay an amount."""
        print("a tool prints")  # noqa: T201 - it must not reach the client
        with (folder / "ledger").open("a") as ledger:
            ledger.write(f"{amount}\n")
        return f"paid {amount}"

    async def wait() -> str:
        """Wait for ever."""
        print("a tool prints")  # noqa: T201 - it must not reach the client, not even at the end
        (folder / "waiting").touch()
        await asyncio.Event().wait()
        return "never"

    @tool
    async def paint(context: ToolContext) -> str:
        """Paint in a colour that a person names."""
        if context.answer is None:
            raise ToolAsks("Which colour?\nAny will do.", IN_COLOUR, "")
        return f"painted {context.answer.content}"

    pays = ScriptedModel([PAYS, "Paid."], restart=True)
    waits = ScriptedModel([{"calls": [{"name": "wait", "arguments": {}}]}, "Up."], restart=True)
    return {
        "desk": Agent(pays, tools=[pay], name="desk"),
        "sleeper": Agent(waits, tools=[tool(wait)], name="sleeper"),
        "dozer": Agent(waits, tools=[tool(wait, effect="pure")], name="dozer"),
        "painter": Agent(
            ScriptedModel([{"calls": [{"name": "paint"}]}, told_by_tool], restart=True),
            tools=[paint],
        ),
    }


def free_port() -> int:
    """Return a port that no process listens at."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@contextmanager
def started(folder: Path, *words: str, port: int = 0) -> Generator[str]:
    """Start a process that serves over HTTP, at a free port if none is given, and kill it later."""
    transport, *name = words
    at = port or free_port()
    with listening("tests.served_desk", str(folder), transport, str(at), *name, port=at) as url:
        yield url


@contextmanager
def listening(module: str, *words: str, port: int) -> Generator[str]:
    """Start a module that listens at a port, and kill it at the end."""
    with module_process(module, *words) as (_, told):
        while b"running on" not in told.readline():
            pass
        drain = threading.Thread(target=told.read)
        drain.start()
        yield f"http://127.0.0.1:{port}/"
    drain.join()


@contextmanager
def module_process(module: str, *words: str) -> Generator[tuple[ForkServerProcess, BufferedReader]]:
    """Start a module, yield its process and what it writes to stderr, and kill it at the end."""
    told, tells = os.pipe()
    with Path(os.devnull).open() as nothing, os.fdopen(told, "rb") as lines:
        streams = nothing.fileno(), 1, tells
        process = forked.started(
            partial(forked.run_module, (module, *words)), ROOT, os.environ, streams
        )
        os.close(tells)
        try:
            yield process, lines
        finally:
            process.kill()
            process.join()


async def main(folder: Path, transport: str, port: int, name: str) -> None:
    """Serve until the client leaves, or the process is killed."""
    known = agents(folder)
    store = folder / "runs.db"
    if transport == "a2a":
        app = a2a_app(known[name], f"http://127.0.0.1:{port}/", store=store, secret=SECRET)
    else:
        served = McpServer([known["desk"], known["sleeper"]], store=store, secret=SECRET)
        if transport == "stdio":
            await served.stdio()
        else:
            await served.http(port, told=lambda url: print(f"running on {url}", file=sys.stderr))  # noqa: T201
        return
    await uvicorn.Server(uvicorn.Config(app, port=port, log_level="info")).serve()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int((*sys.argv, "0")[3]), sys.argv[-1]))
