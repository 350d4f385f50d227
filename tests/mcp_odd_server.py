"""An MCP server with a fault: `python -I -S tests/mcp_odd_server.py FAULT`.

It speaks protocol 2025-11-25 on standard input, and starts at once. A call returns how often the
tools have been listed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

TOOL: dict[str, object] = {
    "name": "look",
    "description": "Look.",
    "inputSchema": {"type": "object"},
}
NEWS = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
ABOUT = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {"listChanged": True}},
    "serverInfo": {"name": "odd", "version": "1"},
}
TOOLS: dict[str, object] = {
    "no list": None,
    "odd list": [{"name": "look", "inputSchema": {"type": "array"}}],
    "two of a name": [TOOL, TOOL | {"description": "Look away."}],
}
CONTENTS: dict[str, object] = {
    "odd result": [{"type": "hologram"}],
    "long line": [{"type": "text", "text": "x" * 100_000}],
}


def main(fault: str) -> None:
    """Answer the lines of standard input."""
    lists = 0
    for line in sys.stdin:
        message: dict[str, Any] = json.loads(line)
        result: object = None
        if message["method"] == "initialize":
            result = ABOUT
        elif message["method"] == "tools/list":
            lists += 1
            tools = TOOLS.get(fault, [TOOL])
            result = None if tools is None else {"tools": tools}
        elif message["method"] == "tools/call":
            result = {"content": CONTENTS.get(fault, [{"type": "text", "text": str(lists)}])}
        if result is not None:
            tell({"jsonrpc": "2.0", "id": message["id"], "result": result})
        if fault == "flood" and message["method"] == "tools/list":
            for _ in range(2000):
                tell(NEWS)


def tell(message: Mapping[str, object]) -> None:
    """Send a message."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
