"""Inputs: the arguments of `generate`, `resume` and `chat.send`, and the options of one run.

A conversation is a prompt, messages in any form that the room `messages` reads, or both. A run
converts messages to new frozen values, and changes no object of the caller.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, Literal, TypeAlias, TypedDict

from typing_extensions import TypeVar

from ..errors import ConfigError, nearest
from ..media import MediaPart, file
from ..messages import MessageInput, messages_of
from ..policy import Approval
from ..providers import Provider
from ..values import TextPart, ToolChoice, ToolSpec, UserMessage, UserPart

if TYPE_CHECKING:
    # Imported for types only: an agent without an HTTP model loads no HTTP code.
    from ..providers import Timeouts

__all__ = [
    "AccessOptions",
    "AnswersInput",
    "CallInput",
    "CallOptions",
    "ChatInput",
    "ChoiceInput",
    "ConversationInput",
    "DepsInput",
    "DepsT",
    "Instructions",
    "IteratedInput",
    "MessageInput",
    "Model",
    "ModelSettings",
    "PromptInput",
    "QuestionInput",
    "ResumeInput",
    "asked_message",
    "checked_tool_names",
    "choice_from_now",
    "choice_of",
    "messages_of",
    "offered",
    "refuse_blank",
    "strings",
]

DepsT = TypeVar("DepsT", default=None)

Model: TypeAlias = str | Provider
Says: TypeAlias = str | Awaitable[str]
Instructions: TypeAlias = str | Callable[[], Says] | Callable[[DepsT], Says]
ChoiceInput: TypeAlias = Literal["auto", "required", "none"] | ToolChoice

PromptInput: TypeAlias = str | Sequence[str | Path | bytes | MediaPart | TextPart]
"""A question: a text, or a list of texts and media, such as `["What is it?", Path("a.png")]`."""

MODES: Final = ("auto", "required", "none", "tool")


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


class ModelSettings(TypedDict, Generic[DepsT], total=False):
    """The options about what a request to the model says, of an agent or of one run.

    `instructions`: the system message, put before the conversation: a text, or a function of `deps`
    (or of nothing) that returns it. A run calls the function once, at its start, and journals the
    text; a resume does not call it again.
    `max_tokens`, `temperature`, `top_p`, `stop_sequences`, `seed`: sampling settings; the server's
    defaults apply to settings that are not given.
    `provider_options`: JSON fields that are merged unchanged into each request body.
    """

    instructions: Instructions[DepsT] | None
    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    stop_sequences: Sequence[str]
    seed: int | None
    provider_options: Mapping[str, object]


class CallOptions(ModelSettings[DepsT], AccessOptions, Generic[DepsT], total=False):
    """The options of one run, which replace those of its agent.

    `max_steps` is as in `AgentOptions`. The journal keeps it and the settings of the model, so a
    resume, a replay and a fork go by the same values.
    """

    max_steps: int


class CallInput(QuestionInput[DepsT], CallOptions[DepsT], Generic[DepsT], total=False):
    """The conversation of a new run, answers to the calls at its end, and the run's own options."""


class ChatInput(AnswersInput[DepsT], CallOptions[DepsT], Generic[DepsT], total=False):
    """Answers to the calls of a chat's last question, and the options of the next question's run.

    A run that goes on keeps its options, so answers without a prompt come without options.
    """


class IteratedInput(ConversationInput[DepsT], CallOptions[DepsT], Generic[DepsT], total=False):
    """The conversation of a new run that the caller iterates, and the run's own options."""


class ResumeInput(AnswersInput[DepsT], AccessOptions, Generic[DepsT], total=False):
    """Answers to the calls that a run waits for, and access to the run's model."""


def asked_message(prompt: PromptInput, name: str = "prompt") -> UserMessage:
    """Return a question as a user's message; the files of its paths are read now.

    Args:
        prompt: the question.
        name: the name of the question in errors.

    Raises:
        ConfigError: the question is of another type, empty or blank, or a file cannot be read or
            has an unknown type; the message names the part.
    """
    if isinstance(prompt, str):
        return refuse_blank(UserMessage(prompt), name)
    if not isinstance(prompt, list | tuple) or not prompt:
        found = type(prompt).__name__ if prompt else "nothing"
        raise ConfigError(
            f"`{name}`: expected a string, or a list of texts and media, found {found}. Fix: "
            "give a list such as ['What is it?', Path('a.png')]."
        )
    parts = [_prompt_part(f"{name}[{at}]", part) for at, part in enumerate(prompt)]
    return refuse_blank(UserMessage(tuple(parts)), name)


