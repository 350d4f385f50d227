"""What an agent's functions are told and may answer, and how listeners are called."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar, cast

from ..driver import cancelled_inside
from ..providers import Provider
from ..tools import AnyTool
from ..values import Message, ToolChoice, Usage
from .inputs import MessageInput

__all__ = [
    "AnswerInfo",
    "ChoiceInput",
    "Model",
    "StepChanges",
    "StepInfo",
    "Verdict",
    "inform",
]

Model: TypeAlias = str | Provider
ChoiceInput: TypeAlias = Literal["auto", "required", "none"] | ToolChoice


@dataclass(frozen=True, slots=True)
class StepInfo:
    """What a `prepare_step` or a `compact` function is told before a turn.

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
    """What a `prepare_step` function may change; None leaves a thing as it is.

    `messages` becomes the history of this and all later turns; `add_tools` and `withdraw_tools`
    (names) change what is offered in them. `active_tools` (instead of the agent's), `tool_choice`
    and `model` hold for this turn only. The choice, the agent's too, must be possible among the
    tools of the turn. Where there are `active_tools`, an added tool is offered, and can run, in the
    turns whose list names it. A journal holds no functions: who resumes a run by its id in another
    process passes what was added among the agent's `tools`.
    """

    messages: Sequence[MessageInput] | None = None
    add_tools: Sequence[AnyTool | Callable[..., object]] = ()
    withdraw_tools: Sequence[str] = ()
    active_tools: Sequence[str] | None = None
    tool_choice: ChoiceInput | None = None
    model: Model | None = None


@dataclass(frozen=True, slots=True)
class AnswerInfo:
    """What a check of the final answer is told.

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
    """What a `verify` function says of an answer.

    `feedback` is read by the model in its next turn; without `retry` the answer is taken as it is.
    """

    ok: bool
    feedback: str = ""
    retry: bool = True


T = TypeVar("T")


async def inform(name: str, listener: Callable[[T], object], told: T) -> tuple[str, ...]:
    """Call a listener, and return a warning if it failed.

    Args:
        name: what the listener is called in warnings.
        listener: a function, which may be asynchronous.
        told: what it is told.
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
