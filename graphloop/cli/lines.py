"""The lines that a run is told in: calls, results, ends. Colour is a screen's affair."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TypeVar, cast
from unicodedata import category

from ..front.result import Pending, RunResult
from ..run import EndReason, Run
from ..values import ToolResult, UserMessage

__all__ = ["call_text", "clean", "end_facts", "injected", "mark", "pending_lines", "result_text"]

S = TypeVar("S")

ARGUMENTS_MAX = 120
RESULT_MAX = 200


def clean(text: str) -> str:
    """Return `text` without control characters: what a model wrote may not drive a terminal."""
    if text.isprintable():
        return text
    return "".join(one for one in text if one in "\n\t" or category(one) != "Cc")


def call_text(name: str, arguments: str, length_max: int = ARGUMENTS_MAX) -> str:
    """Return a call as a reader would write it: `get_weather(city="NYC")`."""
    try:
        value: object = json.loads(arguments)
    except ValueError:
        value = arguments
    if isinstance(value, dict):
        named = cast("dict[str, object]", value)  # JSON objects have text keys.
        shown = ", ".join(f"{key}={_json(one)}" for key, one in named.items())
    else:
        shown = arguments
    return f"{_one_line(name, ARGUMENTS_MAX)}({_one_line(shown, length_max)})"


def result_text(result: ToolResult) -> str:
    """Return what a tool said, shortened to one line."""
    return _one_line(result.text, RESULT_MAX) or "(no text)"


def mark(result: ToolResult) -> str:
    """Return the sign of how a call went: done, failed, or not let through."""
    match result.status:
        case "ok":
            return "✓"
        case "denied" | "not_run":
            return "⊘"
        case _:
            return "✗"


def injected(run: Run[S] | None) -> tuple[str, str] | None:
    """Return who in the graph wrote the latest message, and what, if a node did."""
    last = run.messages[-1] if run is not None and run.messages else None
    if isinstance(last, UserMessage) and last.origin and isinstance(last.content, str):
        return last.origin, _one_line(last.content, RESULT_MAX)
    return None


def end_facts(result: RunResult[S]) -> Iterator[str]:
    """Yield why a run ended and what it took: reason, steps, tokens, cost where one is known."""
    reason = result.end_reason
    named = [name for name in result.stopped_by if name != reason]
    yield f"{reason} ({', '.join(named)})" if named else str(reason)
    steps = len(result.steps)
    yield f"{steps} step{'' if steps == 1 else 's'}"
    yield f"{result.total_usage.total_tokens:,} tokens"
    if result.cost_usd is not None:
        yield f"${result.cost_usd:.4f}"
    elif not result.run.setup.model.startswith("script"):
        yield "cost unknown"


def pending_lines(result: RunResult[S], store: str | None, *, resumable: bool) -> Iterator[str]:
    """Yield what a parked run waits for, and how to go on."""
    yield f"parked: the run waits for {_counted(result.pending)}"
    for one in result.pending:
        kind = "approval of" if one.kind == "approval" else "the result of"
        yield f"  {one.key}  {kind} {call_text(one.name, one.arguments)}"
    if result.end_reason is not EndReason.PARKED or not resumable:
        return
    if store is None:
        yield (
            "It was kept in memory only. To be able to go on later, run it with --store DIR; "
            "to decide here, run it in a terminal, or with --approve always."
        )
        return
    answers = ", ".join(f'"{one.key}": True' for one in result.pending if one.kind == "approval")
    results = ", ".join(f'"{one.key}": …' for one in result.pending if one.kind != "approval")
    given = [f"approvals={{{answers}}}"] if answers else []
    given += [f"tool_results={{{results}}}"] if results else []
    yield f'Go on from Python, with the agent made with store="{store}":'
    yield f'  await agent.resume("{result.run_id}", {", ".join(given)})'


def _counted(pending: tuple[Pending, ...]) -> str:
    return "1 answer" if len(pending) == 1 else f"{len(pending)} answers"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _one_line(text: str, length_max: int) -> str:
    line = " ".join(clean(text).split())
    return line if len(line) <= length_max else f"{line[: length_max - 1]}…"
