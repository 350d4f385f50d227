"""Inputs: types and checks for a caller's conversation, answers and functions.

A conversation is a prompt, graphloop's own messages, or mappings in the form of the chat
completions API. A run converts messages to new frozen values, and changes no object of the caller.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Generic, Literal, TypeAlias, TypedDict, cast

from typing_extensions import TypeVar

from ..errors import ConfigError, nearest, not_among
from ..policy import Approval
from ..providers import CHAT_REASONING, CHAT_WIRE, Provider, is_list, is_object, json_text
from ..values import (
    AssistantMessage,
    AssistantPart,
    FilePart,
    ImagePart,
    Message,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolChoice,
    ToolResult,
    UserMessage,
    UserPart,
)

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
MessageInput: TypeAlias = Message | Mapping[str, object]
Says: TypeAlias = str | Awaitable[str]
Instructions: TypeAlias = str | Callable[[], Says] | Callable[[DepsT], Says]
ChoiceInput: TypeAlias = Literal["auto", "required", "none"] | ToolChoice

RUN_ID_CHARS_MAX: Final = 200

# The fields that a message of each role may have, apart from `role`.
FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "system": ("content",),
    "developer": ("content",),
    "user": ("content",),
    "assistant": ("content", *CHAT_REASONING, "reasoning_details", "tool_calls"),
    "tool": ("content", "is_error", "name", "tool_call_id"),
}


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
    """The conversation that a new run starts with, instead of a `prompt`.

    `messages`: the conversation so far.
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


