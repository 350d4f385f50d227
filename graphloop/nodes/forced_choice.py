"""Forced choice: a model answers through a tool that it must call, never in prose.

Prose would have to be guessed at. An answer that cannot be read is none. The node that asked
decides on the meaning of that; the safe meaning is always no.
"""

from __future__ import annotations

import json
from typing import Final, TypeVar

from ..effects import CallModel
from ..run import Run
from ..values import FinishReason, ModelRequest, Reply, ToolChoice, ToolSpec, UserMessage

__all__ = ["CUT_SHORT", "choices", "forced_choice"]

S = TypeVar("S")

CUT_SHORT: Final = frozenset(
    {
        FinishReason.CONTENT_FILTER,
        FinishReason.CONTEXT_WINDOW,
        FinishReason.LENGTH,
        FinishReason.REFUSAL,
    }
)
"""Ways for a reply to end in which nothing of it counts."""


def forced_choice(
    run: Run[S], tool: ToolSpec, prompt: str, *, origin: str, model: str = ""
) -> CallModel:
    """Return the effect that has a model answer through `tool`, after the whole conversation.

    Args:
        run: the run that asks.
        tool: what the model must call.
        prompt: what it is asked.
        origin: the name of the node that asks.
        model: the label of the model; empty for the run's own.
    """
    request = ModelRequest(
        run.messages.append(UserMessage(prompt, origin=origin)),
        (tool,),
        ToolChoice("tool", tool.name),
        run.setup.settings,
    )
    return CallModel(run.next_effect, model or run.setup.model, request)


def choices(reply: Reply, tool: ToolSpec) -> tuple[object, ...]:
    """Return the arguments of each call of `tool`, as JSON values; None for what is no JSON."""
    if reply.finish_reason in CUT_SHORT:
        return ()
    return tuple([_value(one.arguments) for one in reply.message.calls if one.name == tool.name])


def _value(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return None