def refuse_blank(message: UserMessage, name: str) -> UserMessage:
    """Return the message, or raise if it is blank.

    Raises:
        ConfigError: it has only spaces, which a model would answer by a guess, or an API refuses.
    """
    content = message.content
    parts = (TextPart(content),) if isinstance(content, str) else content
    if any(not isinstance(part, TextPart) or part.text.strip() for part in parts):
        return message
    raise ConfigError(
        f"`{name}`: expected a question, found {content!r:.80}. Fix: fill it in, or start no run."
    )


def _prompt_part(place: str, part: object) -> UserPart:
    match part:
        case str():
            return TextPart(part)
        case Path() | bytes():
            try:
                return file(part)
            except ConfigError as error:
                raise ConfigError(f"`{place}`: {error}") from error
        case MediaPart() | TextPart():
            return part
        case _:
            raise ConfigError(
                f"`{place}`: expected text, a Path, bytes or a MediaPart, found "
                f"{type(part).__name__}. Fix: for whole messages, use `messages=`."
            )


def strings(option: str, given: Iterable[str]) -> tuple[str, ...]:
    """Return a list of strings as a tuple, and refuse a single string.

    Raises:
        ConfigError: the value is a single string, which would be read as a list of letters.
    """
    if isinstance(given, str):
        raise ConfigError(f"`{option}`: expected a list of strings, found {given!r:.80}")
    return tuple(given)


def offered(tools: Sequence[ToolSpec], active: Sequence[str] | None) -> tuple[ToolSpec, ...]:
    """Return the tools whose names are in `active`; None means all tools."""
    return tuple(tool for tool in tools if active is None or tool.name in active)


def checked_tool_names(
    option: str, given: Sequence[str], tools: Sequence[ToolSpec]
) -> tuple[str, ...]:
    """Return the given tool names as a tuple, after a check that each tool exists.

    Raises:
        ConfigError: no tool has one of the names.
    """
    known = [tool.name for tool in tools]
    names = strings(option, given)
    for name in names:
        if name not in known:
            raise ConfigError(
                f"`{option}` names {name!r}, which is not among the tools "
                f"({', '.join(known) or 'none'}).{nearest(name, known)}"
            )
    return names


def choice_from_now(choice: ChoiceInput, tools: Sequence[ToolSpec]) -> ToolChoice:
    """Check a tool choice that is made during a run, and return it as a `ToolChoice`.

    Raises:
        ConfigError: the choice is not possible with these tools, or is for the first step only.
    """
    if isinstance(choice, ToolChoice) and choice.scope == "first_step":
        raise ConfigError(
            "`tool_choice` with scope='first_step' has no effect in the middle of a run. Fix: "
            "leave the scope out. prepare_step chooses for its own step, set_params for all later "
            "steps."
        )
    return choice_of(choice, tools)


def choice_of(choice: ChoiceInput, tools: Sequence[ToolSpec]) -> ToolChoice:
    """Check that a tool choice is possible with these tools, and return it as a `ToolChoice`.

    Raises:
        ConfigError: the mode is unknown, the named tool is not there, or no tool can be required.
    """
    if isinstance(choice, str):
        choice = ToolChoice(choice)
    if choice.mode not in MODES:
        # A mode that is no mode would offer all tools, also where "none" was meant.
        names = [tool.name for tool in tools]
        fix = f"ToolChoice('tool', {choice.mode!r})" if choice.mode in names else "use one of them"
        raise ConfigError(
            f"`tool_choice`: expected {', '.join(MODES)}, found {choice.mode!r}."
            f"{nearest(choice.mode, MODES)} Fix: {fix}."
        )
    if choice.mode == "tool":
        checked_tool_names("tool_choice", [choice.name], tools)
    elif choice.name:
        raise ConfigError(
            f"`tool_choice` names {choice.name!r}, which has no effect in mode {choice.mode!r}. "
            "Fix: ToolChoice('tool', name)."
        )
    if choice.mode == "required" and not tools:
        raise ConfigError("`tool_choice` is 'required', but there are no tools")
    return choice
