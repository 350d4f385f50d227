"""List the tools of an MCP server, each with what a model would read of it.

  graphloop mcp list https://crm.example/mcp --header authorization="Bearer $TOKEN"
  graphloop mcp list "npx -y @modelcontextprotocol/server-filesystem ."
  graphloop mcp list "uvx mcp-server-git" --env GIT_DIR --json
  graphloop mcp list desk.py:crm

The server is started or reached, and closed again; no tool runs. Each description is text from a
stranger that a model obeys: read it before an agent does. --json prints one object for each tool,
with its schemas and its fingerprint.

A command is executed, and so is a Python file that names the server.

Exit status: 0 the tools are listed, 2 the server cannot be reached, or wrong usage, 130 Ctrl-C.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import cast

import msgspec

from ...mcp import Definition, Server
from ..errors import Status
from ..options import Json
from ..text import clean, safe_json, wrapped
from .servers import Environment, ServerArgument, ServerHeaders, Timeout, served

__all__ = ["list_command"]


def list_command(
    server: ServerArgument,
    *,
    header: ServerHeaders = None,
    env: Environment = None,
    timeout: Timeout = None,
    as_json: Json = False,
) -> Status:
    """Print the tools of a server."""

    async def listed(server: Server) -> Status:
        for tool in await server.definitions():
            lines = [_tool_json(tool)] if as_json else _tool_lines(tool)
            sys.stdout.writelines(f"{line}\n" for line in lines)
        return Status.OK

    return served(server, listed, headers=header, env=env, timeout_s=timeout)


def _tool_json(tool: Definition) -> str:
    fields = msgspec.to_builtins(tool) | {"fingerprint": tool.fingerprint}
    return safe_json(msgspec.json.encode(fields).decode())


def _tool_lines(tool: Definition) -> Iterator[str]:
    """Yield the head of a tool with its parameters, its description, and the server's hints."""
    needed = _names_in(tool.input_schema.get("required"))
    parameters = [
        name if name in needed else f"{name}?"
        for name in _names_in(tool.input_schema.get("properties"))
    ]
    yield _printable(f"{tool.name}({', '.join(parameters)})")
    for line in tool.description.strip().splitlines():
        yield _printable(f"  {line}".rstrip())
    hints = {"changes nothing": tool.read_only, "may be repeated": tool.idempotent}
    said = [hint for hint, holds in hints.items() if holds]
    if said:
        yield _printable(f"  (the server says: {', '.join(said)})")


def _names_in(words: object) -> tuple[str, ...]:
    """Return the names in a part of a server's schema; none where its form is another."""
    if not isinstance(words, list | dict):
        return ()
    return tuple(map(str, cast("Iterable[object]", words)))


def _printable(line: str) -> str:
    return wrapped(clean(line), sys.stdout)
