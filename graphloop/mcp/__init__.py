"""MCP: tools of servers that speak the Model Context Protocol.

Owns `stdio` and `http`, which describe a server, and `Server`, which makes graphloop tools of the
server's tools. A connection needs the extra `mcp`; pinned definitions need no connection.
Refuses a call of a tool whose definition has changed since the model read it.
Start with `server.py`. A call goes from `remote.py` by `server.py` and `connections.py` to
`connection.py`, which has the life of a connection.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door

if TYPE_CHECKING:
    from .definitions import Definition, changes, pins_of, pins_text, read_pins
    from .materials import Prompt, PromptArgument, Resource
    from .remote import remote_names, remote_tools
    from .server import Server, http, stdio
    from .target import ServerOptions

__all__ = [
    "Definition",
    "Prompt",
    "PromptArgument",
    "Resource",
    "Server",
    "ServerOptions",
    "changes",
    "http",
    "pins_of",
    "pins_text",
    "read_pins",
    "remote_names",
    "remote_tools",
    "stdio",
]

__getattr__ = front_door(
    __name__,
    {
        ".definitions": ("Definition", "changes", "pins_of", "pins_text", "read_pins"),
        ".materials": ("Prompt", "PromptArgument", "Resource"),
        ".remote": ("remote_names", "remote_tools"),
        ".server": ("Server", "http", "stdio"),
        ".target": ("ServerOptions",),
    },
)
