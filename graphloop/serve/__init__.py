"""Serve: agents as servers of other programs.

Owns `McpServer`, which makes each agent a tool of an MCP server, and `a2a_app`, which serves an
agent to other agents. They need the extras `mcp` and `a2a`.
Refuses answers that do not belong to the caller's own parked run (docs/threat-model.md).
Start with `mcp.py`. A file's name begins with its protocol; the other two are for both protocols.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door

if TYPE_CHECKING:
    from .a2a import a2a_app
    from .mcp import McpServer
    from .served import by_authorization

__all__ = ["McpServer", "a2a_app", "by_authorization"]

__getattr__ = front_door(
    __name__,
    {".a2a": ("a2a_app",), ".mcp": ("McpServer",), ".served": ("by_authorization",)},
    needs={".a2a": "'graphloop[a2a]'", ".mcp": "'graphloop[mcp]'"},
)
