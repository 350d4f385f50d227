"""The text of a trace: a line for each event, for a person who reads of a failure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ..effects import AskHuman, CallModel, CallTool, Effect, Invoke, StartRun
from ..events import (
    CallbackReturned,
    CallsChecked,
    ChildEnded,
    Decided,
    EffectFailed,
    Event,
    ModelReplied,
    NodeReturned,
    Resumed,
    ToolReturned,
)
from .trace import Trace

__all__ = ["trace_lines"]

WIDE: Final = 100
TRANSITIONS_MAX: Final = 8


def trace_lines(trace: Trace[Any]) -> Iterator[str]:
    """Yield a line for each event: the event, the transitions, and the effects asked for."""
    for number, one in enumerate(trace.steps, 1):
        ways, more = one.transitions, len(one.transitions) - TRANSITIONS_MAX
        passed = [*map(str, ways[:TRANSITIONS_MAX]), *([f"{more} more"] if more > 0 else [])]
        asked = ", ".join(f"{effect.id}={_name(effect)}" for effect in one.effects)
        happened = [_event(one.event, one.answered), *passed]
        yield f"{number:>3} {'; '.join([*happened, *([f'asks for {asked}'] if asked else [])])}"
    if trace.broken is not None and trace.last is not None:
        yield f"{len(trace.steps) + 1:>3} {_event(trace.last, None)}"


def _event(  # noqa: PLR0911 - one case for each kind of event
    event: Event, answered: Effect | None
) -> str:
    match event:
        case ModelReplied(reply=reply):
            calls = ", ".join(f"{one.name}({_cut(one.arguments)})" for one in reply.message.calls)
            said = f"calls {calls}" if calls else _cut(repr(reply.message.text))
            return f"model: {reply.finish_reason}, {said}"
        case CallsChecked(checks=checks):
            words = [one.problem or ("ask" if one.needs_approval else "valid") for one in checks]
            return f"checked: {', '.join(words)}"
        case Decided():
            limit = answered.expires_at if isinstance(answered, AskHuman) else None
            late = " too late" if limit is not None and event.at >= limit else ""
            edited = f", with {_cut(event.arguments)}" if event.arguments else ""
            return f"decided: {'approved' if event.approved else 'denied'}{late}{edited}"
        case ToolReturned(status=end) | ChildEnded(status=end):
            return f"{_name(answered)}: {end}"
        case CallbackReturned(answer=answer):
            word = answer.outcome if isinstance(answer, NodeReturned) else type(answer).__name__
            return f"{_name(answered)}: {word}"
        case EffectFailed(failure=failure):
            return f"{_name(answered)}: failed with {failure.error}"
        case _:
            return "the process died; resumed" if isinstance(event, Resumed) else _type(event)


def _name(effect: Effect | None) -> str:
    match effect:
        case CallTool(key=key, call=call):
            return f"tool {call.name} ({key})"
        case StartRun(agent=agent, key=key):
            return f"agent {agent} ({key})"
        case Invoke(callback=callback):
            return f"function {callback}"
        case CallModel():
            return "model"
        case _:
            return "answer" if effect is None else type(effect).__name__


def _type(event: Event) -> str:
    return re.sub("(?<!^)(?=[A-Z])", " ", type(event).__name__).lower()


def _cut(text: str) -> str:
    return text if len(text) <= WIDE else f"{text[: WIDE - 1]}…"
