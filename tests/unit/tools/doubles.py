"""What the tests of tools share: a call, a query, and a tool that answers it."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel

from graphloop.tools.tool import AnyTool, ToolContext, ToolOutcome
from graphloop.values import UserMessage

__all__ = ["CONTEXT", "Query", "Unspeakable", "run", "search"]

CONTEXT = ToolContext("run-1", "c0.0", "call_1", 0, (UserMessage("hi"),))


class Query(BaseModel):
    text: str
    limit: int = 10


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


async def search(text: str, limit: int = 10) -> str:
    """Search."""
    return f"{text}:{limit}"


def run(tool: AnyTool, arguments: str = "{}", context: ToolContext = CONTEXT) -> ToolOutcome:
    """Return the outcome of a call."""
    return asyncio.run(tool.run(arguments, context))
