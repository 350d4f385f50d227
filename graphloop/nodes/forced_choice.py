"""Forced choice: a model answers through a tool that it must call, never in prose.

Free text would have to be interpreted. Arguments that are not JSON are no choice. The node that
asked decides what follows from a missing choice; the safe outcome is always a rejection.
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
"""Finish reasons of an incomplete or refused reply; its choices are ignored."""


def forced_choice(
    run: Run[S], tool: ToolSpec, prompt: str, *, origin: str, model: str = ""
) -> CallModel:
    """Return the effect that asks a model, after the whole conversation, to call `tool`.

    Args:
        run: the run, whose conversation and settings the request has.
        tool: the tool that the model must call.
        prompt: the question, sent as a user message after the conversation.
        origin: the name of the node that makes the request.
        model: the label of the model; empty for the run's own model.
    """
    request = ModelRequest(
        run.messages.append(UserMessage(prompt, origin=origin)),
        (tool,),
        ToolChoice("tool", tool.name),
        run.setup.settings,
    )
    return CallModel(run.next_effect, model or run.setup.model, request)


def choices(reply: Reply, tool: ToolSpec) -> tuple[object, ...]:
    """Return the arguments of each call of `tool` as JSON values; None if they are not JSON."""
    if reply.finish_reason in CUT_SHORT:
        return ()
    return tuple(
        [_parse_json(one.arguments) for one in reply.message.calls if one.name == tool.name]
    )


def _parse_json(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return None
