"""Servers: the MCP servers of a topology file, with the pinned definitions of their tools.

    mcp:
      fs: {pinned: fs.mcp.json, prefix: fs_, needs_approval: [write_file]}

The definitions are all that checks and drawings need. A file starts no program and names no
address, so the server itself is registered in Python; only a run needs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast, final

from msgspec import to_builtins

from ..errors import ConfigError
from ..mcp import Definition, Server, ServerOptions, remote_names, remote_tools
from ..tools import AnyTool, ToolContext
from .registration import FROM_OUTSIDE, Registry

__all__ = ["PinnedServer", "RegisteredServer", "pinned_server", "served_tools"]


def served_tools(servers: Mapping[str, PinnedServer]) -> tuple[str, ...]:
    """Return the names for models of all tools of these servers."""
    return tuple([name for server in servers.values() for name in server.tool_names])


@final
@dataclass(frozen=True)
class PinnedServer:
    """An MCP server that a file names.

    Attributes:
        name: the name in the file, and in the registry.
        definitions: the pinned tools.
        options: the options of the tools, as the file gives them.
    """

    name: str
    definitions: tuple[Definition, ...]
    options: ServerOptions

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of its tools for models."""
        return tuple(remote_names(self.definitions, self.options).values())

    @property
    def plain(self) -> dict[str, object]:
        """The server as the plain data of a file, including its pinned definitions."""
        return {"pinned": [to_builtins(tool) for tool in self.definitions], **self.options}

    def tools(self, registry: Registry) -> dict[str, AnyTool]:
        """Return its tools by name; their calls go to the server that is registered by then.

        Raises:
            ConfigError: an option names a tool that is not pinned, or a definition is not valid.
        """
        # A file that names no tools names them all: a bad definition is an error then.
        every = tuple([tool.name for tool in self.definitions])
        options: ServerOptions = {"tools": every, **self.options}
        made = remote_tools(RegisteredServer(self.name, registry), self.definitions, options)
        return {tool.name: tool for tool in made}


def pinned_server(
    name: str, definitions: tuple[Definition, ...], values: Mapping[str, Any]
) -> PinnedServer:
    """Return the server of an entry of `mcp`, from its definitions and its other values."""
    # The model has checked the keys and their types.
    options = cast("ServerOptions", {key: values[key] for key in values if key != "pinned"})
    return PinnedServer(name, definitions, options)


@final
class RegisteredServer:
    """The server that is registered under a name when a call is made."""

    def __init__(self, name: str, registry: Registry) -> None:
        self.name: Final = name
        self._registry = registry

    def found(self) -> Server:
        """Return the server.

        Raises:
            ConfigError: no server is registered under this name.
        """
        server = self._registry.get("server", self.name)
        if not isinstance(server, Server):
            raise ConfigError(
                f"`mcp`: expected an MCP server registered as {self.name!r}, found none; a run "
                f"needs it. Fix: register it in Python with registry.server(stdio(…), "
                f"name={self.name!r}) ({FROM_OUTSIDE})."
            )
        return server

    async def perform(
        self,
        definition: Definition,
        arguments: dict[str, object],
        context: ToolContext,
        *,
        repeatable: bool,
    ) -> object:
        """Perform a call at the server."""
        server = self.found()
        return await server.perform(definition, arguments, context, repeatable=repeatable)

    async def withdraw(self, context: ToolContext) -> None:
        """End a call that the server holds open for an answer, because its run ends."""
        await self.found().withdraw(context)

    async def aclose(self) -> None:
        """Close the server's connection, if there is a server."""
        server = self._registry.get("server", self.name)
        if isinstance(server, Server):
            await server.aclose()
