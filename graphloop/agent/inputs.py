"""Inputs: types and checks for a caller's conversation, answers and functions.

A conversation is a prompt, messages in any form that the room `messages` reads, or both. A run
converts messages to new frozen values, and changes no object of the caller.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Generic, Literal, TypeAlias, TypedDict

from typing_extensions import TypeVar

from ..errors import ConfigError
from ..messages import MessageInput, messages_of
from ..policy import Approval
from ..providers import Provider
from ..values import ToolChoice

if TYPE_CHECKING:
    # Imported for types only: an agent without an HTTP model loads no HTTP code.
    from ..providers import Timeouts

__all__ = [
    "AccessOptions",
    "AnswersInput",
    "CallInput",
    "CallOptions",
    "ChoiceInput",
    "ConversationInput",
    "DepsInput",
    "DepsT",
    "Instructions",
    "IteratedInput",
    "MessageInput",
    "Model",
    "QuestionInput",
    "ResumeInput",
    "check_run_id",
    "messages_of",
]

DepsT = TypeVar("DepsT", default=None)

Model: TypeAlias = str | Provider
Says: TypeAlias = str | Awaitable[str]
Instructions: TypeAlias = str | Callable[[], Says] | Callable[[DepsT], Says]
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


class AccessOptions(TypedDict, total=False):
    """The options of one start or resume about access to its model.

    `model`: the model of this run. A resume names the model that the run began with.
    `timeouts`, `headers`: as in `RunOptions`, until the run ends or parks; a journal keeps neither.
    """

    model: Model | None
    timeouts: Timeouts | None
    headers: Mapping[str, str] | None


class CallOptions(AccessOptions, Generic[DepsT], total=False):
    """The options of one run, which replace those of its agent.

    `instructions`, `max_steps` and the sampling settings are as in `AgentOptions`. The journal
    keeps them, so a resume, a replay and a fork go by the same values.
    """

    instructions: Instructions[DepsT] | None
    max_steps: int
    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    stop_sequences: Sequence[str]
    seed: int | None
    provider_options: Mapping[str, object]


class CallInput(QuestionInput[DepsT], CallOptions[DepsT], Generic[DepsT], total=False):
    """The conversation of a new run, answers to the calls at its end, and the run's own options."""


class IteratedInput(ConversationInput[DepsT], CallOptions[DepsT], Generic[DepsT], total=False):
    """The conversation of a new run that the caller iterates, and the run's own options."""


class ResumeInput(AnswersInput[DepsT], AccessOptions, Generic[DepsT], total=False):
    """Answers to the calls that a run waits for, and access to the run's model."""


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
