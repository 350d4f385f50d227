"""Doubles: tools and models that the tests of agents share, and readings of results."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TypeVar, Unpack

from graphloop import Agent, Approval, EndReason, RunResult, RunStream, StepChanges, StepInfo, Tool
from graphloop.agent.options import AgentOptions
from graphloop.parts.kinds import Part
from graphloop.providers.base import Delta, ModelSession
from graphloop.providers.script import Entry
from graphloop.stores.base import Store
from graphloop.testing import ScriptedModel
from graphloop.values import ModelRequest, Reply, Settings, ToolCall, ToolChoice
from tests.strategies import call, reply

__all__ = [
    "AMOUNT",
    "CLIENT",
    "PAY",
    "Hanging",
    "Silent",
    "Till",
    "asked_of",
    "every",
    "first_only",
    "free",
    "gated",
    "kinds",
    "model",
    "named",
    "ran",
    "read",
    "statuses",
    "stream",
    "tasks_left",
    "texts",
    "to_agent",
    "tool_of",
    "within",
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


def ran(*script: Entry, **options: Unpack[AgentOptions]) -> tuple[RunResult, ScriptedModel]:
    """Return the result of a run whose model says this, then "done"; and the model."""
    model = ScriptedModel([*script, "done"])
    return Agent(model, **options).generate_sync("go"), model


def named(value: object) -> str | None:
    """Return the id of a case: the names of the options that it is about."""
    keys = getattr(value, "keys", None)
    return None if keys is None else " ".join(keys())


def statuses(result: RunResult, step: int = 0) -> list[str]:
    """Return how the calls of a turn ended."""
    return [one.status for one in result.steps[step].tool_results]


def texts(result: RunResult, step: int = 0) -> list[str]:
    """Return the answers to the calls of a turn."""
    return [one.text for one in result.steps[step].tool_results]


async def every(stream: RunStream) -> list[Part]:
    """Return all parts."""
    return [part async for part in stream.full_stream]


def kinds(parts: list[Part]) -> list[str]:
    """Return the parts' names."""
    return [part.type for part in parts]


def tasks_left() -> int:
    """Count the tasks that are alive beside the caller's."""
    return len(asyncio.all_tasks()) - 1


class Silent:
    """A model that answers once its event is set."""

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


PAY = reply(call("pay", arguments='{"amount": 7}'))


AMOUNT = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}


class Till:
    """A till: what was paid, and an agent that pays only what a human approves."""

    def __init__(self, *replies: Entry, store: Store | str | None = None) -> None:
        self.paid: list[object] = []
        self.model = ScriptedModel(replies)
        self.agent = Agent(self.model, tools=[self.tool, CLIENT], store=store)

    @property
    def tool(self) -> Tool:
        """The tool that pays."""
        return Tool(name="pay", parameters=AMOUNT, execute=self._pay, needs_approval=True)

    def _pay(self, arguments: dict[str, object]) -> str:
        self.paid.append(arguments["amount"])
        return "paid"

    def parked(self, run_id: str | None = None) -> RunResult:
        """Return the result of a run that waits."""
        result = asyncio.run(self.agent.generate("go", run_id=run_id))
        assert EndReason.PARKED is result.end_reason
        return result

    def resumed(
        self,
        run: str | RunResult,
        approvals: Mapping[str, bool | Approval] | None = None,
        tool_results: Mapping[str, object] | None = None,
    ) -> RunResult:
        """Take a run up again."""
        return asyncio.run(self.agent.resume(run, approvals=approvals, tool_results=tool_results))


def model(*replies: Reply) -> ScriptedModel:
    """Return a model that says this, then "done"."""
    return ScriptedModel([*replies, "done", "done"])


def asked_of(
    agent: Agent, prompt: str = "go"
) -> list[tuple[tuple[str, ...], ToolChoice, Settings]]:
    """Run to any end, and return what each request offered."""
    model = agent.model
    assert isinstance(model, ScriptedModel)
    asyncio.run(agent.stream(prompt).consume())
    return [
        (tuple(tool.name for tool in one.tools), one.tool_choice, one.settings)
        for one in model.requests
    ]


DEADLINE_S = 5.0


T = TypeVar("T")


def within(work: Awaitable[T]) -> T:
    """Run to the end, or fail if it does not come."""

    async def bounded() -> T:
        async with asyncio.timeout(DEADLINE_S):
            return await work

    return asyncio.run(bounded())


def tool_of(name: str, execute: Callable[[dict[str, object]], object]) -> Tool:
    """Return a tool that takes anything."""
    return Tool(name=name, parameters={"type": "object"}, execute=execute)


class Hanging:
    """Tools that begin and never end, with an event for "they have begun"."""

    def __init__(self, *names: str) -> None:
        self.begun = asyncio.Event()
        self.runs = 0
        self.tools = tuple(tool_of(name, self._hang) for name in names)
        self.calls = reply(*(call(name) for name in names))

    async def _hang(self, arguments: dict[str, object]) -> str:
        self.runs += 1
        if self.runs == len(self.tools):
            self.begun.set()
        await asyncio.Event().wait()
        return "never"


def stream(*script: Entry) -> RunStream:
    """Return the stream of a run with this script."""
    return Agent(ScriptedModel(script)).stream("go")


def first_only(changes: StepChanges) -> Callable[[StepInfo], StepChanges | None]:
    """Return a function that changes the first turn and no other."""
    return lambda info: changes if info.step_index == 0 else None
