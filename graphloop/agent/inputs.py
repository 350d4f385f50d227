"""Inputs: types and checks for a caller's conversation, answers and functions.

A conversation is a prompt, messages in any form that the room `messages` reads, or both. A run
converts messages to new frozen values, and changes no object of the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypedDict

from ..errors import ConfigError
from ..messages import MessageInput, messages_of
from ..policy import Approval
from ..providers import Provider
from ..tools import AnyTool
from ..values import Message, ToolChoice, Usage

__all__ = [
    "AnswerInfo",
    "AnswersInput",
    "ChoiceInput",
    "ConversationInput",
    "MessageInput",
    "Model",
    "QuestionInput",
    "Review",
    "StepChanges",
    "StepInfo",
    "check_run_id",
    "messages_of",
]

Model: TypeAlias = str | Provider
ChoiceInput: TypeAlias = Literal["auto", "required", "none"] | ToolChoice

RUN_ID_CHARS_MAX: Final = 200


class AnswersInput(TypedDict, total=False):
    """A caller's answers to the calls that a run waits for.

    `approvals`: decisions by the key of the pending call; a call without a decision stays pending.
    `tool_results`: the results of client tools by the key of the pending call; an exception
    (`ToolError("…")`) as result means that the tool failed.
    """

    approvals: Mapping[str, bool | Approval] | None
    tool_results: Mapping[str, object] | None


class ConversationInput(TypedDict, total=False):
    """The conversation that a new run continues; its `prompt` follows as the user's message.

    `messages`: the conversation so far, such as `result.conversation`.
    `run_id`: the run's id in the store; generated if not given.
    """

    messages: Sequence[MessageInput] | None
    run_id: str | None


class QuestionInput(ConversationInput, AnswersInput, total=False):
    """The conversation that a new run starts with, and answers to the calls at its end.

    `approvals`: decisions by the id of the call; a call without a decision is denied. A token is
    valid only for its call in the same conversation. With an `approval_secret`, each approval needs
    a token. A `store` accepts a conversation with approvals only once, unless `run_id` is given.
    `tool_results`: the results of client tools by the id of the call.
    """


@dataclass(frozen=True, slots=True)
class StepInfo:
    """Data about a turn before it starts, passed to `prepare_step` and `compact` functions.

    Attributes:
        step_index: the turn's index, from 0.
        messages: the conversation to be sent to the model.
        usage: the tokens of all turns so far.
    """

    step_index: int
    messages: Sequence[Message]
    usage: Usage


@dataclass(frozen=True, slots=True)
class StepChanges:
    """The changes that a `prepare_step` function returns; a default value changes nothing.

    `messages` becomes the history of this and all later turns. `add_tools` and `withdraw_tools`
    (names) change the tools of this and all later turns. `active_tools`, `tool_choice` and `model`
    replace the agent's values for this turn only. `tool_choice` must be possible with the tools of
    the turn. If a turn has `active_tools`, an added tool is offered only if that list names the
    tool. A journal stores no functions: to resume the run by its id in another process, pass the
    added tools among the agent's `tools`.
    """

    messages: Sequence[MessageInput] | None = None
    add_tools: Sequence[AnyTool | Callable[..., object]] = ()
    withdraw_tools: Sequence[str] = ()
    active_tools: Sequence[str] | None = None
    tool_choice: ChoiceInput | None = None
    model: Model | None = None


@dataclass(frozen=True, slots=True)
class AnswerInfo:
    """Data about a final answer, passed to `done_when` and `verify` functions.

    Attributes:
        text: the answer as text.
        output: the answer as a value of the agent's `output_type`; None without an `output_type`.
        messages: the conversation.
        usage: the tokens of all turns so far.
        step_index: the turn's index, from 0.
        attempt: the number of answers that this check has sent back so far.
    """

    text: str
    output: object
    messages: Sequence[Message]
    usage: Usage
    step_index: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Review:
    """The result of a `verify` function: whether the answer is good, and how to improve it.

    The model reads `feedback` in its next turn. If `retry` is False, the run accepts the answer
    even if `ok` is False.
    """

    ok: bool
    feedback: str = ""
    retry: bool = True


def check_run_id(name: str, run_id: str) -> None:
    """Raise an error if a run id cannot be a file name and a key in a store.

    Raises:
        ConfigError: the id is empty or too long, or has a slash or half a surrogate pair; the
            message names the option `name`.
    """
    if not run_id or "/" in run_id:
        raise ConfigError(
            f"`{name}`: expected some text without a slash, which sets child runs apart, found "
            f"{run_id!r}"
        )
    if len(run_id) > RUN_ID_CHARS_MAX:
        raise ConfigError(
            f"`{name}`: expected at most {RUN_ID_CHARS_MAX} characters, found {len(run_id)}"
        )
    if any("\ud800" <= character <= "\udfff" for character in run_id):
        raise ConfigError(
            f"`{name}`: expected text that can be written, found half a surrogate pair in "
            f"{run_id!r}"
        )
