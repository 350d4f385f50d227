"""A scripted world, and the record of all that a run does in it, as JSON values.

The record holds what users see: requests, tool effects, stream parts, results. It holds no field of
the kernel, so a redesign of the house must leave every record as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

import msgspec

from graphloop import Agent, RunResult, RunStream, Tool, Usage
from graphloop.agent.options import AgentOptions
from graphloop.parts.kinds import Part, SubAgent
from graphloop.providers.script import Entry
from graphloop.testing import ScriptedModel
from graphloop.tools.tool import AnyTool
from graphloop.values import (
    AssistantMessage,
    Message,
    ModelRequest,
    Reply,
    ToolCall,
    ToolResult,
)

__all__ = ["World", "call", "says", "standing"]

VOLATILE = frozenset({"at", "expires_at", "run_id", "token", "issued_at", "duration_s"})
"""Fields of parts that tell times and ids."""


def call(name: str, _id: str = "", /, **arguments: object) -> dict[str, object]:
    """Return a call in the form of a script."""
    return {"name": name, "arguments": arguments, "id": _id or f"call-{name}"}


def says(text: str = "", *calls: Mapping[str, object], **fields: object) -> dict[str, object]:
    """Return a reply in the form of a script, with ten tokens in and five out."""
    usage = {"input_tokens": 10, "output_tokens": 5}
    return {"text": text, "calls": list(calls), "usage": usage, **fields}


class World:
    """Models that follow a script, tools that write down what they did, and the record."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.record: list[object] = []
        self._models: list[ScriptedModel] = []

    def model(self, *script: Entry, label: str = "script") -> ScriptedModel:
        """Return a model that gives these replies in order; its requests are recorded."""
        model = ScriptedModel([_watched(one, self, label) for one in script], label=label)
        self._models.append(model)
        return model

    def tool(
        self,
        name: str,
        answer: Callable[[dict[str, Any]], object] | str | Exception = "ok",
        **options: object,
    ) -> AnyTool:
        """Return a tool that records its call, and answers or raises `answer`."""

        async def execute(arguments: dict[str, Any]) -> str:
            self.record.append({"ran": name, "arguments": arguments})
            if isinstance(answer, Exception):
                raise answer
            return answer if isinstance(answer, str) else str(answer(arguments))

        return _tool(name, execute, options)

    def client_tool(self, name: str) -> AnyTool:
        """Return a tool that another process executes."""
        return _tool(name, None, {})

    def agent(
        self, *script: Entry, output_type: Any = None, **options: Unpack[AgentOptions]
    ) -> Agent[None, Any]:
        """Return an agent whose model follows the script; its clock stands still."""
        options.setdefault("clock", standing)
        return Agent(self.model(*script), output_type=output_type, **options)

    def asked(self, label: str, request: ModelRequest) -> None:
        """Record a request."""
        self.record.append(
            {
                "asked": label,
                "messages": [_message(one) for one in request.messages],
                "tools": [one.name for one in request.tools],
                "tool_choice": request.tool_choice.mode,
            }
        )

    def note(self, what: str, value: object = None) -> None:
        """Record a word of the scenario itself."""
        self.record.append({what: value})

    async def run(self, stream: RunStream[Any, Any]) -> RunResult[Any, Any] | None:
        """Drain a stream, and record its parts and its result, or its error."""
        async for part in stream.full_stream:
            self.record.append(_part(part))
        return await self.settle(stream)

    async def settle(self, stream: RunStream[Any, Any]) -> RunResult[Any, Any] | None:
        """Record what came of a stream."""
        try:
            result = await stream.result()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what came of the run
            self.record.append({"error": type(error).__name__})
            return None
        self.result(result)
        return result

    def result(self, result: RunResult[Any, Any]) -> None:
        """Record a result."""
        self.record.append({"result": _result(result)})


def standing() -> float:
    """Return the time on a clock that stands still."""
    return 1_000.0


def _tool(name: str, execute: object, options: Mapping[str, object]) -> AnyTool:
    fields: dict[str, Any] = {
        "description": f"Does {name}.",
        "parameters": {"type": "object"},
        **({} if execute is None else {"execute": execute}),
        **options,
    }
    return Tool(name=name, **fields)


def _watched(entry: Entry, world: World, label: str) -> Entry:
    def answer(request: ModelRequest) -> str | Mapping[str, object] | Reply:
        world.asked(label, request)
        if isinstance(entry, Exception):
            raise entry
        return entry(request) if callable(entry) else entry

    return answer


def _message(message: Message) -> object:
    if isinstance(message, ToolResult):
        return ["tool", message.name, message.status, _text(message.content)]
    if isinstance(message, AssistantMessage):
        calls = [[one.name, one.arguments] for one in message.parts if isinstance(one, ToolCall)]
        return ["assistant", message.text, *calls]
    return [message.role, _text(getattr(message, "content", getattr(message, "parts", "")))]


def _text(content: object) -> object:
    return content if isinstance(content, str) else msgspec.to_builtins(content)


def _usage(usage: Usage | None) -> list[int] | None:
    return None if usage is None else [usage.input_tokens, usage.output_tokens]


def _part(part: Part) -> object:
    if isinstance(part, SubAgent):
        return {"part": "sub-agent", "path": list(part.path), "of": _part(part.part)}
    fields: dict[str, object] = {}
    for name in type(part).__struct_fields__:
        value = getattr(part, name)
        if name in VOLATILE:
            continue
        if isinstance(value, Exception):
            value = type(value).__name__
        elif isinstance(value, Usage):
            value = _usage(value)
        elif isinstance(value, ToolResult) or hasattr(value, "role"):
            value = _message(value)
        fields[name] = msgspec.to_builtins(value, enc_hook=str)
    return {"part": part.type, **fields}


def _result(result: RunResult[Any, Any]) -> dict[str, object]:
    return {
        "text": result.text,
        "end_reason": str(result.end_reason),
        "stopped_by": list(result.stopped_by),
        "finish_reason": None if result.finish_reason is None else str(result.finish_reason),
        "usage": _usage(result.usage),
        "total_usage": _usage(result.total_usage),
        "output": msgspec.to_builtins(next(iter(result.answers or ()), None), enc_hook=str),
        "warnings": len(result.warnings),
        "messages": [_message(one) for one in result.messages],
        "pending": [[one.name, one.arguments, list(one.agents)] for one in result.pending],
        "steps": [
            {
                "text": one.text,
                "calls": [[each.name, each.arguments] for each in one.tool_calls],
                "results": [[each.name, each.status] for each in one.tool_results],
                "finish_reason": str(one.finish_reason),
                "usage": _usage(one.usage),
            }
            for one in result.steps
        ],
    }


def lines(record: Sequence[object]) -> str:
    """Return a record as JSON text, an entry a line, so that a difference is read at a glance."""
    return "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in record)
