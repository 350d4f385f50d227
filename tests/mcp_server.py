"""An MCP server for tests: `python tests/mcp_server.py stdio`, or `http PORT`."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from mcp.server import MCPServer
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.prompts.base import AssistantMessage, UserMessage
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp.server.request_state import RequestStateSecurity
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    CreateMessageResult,
    EmbeddedResource,
    ImageContent,
    ListRootsResult,
    ResourceLink,
    SamplingMessage,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
SOUND = base64.b64encode(b"RIFF\x24\0\0\0WAVE").decode()
PAGE = base64.b64encode(b"%PDF-1.7").decode()
server = MCPServer(
    "desk",
    instructions="A desk of tests.",
    # A key that outlives the process: answers may come to the next one.
    request_state_security=RequestStateSecurity(keys=[b"k" * 32]),
)


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(structured_output=False)
def long_text(chars: int) -> str:
    """Return a text of a size, such as a picture has in base64."""
    return "x" * chars


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
            AudioContent(data=SOUND, mime_type="audio/wav"),
            ResourceLink(uri="file:///a.txt", name="a.txt", mime_type="text/plain"),
            EmbeddedResource(resource=TextResourceContents(uri="file:///b.txt", text="inside")),
            EmbeddedResource(
                resource=BlobResourceContents(
                    uri="file:///c.pdf", blob=PAGE, mime_type="application/pdf"
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


class Yes(BaseModel):
    """The answer to another question."""

    sure: bool = True


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
async def hold(note: Annotated[str, "a file that tells how it ended"], context: Context) -> str:
    """Ask while the call is open, until 2025-11-25; tell when the client cancels."""
    Path(note).write_text("started")  # noqa: ASYNC240 - a few bytes
    try:
        answer = await context.elicit("Really?", Yes)
    finally:
        Path(note).write_text("ended")  # noqa: ASYNC240
    return answer.action


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


def its_roots() -> ListRoots:
    """Ask the client for its folders."""
    return ListRoots()


@server.tool(structured_output=False)
def folders(found: Annotated[ListRootsResult, Resolve(its_roots)]) -> str:
    """Tell which folders the client names."""
    return " ".join(str(root.uri) for root in found.roots)


booked: list[str] = []


class Size(BaseModel):
    """The answer to a question."""

    size: int


def which_size(what: str) -> Elicit[Size]:
    """Ask for a size."""
    return Elicit(f"Which size of {what}?", Size)


def whether_sure(size: Annotated[Size, Resolve(which_size)]) -> Elicit[Yes]:
    """Ask once more."""
    return Elicit(f"Really {size.size}?", Yes)


def short_form(what: str) -> Sample:
    """Ask the client's model."""
    asked = SamplingMessage(role="user", content=TextContent(text=f"Shorten: {what}"))
    return Sample([asked], max_tokens=20, system_prompt="Be brief.")


@server.tool(structured_output=False)
def book(what: str, size: Annotated[ElicitationResult[Size], Resolve(which_size)]) -> str:
    """Book something, in a size that a person says."""
    booked.append(what)
    said = f"size {size.data.size}" if isinstance(size, AcceptedElicitation) else size.action
    return f"{what}: {said}, {len(booked)} booked"


@server.tool(structured_output=False)
def book_surely(
    what: str,
    size: Annotated[Size, Resolve(which_size)],
    sure: Annotated[Yes, Resolve(whether_sure)],
) -> str:
    """Book something after two questions."""
    return f"{what}: size {size.size}, sure {sure.sure}"


@server.tool(structured_output=False)
def shorten(what: str, said: Annotated[CreateMessageResult, Resolve(short_form)]) -> str:
    """Shorten a text with the client's model."""
    return f"{said.model}: {getattr(said.content, 'text', '')}"


@server.resource("desk://report", mime_type="text/markdown")
def report() -> str:
    """A report."""
    return "# All is well"


@server.resource("desk://pixel", mime_type="image/png")
def pixel() -> bytes:
    """A picture."""
    return base64.b64decode(PIXEL)


@server.prompt()
def letter(customer: str, tone: str = "kind") -> list[UserMessage | AssistantMessage]:
    """Write a letter."""
    return [UserMessage(f"Write to {customer}, be {tone}."), AssistantMessage("Dear")]


def add_three(a: int, b: int, c: int = 0) -> int:
    """Add up to three numbers."""
    return a + b + c


@server.tool()
async def change_in_silence(kind: Literal["schema", "hints", "gone"]) -> str:
    """Change `add` in another part than its description, and tell nobody."""
    server.remove_tool("add")
    if kind == "hints":
        server.add_tool(add, annotations=ToolAnnotations(read_only_hint=True))
    elif kind == "schema":
        server.add_tool(add_three, name="add", description=add.__doc__)
    return "changed"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
