"""Write the tools of an MCP server to a file, which agents use in place of the server's word.

  graphloop mcp pin "npx -y @modelcontextprotocol/server-filesystem ." -o fs.mcp.json
  graphloop mcp pin https://crm.example/mcp -o crm.mcp.json
  graphloop mcp pin desk.py:crm

An agent gets the tools of the file by server.pinned("fs.mcp.json"), and a topology file by `mcp:`.
Both can be checked and drawn while the server is absent. A call is refused if the server describes
the tool differently. Read the file before an agent does. If there is a file already, the command
says what has changed. Without -o, the definitions are printed.

A command is executed, and so is a Python file that names the server.

Exit status: 0 the file is written, 2 the server cannot be reached, or wrong usage, 130 Ctrl-C.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from ...errors import ConfigError
from ...mcp import Definition, Server, changes, pins_text, read_pins
from ..errors import Status, tell_error
from ..options import Text
from ..output import Destination
from ..text import counted
from .servers import Environment, ServerArgument, ServerHeaders, Timeout, served

__all__ = ["pin_command"]

Output: TypeAlias = Annotated[
    Text, typer.Option("-o", "--output", metavar="FILE", help="The file; - is stdout.")
]


def pin_command(
    server: ServerArgument,
    output: Output = None,
    *,
    header: ServerHeaders = None,
    env: Environment = None,
    timeout: Timeout = None,
) -> Status:
    """Write the definitions of a server's tools to a file, or to stdout."""
    file = Destination.of("-o", output or "-", (".json",))
    before = _pinned_before(file)

    async def pinned(server: Server) -> Status:
        tools = await server.definitions()
        if file.write(pins_text(tools)):
            tell_error(f"{file.path}: {counted(len(tools), 'tool')} of {server.name}")
            if before is not None:
                tell_error(f"since the file before: {changes(before, tools) or 'no change'}")
        return Status.OK

    return served(server, pinned, headers=header, env=env, timeout_s=timeout)


def _pinned_before(file: Destination) -> tuple[Definition, ...] | None:
    """Return the definitions of a file that is there already; None without a file.

    Raises:
        ConfigError: the file is of another kind, and would be lost.
    """
    if file.suffix is not None or not Path(file.path).exists():
        return None
    try:
        return read_pins(file.path)
    except ConfigError as error:
        raise ConfigError(
            f"-o: expected a new file, or one of MCP definitions, found another kind in "
            f"{file.path!r}. Fix: choose another name, or remove the file."
        ) from error
