"""An MCP server for tests: `python tests/mcp_server.py stdio`, or `http PORT`."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from pathlib import Path
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
server = MCPServer("desk", instructions="A desk of tests.")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def pid() -> str:
    """Return the process."""
    return str(os.getpid())


@server.tool()
def die() -> str:
    """End the server in the middle of the call."""
    os.write(2, b"out of memory\n")
    os._exit(3)


@server.tool(name="all.kinds", structured_output=False)
def all_kinds() -> CallToolResult:
    """Return content of each kind."""
    return CallToolResult(
        content=[
            TextContent(text="one"),
            TextContent(text="two"),
            ImageContent(data=PIXEL, mime_type="image/png"),
            AudioContent(data=PIXEL, mime_type="audio/wav"),
            ResourceLink(uri="file:///a.txt", name="a.txt", mime_type="text/plain"),
            EmbeddedResource(resource=TextResourceContents(uri="file:///b.txt", text="inside")),
            EmbeddedResource(
                resource=BlobResourceContents(
                    uri="file:///c.pdf", blob=PIXEL, mime_type="application/pdf"
                )
            ),
        ]
    )


@server.tool(structured_output=False)
def fail() -> CallToolResult:
    """Fail, and show a picture."""
    return CallToolResult(
        content=[
            TextContent(text="The page shows an error."),
            ImageContent(data=PIXEL, mime_type="image/png"),
        ],
        is_error=True,
    )


@server.tool()
async def steps(context: Context, count: int = 4) -> str:
    """Report progress."""
    for done in range(1, count + 1):
        await context.report_progress(done, count, f"step {done}")
        await asyncio.sleep(0.06)
    return "done"


@server.tool()
async def wait(note: Annotated[str, "a file that tells how it ended"]) -> str:
    """Wait for ever; tell when the client cancels."""
    Path(note).write_text("started")  # noqa: ASYNC240 - a few bytes
    try:
        await asyncio.Event().wait()
    finally:
        Path(note).write_text("cancelled")  # noqa: ASYNC240
    return ""


@server.tool()
async def learn(context: Context, description: str) -> str:
    """Change the description of `add`, and tell clients."""
    server.remove_tool("add")
    server.add_tool(add, description=description)
    await context.session.send_tool_list_changed()  # Until 2025-11-25.
    await context.notify_tools_changed()
    return "changed"


@server.tool()
async def learn_in_silence(description: str) -> str:
    """Change the description of `add`, and tell nobody."""
    server.remove_tool("add")
    server.add_tool(add, description=description)
    return "changed"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
