"""Serve: agents as servers of other programs.

Owns `McpServer`, which makes each agent a tool of an MCP server. It needs the extra `mcp`.
Refuses answers that do not belong to the caller's own parked run (docs/threat-model.md).
Start with `mcp.py`; `claims.py` binds runs and answers to their callers.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door

if TYPE_CHECKING:
    from .mcp import McpServer, by_authorization

__all__ = ["McpServer", "by_authorization"]

__getattr__ = front_door(
    __name__, {".mcp": ("McpServer", "by_authorization")}, needs="'graphloop[mcp]'"
)
