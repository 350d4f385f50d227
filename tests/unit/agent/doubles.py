"""Doubles: tools and models that the tests of agents share, and readings of results."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from typing import Unpack

from graphloop import Agent, RunResult, RunStream, Tool
from graphloop.agent.options import AgentOptions
from graphloop.parts.parts import Part
from graphloop.providers.base import Delta, ModelSession
from graphloop.providers.script import Entry
from graphloop.testing import ScriptedModel
from graphloop.values import ModelRequest, Reply, ToolCall
from tests.strategies import call, reply

__all__ = [
    "CLIENT",
    "Silent",
    "every",
    "free",
    "gated",
    "kinds",
    "named",
    "ran",
    "read",
    "statuses",
    "tasks_left",
    "texts",
    "to_agent",
    "write",
]

CLIENT = Tool(name="client", parameters={"type": "object"})


def read() -> str:
    """Read."""
    return "text"


def write() -> str:
    """Write."""
    raise OSError("disk full")


def _text(arguments: dict[str, object]) -> object:
    return arguments or "text"


def free(name: str = "read", execute: Callable[[dict[str, object]], object] = _text) -> Tool:
    """Return a tool that takes any arguments, and gives them back."""
    return Tool(name=name, parameters={"type": "object"}, execute=execute)


def gated(name: str = "read", execute: Callable[[dict[str, object]], object] = _text) -> Tool:
    """Return such a tool that needs an approval."""
    parameters = {"type": "object"}
    return Tool(name=name, parameters=parameters, execute=execute, needs_approval=True)


def to_agent(name: str = "helper", call_id: str = "x", prompt: str = "?") -> ToolCall:
    """Return the call of an agent."""
    return call(name, call_id, json.dumps({"prompt": prompt}))


def ran(*script: Entry, **options: Unpack[AgentOptions]) -> tuple[RunResult[None], ScriptedModel]:
    """Return the result of a run whose model says this, then "done"; and the model."""
    model = ScriptedModel([*script, "done"])
    return Agent(model, **options).generate_sync("go"), model


def named(value: object) -> str | None:
    """Return the id of a case: the names of the options that it is about."""
    keys = getattr(value, "keys", None)
    return None if keys is None else " ".join(keys())


def statuses(result: RunResult[None], step: int = 0) -> list[str]:
    """Return how the calls of a turn ended."""
    return [one.status for one in result.steps[step].tool_results]


def texts(result: RunResult[None], step: int = 0) -> list[str]:
    """Return the answers to the calls of a turn."""
    return [one.text for one in result.steps[step].tool_results]


async def every(stream: RunStream[None]) -> list[Part]:
    """Return all parts."""
    return [part async for part in stream.full_stream]


def kinds(parts: list[Part]) -> list[str]:
    """Return the parts' names."""
    return [part.type for part in parts]


def tasks_left() -> int:
    """Count the tasks that are alive beside the caller's."""
    return len(asyncio.all_tasks()) - 1


class Silent:
    """A model that answers only when it is told to."""

    label = "silent"

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.told = asyncio.Event()

    def session(self) -> ModelSession:
        """Return itself."""
        return self

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """Wait, perhaps for ever."""
        self.asked.set()
        await self.told.wait()
        yield reply("at last")

    async def aclose(self) -> None:
        """Do nothing."""
