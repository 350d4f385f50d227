"""Hooks: the values that an agent's own functions receive and return."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar, cast

from ..driver import cancelled_inside
from ..tools import AnyTool
from ..values import Message, ToolChoice, Usage
from .inputs import MessageInput, Model

__all__ = [
    "AnswerInfo",
    "ChoiceInput",
    "StepChanges",
    "StepInfo",
    "Verdict",
    "inform",
]

ChoiceInput: TypeAlias = Literal["auto", "required", "none"] | ToolChoice


@dataclass(frozen=True, slots=True)
class StepInfo:
    """A turn before it starts, as `prepare_step` and `compact` functions receive it.

    Attributes:
        step_index: the turn's index; the first is 0.
        messages: the conversation that the model would be sent.
        usage: tokens so far, of all turns.
    """

    step_index: int
    messages: Sequence[Message]
    usage: Usage


@dataclass(frozen=True, slots=True)
class StepChanges:
    """Changes that a `prepare_step` function makes; None leaves a thing as it is.

    `messages` becomes the history of this and all later turns; `add_tools` and `withdraw_tools`
    (names) change what is offered in them. `active_tools` (instead of the agent's), `tool_choice`
    and `model` hold for this turn only. The choice, the agent's too, must be possible among the
    tools of the turn. Where there are `active_tools`, an added tool is offered, and can run, in the
    turns whose list names it. A journal holds no functions: another process that
    resumes the run by its id passes the added tools among the agent's `tools`.
    """

    messages: Sequence[MessageInput] | None = None
    add_tools: Sequence[AnyTool | Callable[..., object]] = ()
    withdraw_tools: Sequence[str] = ()
    active_tools: Sequence[str] | None = None
    tool_choice: ChoiceInput | None = None
    model: Model | None = None


@dataclass(frozen=True, slots=True)
class AnswerInfo:
    """The final answer, as the functions that check it receive it.

    Attributes:
        text: the answer.
        output: the answer as the agent's `output_type`, if it has one.
        messages: the conversation.
        usage: tokens so far.
        step_index: the turn's index.
        attempt: how often this check has sent an answer back.
    """

    text: str
    output: object
    messages: Sequence[Message]
    usage: Usage
    step_index: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of a `verify` function about an answer.

    `feedback` is read by the model in its next turn; without `retry` the answer is taken as it is.
    """

    ok: bool
    feedback: str = ""
    retry: bool = True


T = TypeVar("T")


async def inform(name: str, listener: Callable[[T], object], told: T) -> tuple[str, ...]:
    """Call a listener, and return a warning if it fails.

    Args:
        name: what the listener is called in warnings.
        listener: a function, which may be asynchronous.
        told: its argument.
    """
    try:
        answer = listener(told)
        if inspect.isawaitable(answer):
            await cast("Awaitable[object]", answer)
    except asyncio.CancelledError as error:
        return (f"{name} was {cancelled_inside(error)}",)
    except Exception as error:  # noqa: BLE001 - a listener cannot fail a run
        return (f"{name} raised {type(error).__name__}: {error}",)
    return ()
