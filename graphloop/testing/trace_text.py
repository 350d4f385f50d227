"""The text of a trace in a fuzz report: one line for each event."""

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
    ToolAsked,
    ToolReturned,
)
from .trace import Trace

__all__ = ["trace_lines"]

WIDE: Final = 100
TRANSITIONS_MAX: Final = 8


def trace_lines(trace: Trace[Any]) -> Iterator[str]:
    """Yield a line for each event, with its transitions and the effects that nodes requested."""
    for number, step in enumerate(trace.steps, 1):
        words = [_event_text(step.event, step.answered)]
        words += map(str, step.transitions[:TRANSITIONS_MAX])
        if len(step.transitions) > TRANSITIONS_MAX:
            words.append(f"{len(step.transitions) - TRANSITIONS_MAX} more")
        if step.effects:
            names = [f"{effect.id}={_effect_name(effect)}" for effect in step.effects]
            words.append(f"asks for {', '.join(names)}")
        yield f"{number:>3} {'; '.join(words)}"
    if trace.broken is not None and trace.last is not None:
        yield f"{len(trace.steps) + 1:>3} {_event_text(trace.last, None)}"


def _event_text(event: Event, answered: Effect | None) -> str:
    kind = re.sub("(?<!^)(?=[A-Z])", " ", type(event).__name__).lower()
    name, words = _effect_name(answered) if answered else kind, _event_words(event, answered)
    return f"{name}: {words}" if words else kind


def _event_words(  # noqa: PLR0911 - one for each kind of event
    event: Event, answered: Effect | None
) -> str:
    """Return the details of an event, such as the calls of a reply; empty if it has none."""
    match event:
        case ModelReplied(reply=reply):
            calls = [f"{call.name}({_cut(call.arguments)})" for call in reply.message.calls]
            text = f"calls {', '.join(calls)}" if calls else _cut(repr(reply.message.text))
            return f"{reply.finish_reason}, {text}"
        case CallsChecked(checks=checks):
            return ", ".join(
                check.problem or ("ask" if check.needs_approval else "valid") for check in checks
            )
        case Decided():
            limit = answered.expires_at if isinstance(answered, AskHuman) else None
            late = " too late" if limit is not None and event.at >= limit else ""
            edited = f", with {_cut(event.arguments)}" if event.arguments else ""
            return f"{'approved' if event.approved else 'denied'}{late}{edited}"
        case ToolAsked(question=question):
            return f"asks {_cut(question.text)}"
        case ToolReturned(status=text) | ChildEnded(status=text):
            return text
        case CallbackReturned(answer=answer):
            return answer.outcome if isinstance(answer, NodeReturned) else type(answer).__name__
        case EffectFailed(failure=failure):
            return f"failed with {failure.error}"
        case _:
            return ""


def _effect_name(effect: Effect) -> str:
    match effect:
        case CallTool(key=key, call=call):
            return f"tool {call.name} ({key})"
        case StartRun(agent=agent, key=key):
            return f"agent {agent} ({key})"
        case Invoke(callback=callback):
            return f"function {callback}"
        case _:
            return "model" if isinstance(effect, CallModel) else type(effect).__name__


def _cut(text: str) -> str:
    return text if len(text) <= WIDE else f"{text[: WIDE - 1]}…"
