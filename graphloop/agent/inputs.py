"""Inputs: types and checks for a caller's conversation, answers and functions.

A conversation is a prompt, messages in any form that the room `messages` reads, or both. A run
converts messages to new frozen values, and changes no object of the caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Generic, Literal, TypeAlias, TypedDict

from typing_extensions import TypeVar

from ..errors import ConfigError
from ..messages import MessageInput, messages_of
from ..policy import Approval
from ..providers import Provider
from ..values import ToolChoice

__all__ = [
    "AnswersInput",
    "ChoiceInput",
    "ConversationInput",
    "DepsInput",
    "DepsT",
    "MessageInput",
    "Model",
    "QuestionInput",
    "check_run_id",
    "messages_of",
]

DepsT = TypeVar("DepsT", default=None)

Model: TypeAlias = str | Provider
ChoiceInput: TypeAlias = Literal["auto", "required", "none"] | ToolChoice

RUN_ID_CHARS_MAX: Final = 200


class DepsInput(TypedDict, Generic[DepsT], total=False):
    """The object that a caller gives the functions of a run, from a start or resume to its end.

    `deps`: an object of the agent's `deps_type`; the journal never holds it.
    """

    deps: DepsT


class AnswersInput(DepsInput[DepsT], Generic[DepsT], total=False):
    """A caller's answers to the calls that a run waits for, and the run's `deps` from now on.

    `approvals`: decisions by the key of the pending call; a call without a decision stays pending.
    `tool_results`: the results of client tools by the key of the pending call; an exception
    (`ToolError("…")`) as result means that the tool failed.
    """

    approvals: Mapping[str, bool | Approval] | None
    tool_results: Mapping[str, object] | None


class ConversationInput(DepsInput[DepsT], Generic[DepsT], total=False):
    """The conversation that a new run continues; its `prompt` follows as the user's message.

    `messages`: the conversation so far, such as `result.conversation`.
    `run_id`: the run's id in the store; generated if not given.
    """

    messages: Sequence[MessageInput] | None
    run_id: str | None


class QuestionInput(ConversationInput[DepsT], AnswersInput[DepsT], Generic[DepsT], total=False):
    """The conversation that a new run starts with, and answers to the calls at its end.

    `approvals`: decisions by the id of the call; a call without a decision is denied. A token is
    valid only for its call in the same conversation. With an `approval_secret`, each approval needs
    a token. A `store` accepts a conversation with approvals only once, unless `run_id` is given.
    `tool_results`: the results of client tools by the id of the call.
    """


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
