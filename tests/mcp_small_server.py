"""An MCP server of one page, which starts at once: `python -I -S tests/mcp_small_server.py PIDS`.

It speaks protocol 2025-11-25 and notes its process in the file PIDS. A call of `wait` never ends.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

ANY = {"type": "object"}
TOOLS = [{"name": name, "description": name, "inputSchema": ANY} for name in ("pid", "wait", "die")]


def result_of(method: str, params: dict[str, object]) -> dict[str, object] | None:
    """Return the result of a request; None for a method that is not known."""
    if method == "initialize":
        about = {"name": "small", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": str(os.getpid())}]}
    return None


def main() -> None:
    """Answer the lines of standard input."""
    with open(sys.argv[1], "a", encoding="utf-8") as pids:  # noqa: PTH123 - starts faster
        pids.write(f"{os.getpid()}\n")
    for line in sys.stdin:
        message: dict[str, Any] = json.loads(line)
        params: dict[str, object] = message.get("params") or {}
        if params.get("name") == "die":
            os._exit(3)
        if "id" not in message or "method" not in message or params.get("name") == "wait":
            continue
        result = result_of(message["method"], params)
        unknown = {"code": -32601, "message": "Method not found"}
        answer = {"error": unknown} if result is None else {"result": result}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
