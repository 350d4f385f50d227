"""Serve an agent as a tool of an MCP server.

  graphloop mcp serve desk.py --store runs.db
  graphloop mcp serve desk.py --http 8700 --model anthropic:claude-opus-4-8

Without --http, the client starts this command, and both talk over standard input and output. In the
client's configuration:

  {"mcpServers": {"desk": {"command": "graphloop", "args": ["mcp", "serve", "/path/desk.py"]}}}

With --http, the server listens at http://127.0.0.1:PORT/mcp, and to this machine only.

An approval that a tool needs is asked of the client's user. A run that waits for it is kept in
--store, or else in the agent's own store. GRAPHLOOP_SERVE_SECRET signs what the client sends back
with an answer; set it if the answer may come to another process.

Python is executed. Exit status: 0 the client left, 2 wrong usage, 130 Ctrl-C.
"""

from __future__ import annotations

import asyncio
import os
from typing import Annotated, TypeAlias

import typer

from ... import serve
from ...errors import ConfigError
from ...tools import legal_name
from ..errors import Status, tell_error
from ..options import BaseUrl, Registers, StorePath, TargetArgument, Text
from ..run import ModelName, Script, agent_for

__all__ = ["serve_command"]

SECRET = "GRAPHLOOP_SERVE_SECRET"  # noqa: S105 - the name of the variable

Http: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="PORT", min=0, max=65_535, help="Serve HTTP at this port; 0 is a free one."
    ),
]

Description: TypeAlias = Annotated[
    Text, typer.Option(metavar="TEXT", help="The agent's description, for a client's model.")
]


def serve_command(  # noqa: PLR0913 - the options of a command are its parameters
    target: TargetArgument,
    *,
    http: Http = None,
    store: StorePath = None,
    model: ModelName = None,
    script: Script = None,
    base_url: BaseUrl = None,
    description: Description = None,
    registers: Registers = None,
) -> Status:
    """Serve until the client leaves, or Ctrl-C."""
    agent, making = agent_for(target, registers, model, script, base_url)
    try:
        served = serve.McpServer
    except ModuleNotFoundError as missing:
        raise ConfigError(str(missing)) from missing

    async def work() -> None:
        async with making as deps:
            server = served(
                [agent],
                store=store,
                descriptions={legal_name(agent.name): description} if description else None,
                secret=os.environ.get(SECRET) or None,
                deps=lambda _: deps.get("deps"),
            )
            if http is None:
                await server.stdio()
            else:
                await server.http(
                    http, told=lambda url: tell_error(f"serving at {url}; Ctrl-C ends it")
                )

    try:
        asyncio.run(work())
    except KeyboardInterrupt:
        return Status.INTERRUPTED
    return Status.OK
