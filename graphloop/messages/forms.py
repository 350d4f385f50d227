"""Forms: reads messages in each form that callers hold, and writes graphloop's own as JSON.

    saved = dump_messages(result.conversation)
    result = await agent.generate("And tomorrow?", messages=load_messages(saved))

`messages_of` chooses the reader of each message by its fields, so one list may mix forms.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, TypeAlias, cast

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.json import encode

from .. import messages as readers
from ..errors import ConfigError
from ..providers import is_list, is_object
from ..values import AssistantMessage, Message, SystemMessage, ToolResult, UserMessage

__all__ = ["MessageInput", "dump_messages", "load_messages", "messages_of"]

MessageInput: TypeAlias = Message | Mapping[str, object]
TYPE: Final = "graphloop.messages"
VERSION: Final = 1

Items: TypeAlias = Sequence[object]

MARKS: Final = frozenset({"wire", "origin", "call_id"})
"""Fields that only graphloop's own form has: of a reply, a user's message, and a result."""


ITEM_PARTS: Final = frozenset({"input_text", "input_image", "input_file"})
"""The types of parts that only an item of the Responses API has."""


class _Saved(Struct):
    type: str
    version: int
    messages: tuple[Message, ...]


def dump_messages(messages: Sequence[MessageInput]) -> str:
    """Return a conversation as JSON text, for a file, a database or another process.

        saved = dump_messages(result.conversation)
        messages = load_messages(saved)

    The text is an object with the fields `type`, `version` and `messages`. It keeps all data of the
    messages: provider ids, signatures of reasoning, and the status of each result.

    Args:
        messages: messages in any form that `load_messages` reads; the list may be empty.

    Raises:
        ConfigError: a message is invalid; the error names its index and the fault.
    """
    saved = _Saved(TYPE, VERSION, _read_messages(messages))
    try:
        return encode(saved).decode()
    except UnicodeEncodeError:
        # Servers may send half of a surrogate pair; the `json` module escapes it.
        return json.dumps(to_builtins(saved), separators=(",", ":"))


def load_messages(
    saved: str | bytes | Mapping[str, object] | Sequence[MessageInput],
) -> tuple[Message, ...]:
    """Return the messages in a text of `dump_messages`, or in another library's list.

        load_messages(Path("talk.json").read_text())
        load_messages((await request.json())["messages"])  # from a browser with the AI SDK

    A browser can send any message, also of role system, and results of tools that never ran. A
    server that keeps the conversation itself (`agent.chat`) needs only the user's last message.

    Args:
        saved: JSON text, or JSON that is parsed already. It is an object that `dump_messages`
            wrote, or a list of messages: of OpenAI's chat completions, items of its Responses
            (input and output), or of the AI SDK (`UIMessage` or `ModelMessage`).

    Raises:
        ConfigError: the text is not JSON, a newer graphloop wrote it, or a message is invalid; the
            error names its index and the fault.
    """
    given: object = saved
    if isinstance(saved, str | bytes):
        try:
            given = json.loads(saved)
        except (ValueError, RecursionError) as error:
            raise ConfigError(
                f"the saved messages: expected JSON, found text that is none: {error}"
            ) from error
    if not is_object(given):
        # `_read_messages` refuses all but a list of messages.
        return _read_messages(cast("Sequence[MessageInput]", given))
    _check_head(given)
    messages = given.get("messages")
    if not is_list(messages):
        raise ConfigError(f"`messages`: expected a list, found {type(messages).__name__}")
    return tuple(
        [_read_own_form(f"messages[{at}]", message) for at, message in enumerate(messages)]
    )


def messages_of(
    messages: Sequence[MessageInput], *, may_be_empty: bool = False
) -> tuple[Message, ...]:
    """Convert a caller's messages and mappings to frozen message values.

    Args:
        messages: messages in any form that `load_messages` reads.
        may_be_empty: whether there may be no message, since a prompt follows.

    Raises:
        ConfigError: there is no message, or one is invalid; the error names its index and fault.
    """
    found = _read_messages(messages)
    if not (found or may_be_empty):
        raise ConfigError("`messages` is empty: a model needs at least one message")
    return found


def _read_messages(messages: Sequence[MessageInput]) -> tuple[Message, ...]:
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(
            f"expected `messages` to be a list of messages, found {type(messages).__name__}. "
            "For one question use `prompt=`"
        )
    return tuple(
        [one for place, given in _by_reply(messages) for one in _messages_of(place, given)]
    )


def _by_reply(messages: Iterable[MessageInput]) -> Iterator[tuple[str, MessageInput]]:
    """Yield each message with its place; a model's items that follow one another are one."""
    places = ((f"messages[{at}]", given) for at, given in enumerate(messages))
    for is_reply, given in groupby(places, lambda one: _is_output(one[1])):
        if is_reply:
            place, first = next(given)
            yield place, readers.output_items(place, [first, *[item for _, item in given]])
        else:
            yield from given


