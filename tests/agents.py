"""Agents for tests: scripted models, tools that misbehave, and the fold of a stream's parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from graphloop import Agent, RunResult, RunStream, Tool
from graphloop.parts.kinds import (
    ErrorPart,
    Finish,
    Part,
    StepFinish,
    StepRetry,
    StepStart,
    ToolCallPart,
    ToolResultPart,
)
from graphloop.providers.base import ReasoningDelta, TextDelta
from graphloop.run import EndReason
from graphloop.stores.base import Store
from graphloop.testing import ScriptedModel
from graphloop.values import FinishReason, Reply, ToolCall, ToolResult, Usage
from tests.strategies import reply

__all__ = ["Folded", "FoldedStep", "agent", "drain", "fold", "steps_of", "ticking"]

DONE = reply("done")


def write(x: int = 0) -> str:
    """Fail to write."""
    raise OSError(f"disk {x}")


CLIENT = Tool(name="client", description="Somebody else's.", parameters={"type": "object"})


class Ticking:
    """A clock that is one second later whenever it is asked."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the next second."""
        self.now += 1.0
        return self.now


def ticking() -> Ticking:
    """Return a fresh clock."""
    return Ticking()


def agent(
    script: Sequence[Reply | Exception],
    *,
    store: Store | None = None,
    approval: bool = False,
    concurrency: int = 5,
) -> Agent:
    """Return an agent whose model says this, then "done" for ever; each run starts it anew."""
    model = ScriptedModel([*script, *[DONE] * 10], restart=True)
    gated = Tool(name="read", parameters={"type": "object"}, execute=any_read)
    return Agent(
        model,
        tools=[gated_read() if approval else gated, write, CLIENT],
        max_steps=6,
        store=store,
        max_tool_concurrency=concurrency,
        clock=ticking(),
    )


async def any_read(arguments: dict[str, object]) -> str:
    """Read whatever is asked for."""
    return f"read {sorted(arguments)}"


def gated_read() -> Tool:
    """Return the reading tool, with a human before it."""
    return Tool(name="read", parameters={"type": "object"}, execute=any_read, needs_approval=True)


async def drain(stream: RunStream) -> tuple[list[Part], RunResult | Exception]:
    """Return all parts of a stream, and its result or its error."""
    parts = [part async for part in stream.full_stream]
    try:
        return parts, await stream.result()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what came of the run
        return parts, error


@dataclass
class FoldedStep:
    """One turn, as somebody tells who has only seen the stream."""

    index: int
    text: str = ""
    reasoning: str = ""
    finish_reason: FinishReason | None = None
    usage: Usage = field(default_factory=Usage)
    calls: tuple[ToolCall, ...] = ()
    results: dict[str, ToolResult] = field(default_factory=dict[str, ToolResult])
    keys: tuple[str, ...] = ()

    def told(self) -> object:
        """Return the turn in comparable form, results in the order of their calls."""
        calls = tuple((one.id, one.name, one.arguments) for one in self.calls)
        results = tuple(self.results[key] for key in self.keys)
        return (
            self.index,
            self.text,
            self.reasoning,
            self.finish_reason,
            self.usage,
            calls,
            results,
        )


@dataclass
class Folded:
    """A run, as somebody tells who has only seen the stream."""

    steps: list[FoldedStep] = field(default_factory=list[FoldedStep])
    open: FoldedStep | None = None
    end_reason: EndReason | None = None
    stopped_by: tuple[str, ...] = ()
    usage: Usage | None = None
    error: Exception | None = None


def fold(parts: Iterable[Part]) -> Folded:
    """Fold a stream into what its result must be; asserts the order of CONTRACT §2.3."""
    run = Folded()
    for part in parts:
        assert run.end_reason is None, f"nothing follows finish, found {part}"
        assert run.error is None, f"nothing follows error, found {part}"
        if run.open is not None:
            _fold_open(run, run.open, part)
        else:
            _fold_between(run, part)
        match part:
            case StepRetry(step_index=index):
                run.open = FoldedStep(index)
            case Finish(end_reason=end, stopped_by=stopped_by, usage=usage):
                run.end_reason, run.stopped_by, run.usage = end, stopped_by, usage
            case ErrorPart(error=error):
                run.error = error
            case _:
                pass
    return run


def _fold_open(run: Folded, current: FoldedStep, part: Part) -> None:
    """Fold a part that comes while the model talks."""
    match part:
        case TextDelta(text=text):
            current.text += text
        case ReasoningDelta(text=text):
            current.reasoning += text
        case StepFinish(finish_reason=finish, usage=usage):
            current.finish_reason, current.usage = finish, usage
            run.steps.append(current)
            run.open = None
        case StepStart() | ToolCallPart() | ToolResultPart():
            raise AssertionError(f"not while the model talks: {part}")
        case _:
            pass


def _fold_between(run: Folded, part: Part) -> None:
    """Fold a part that comes while the model is silent."""
    match part:
        case StepStart(step_index=index):
            assert index == len(run.steps), "turns count up, without gaps"
            run.open = FoldedStep(index)
        case ToolCallPart(key=key, tool_call_id=call_id, tool_name=name, arguments=arguments):
            step = run.steps[-1]
            step.calls += (ToolCall(call_id, name, arguments),)
            step.keys += (key,)
        case ToolResultPart(result=result):
            assert result.key not in run.steps[-1].results, "a call is answered once"
            run.steps[-1].results[result.key] = result
        case TextDelta() | ReasoningDelta() | StepFinish():
            raise AssertionError(f"not while the model is silent: {part}")
        case _:
            pass


def steps_of(result: RunResult) -> list[object]:
    """Return the turns of a result in the form of `FoldedStep.told`."""
    return [
        (
            step.index,
            step.text,
            step.reasoning,
            step.finish_reason,
            step.usage,
            tuple((one.id, one.name, one.arguments) for one in step.tool_calls),
            step.tool_results,
        )
        for step in result.steps
    ]
