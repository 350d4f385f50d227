"""What the engine's side is given: the same script as the floor's, as values, and one tool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import final

from graphloop import FinishReason, Usage, tool
from graphloop.providers.base import Delta
from graphloop.tools import AnyTool
from graphloop.values import AssistantMessage, ModelRequest, Reply, TextPart, ToolCall

__all__ = ["YieldingModel", "add", "long_add", "replies"]


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def long_add(chars: int) -> AnyTool:
    """Return a tool `add` that acts, and answers with a text of this length."""

    @tool(name="add")
    async def noted(a: int, b: int) -> str:
        """Add two numbers."""
        return f"{a + b}".rjust(chars)

    return noted


def replies(turns: int, calls: int = 1) -> tuple[Reply, ...]:
    """Return a script: `turns` replies with calls of `add`, then the answer."""
    asking = [
        Reply(
            AssistantMessage(
                tuple(
                    ToolCall(f"call_{turn}_{at}", "add", f'{{"a":{turn},"b":{at}}}')
                    for at in range(calls)
                )
            ),
            FinishReason.TOOL_CALLS,
            Usage(10, 5),
        )
        for turn in range(turns)
    ]
    answer = AssistantMessage((TextPart("done"),))
    return (*asking, Reply(answer, FinishReason.STOP, Usage(10, 5)))


@final
class YieldingModel:
    """A model that lets all others run before it answers, so that all runs are alive at once."""

    label = "yielding"

    def __init__(self, script: tuple[Reply, ...]) -> None:
        """Give every run the replies of `script`."""
        self._script = script

    def session(self) -> _YieldingSession:
        """Return a session that begins with the first reply."""
        return _YieldingSession(self._script)

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""


@final
class _YieldingSession:
    __slots__ = ("_asked", "_script")

    def __init__(self, script: tuple[Reply, ...]) -> None:
        self._script = script
        self._asked = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:  # noqa: ARG002 - the seam
        await asyncio.sleep(0)
        reply = self._script[self._asked]
        self._asked += 1
        yield reply