def _is_output(message: MessageInput) -> bool:
    # The reader of items is loaded for items only.
    return isinstance(message, Mapping) and "type" in message and readers.is_output_item(message)


def _messages_of(place: str, message: MessageInput) -> Iterator[Message]:
    """Yield a message as a value; a message of the AI SDK may give several."""
    if isinstance(message, SystemMessage | UserMessage | AssistantMessage | ToolResult):
        yield message
    elif not isinstance(message, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"{place}: expected a message, found {type(message).__name__}")
    elif _is_item(message):
        yield readers.input_item(place, message)
    elif _is_own_form(message):
        yield _own_message(place, message)
    elif "parts" in message:
        yield from readers.ui_messages(place, message)
    elif readers.is_ai_sdk(message):
        yield from readers.model_messages(place, message)
    else:
        yield readers.chat_message(place, message)


def _read_own_form(place: str, message: object) -> Message:
    if not is_object(message):
        raise ConfigError(f"{place}: expected a message, found {type(message).__name__}")
    return _own_message(place, message)


def _check_head(saved: Mapping[str, object]) -> None:
    """Raise an error for an object that `dump_messages` of this graphloop did not write.

    Raises:
        ConfigError: the object has another type, a newer version, or an unknown field.
    """
    kind, version = saved.get("type"), saved.get("version")
    if kind != TYPE:
        fix = "pass its `messages`" if "messages" in saved else "pass a list of messages"
        raise ConfigError(
            f"the saved messages: expected a list, or an object of type {TYPE!r}, found an object "
            f"of type {kind!r}. Fix: {fix}."
        )
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ConfigError(f"`version`: expected {VERSION}, found {version!r}")
    if version > VERSION:
        raise ConfigError(
            f"`version`: expected {VERSION} or less, found {version}: a newer graphloop wrote the "
            "messages. Fix: upgrade graphloop."
        )
    unknown = sorted(saved.keys() - {"type", "version", "messages"})
    if unknown:
        raise ConfigError(f"the saved messages: unknown field {unknown[0]!r}. Fix: leave it out.")


def _is_item(message: Mapping[str, object]) -> bool:
    """Whether a message is an item of the Responses API; not each of them has a type."""
    content = message.get("content")
    parts = content if is_list(content) else ()
    return "type" in message or any(
        is_object(part) and part.get("type") in ITEM_PARTS for part in parts
    )


def _is_own_form(message: Mapping[str, object]) -> bool:
    """Whether a message has graphloop's form, as `json.loads(msgspec.json.encode(message))` has."""
    return not MARKS.isdisjoint(message)


def _own_message(place: str, message: Mapping[str, object]) -> Message:
    """Return a message in graphloop's own form as a value.

    Raises:
        ConfigError: a field is missing, is unknown, or has a wrong value.
    """
    given = dict(message)
    try:
        read: Message = convert(given, type=Message)  # pyright: ignore[reportArgumentType] - a union
    except ValidationError as error:
        raise ConfigError(
            f"{place}: expected a message as `dump_messages` writes it, found a fault: {error}"
        ) from error
    unknown = _unknown_field(place, given, to_builtins(read))
    if unknown:
        raise ConfigError(
            f"{unknown}: unknown field. Fix: leave it out, or upgrade graphloop if a newer one "
            "wrote the message."
        )
    return read


def _unknown_field(place: str, given: object, known: object) -> str:
    """Return the place of the first field in `given` that is not in `known`; empty for none."""
    if is_object(given) and is_object(known):
        for name, value in given.items():
            found = (
                _unknown_field(f"{place}.{name}", value, known[name])
                if name in known
                else f"{place}.{name}"
            )
            if found:
                return found
    elif isinstance(given, list | tuple) and isinstance(known, list | tuple):
        # isinstance leaves items untyped; `convert` has read as many items as were given.
        pairs = zip(cast("Items", given), cast("Items", known), strict=True)
        for at, pair in enumerate(pairs):
            if found := _unknown_field(f"{place}[{at}]", *pair):
                return found
    return ""