def messages_of(messages: Sequence[MessageInput]) -> tuple[Message, ...]:
    """Convert a caller's messages and mappings to frozen message values.

    Raises:
        ConfigError: a message is invalid; the error names the message's index and the mistake.
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(
            f"`messages` is a list of messages; found {type(messages).__name__}. "
            "For one question use `prompt=`"
        )
    found = tuple(_message(f"messages[{at}]", message) for at, message in enumerate(messages))
    if not found:
        raise ConfigError("`messages` is empty: a model needs at least one message")
    return found


def _message(place: str, message: MessageInput) -> Message:
    if isinstance(message, SystemMessage | UserMessage | AssistantMessage | ToolResult):
        return message
    if not isinstance(message, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"{place}: expected a message, found {type(message).__name__}")
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or role not in FIELDS:
        found = f"{role!r}.{nearest(str(role), FIELDS)}"
        raise ConfigError(f"{place}: `role` is one of {', '.join(FIELDS)}; found {found}")
    _nothing_else(place, message, ("role", *FIELDS[role]))
    match role:
        case "system" | "developer":
            return SystemMessage(_text(place, content))
        case "user":
            parts = content if isinstance(content, str) else _parts(place, content)
            return UserMessage(parts)
        case "assistant":
            said, details = _assistant(place, message), _details(place, message)
            # Fields that a server added may be sent only to the wire that they came from.
            own = details or any(
                isinstance(part, ReasoningPart) or (isinstance(part, ToolCall) and part.extra)
                for part in said
            )
            return AssistantMessage(tuple(said), CHAT_WIRE if own else "", details)
        case _:  # "tool", the last of the roles.
            failed = message.get("is_error", False)
            if not isinstance(failed, bool):
                raise ConfigError(f"{place}: `is_error`: expected True or False, found {failed!r}")
            return ToolResult(
                key="",
                call_id=_field(place, message, "tool_call_id"),
                name=_field(place, message, "name") if message.get("name") else "",
                content=_text(place, content),
                status="error" if failed else "ok",
            )


def _text(place: str, content: object) -> str:
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    parts = _parts(place, content)
    if all(isinstance(part, TextPart) for part in parts):
        return "".join(part.text for part in parts if isinstance(part, TextPart))
    raise ConfigError(f"{place}: `content` must be text here")


def _parts(place: str, content: object) -> tuple[UserPart, ...]:
    if not isinstance(content, Sequence) or isinstance(content, str):
        raise ConfigError(
            f"{place}: `content` is a string or a list of parts; found {type(content).__name__}"
        )
    given = cast("Sequence[object]", content)  # isinstance leaves items untyped.
    return tuple(_part(f"{place}.content[{at}]", part) for at, part in enumerate(given))


def _part(place: str, part: object) -> UserPart:
    match part:
        case TextPart() | ImagePart() | FilePart():
            return part
        case {"type": "text", "text": str(text)}:
            _nothing_else(place, part, ("type", "text"))
            return TextPart(text)
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            _nothing_else(place, part, ("type", "image_url"))
            here, image = f"{place}.image_url", _fields(_fields(part)["image_url"])
            _nothing_else(here, image, ("url", "detail"))
            detail = _field(here, image, "detail") if image.get("detail") else ""
            return ImagePart(url, detail="" if detail == "auto" else detail)
        case {"type": "file", "file": {"file_data": str(data)}}:
            _nothing_else(place, part, ("type", "file"))
            return _file(f"{place}.file", _fields(_fields(part)["file"]), data)
        case _:
            raise ConfigError(
                f'{place}: expected {{"type": "text", "text": …}}, {{"type": "image_url", …}} or '
                f'{{"type": "file", "file": {{"file_data": …}}}}; found {part!r:.80}'
            )


def _file(place: str, file: Mapping[str, object], data: str) -> FilePart:
    _nothing_else(place, file, ("file_data", "filename"))
    kind, separator, content = data.removeprefix("data:").partition(";base64,")
    if not separator:
        raise ConfigError(
            f"{place}: `file_data`: expected 'data:<type>;base64,…', found {data[:80]!r}"
        )
    return FilePart(content, kind, _field(place, file, "filename") if file.get("filename") else "")


def _assistant(place: str, message: Mapping[str, object]) -> list[AssistantPart]:
    parts: list[AssistantPart] = []
    for name, extra in CHAT_REASONING.items():
        if message.get(name):
            parts.append(ReasoningPart(_field(place, message, name), extra=extra))
    if text := _text(place, message.get("content")):
        parts.append(TextPart(text))
    calls = message.get("tool_calls") or ()
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        raise ConfigError(f"{place}: `tool_calls` is a list; found {type(calls).__name__}")
    for at, call in enumerate(cast("Sequence[object]", calls)):
        match call:
            case {"id": str(id_), "function": {"name": str(name), "arguments": str(arguments)}}:
                here = f"{place}.tool_calls[{at}]"
                function = _fields(call)["function"]
                _nothing_else(f"{here}.function", function, ("name", "arguments"))
                parts.append(ToolCall(id_, name, arguments, _extra(here, _fields(call))))
            case _:
                raise ConfigError(
                    f"{place}.tool_calls[{at}]: expected id and function with name and "
                    f"arguments (a JSON string); found {call!r:.80}"
                )
    return parts


def _extra(place: str, call: Mapping[str, object]) -> str:
    """Return the server-specific fields of a call as JSON text, for later requests."""
    known = ("id", "type", "index", "function")
    extra = {name: value for name, value in call.items() if value and name not in known}
    try:
        return json_text(extra) if extra else ""
    except (TypeError, ValueError) as error:
        found = ", ".join(map(repr, extra))
        raise ConfigError(f"{place}: expected JSON in {found}, found {error}") from error


def _details(place: str, message: Mapping[str, object]) -> str:
    """Return a message's structured reasoning as JSON text for later requests; empty without it."""
    details: object = message.get("reasoning_details") or ()
    if not details:
        return ""
    if not is_list(details) or not all(map(is_object, details)):
        raise ConfigError(
            f"{place}: `reasoning_details`: expected a list of objects, found {details!r:.80}"
        )
    return json_text({"reasoning_details": details})


def _nothing_else(place: str, given: object, known: Sequence[str]) -> None:
    """Raise an error for unknown fields with a value; SDK dumps contain many empty fields.

    Raises:
        ConfigError: a field is unknown; the message lists such fields and the nearest known names.
    """
    fields = _fields(given)
    unknown = [str(name) for name, value in fields.items() if value and name not in known]
    if unknown:
        found = not_among(unknown, known)
        raise ConfigError(
            f"{place}: unknown field {found} Known are {', '.join(known)}; leave others out"
        )


def _fields(given: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", given)  # A match pattern narrows no type.


def _field(place: str, message: Mapping[str, object], name: str) -> str:
    value = message.get(name)
    if not isinstance(value, str):
        raise ConfigError(f"{place}: `{name}` is a string; found {value!r:.80}")
    return value
