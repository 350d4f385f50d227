"""Read and write JSON of model servers: loose types, split characters, broken arguments.

All wire formats use these functions to read events and errors and to write requests. The functions
do not interpret fields. They never repair JSON: a tool call's arguments are an object, or invalid.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, TypeAlias, TypeGuard, cast

from msgspec.json import Encoder
from pydantic_core import from_json

from ..errors import BadReply, ConfigError
from ..spending import NO_DETAILS, UsageDetails
from .text import whole_text

__all__ = [
    "JsonObject",
    "as_list",
    "as_object",
    "count_of",
    "details_of",
    "failure_text",
    "is_list",
    "is_object",
    "is_object_text",
    "json_bytes",
    "json_text",
    "object_in",
    "object_or_empty",
    "object_text",
    "parse_json",
    "parse_object",
    "quoted",
    "sent_name",
    "string_at",
]

JsonObject: TypeAlias = dict[str, Any]

QUOTE_CHARACTERS: Final = 300

# The names of tools that the strictest servers accept, and the characters that they refuse.
_is_legal_name: Final = re.compile(r"[A-Za-z0-9_-]{1,64}").fullmatch
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_-]")

FAILURES: Final = ("Error", "Invalid arguments", "No such tool", "Tool call denied", "Not run")
"""The beginnings of result texts that report a failure themselves."""

_encode = Encoder().encode


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Whether `value` is a parsed JSON object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether `value` is a parsed JSON array."""
    return isinstance(value, list)


def is_object_text(text: str) -> bool:
    """Whether `text` is a JSON object that every server accepts, without NaN or infinity."""
    try:
        return isinstance(from_json(text.encode(), allow_inf_nan=False), dict)
    except ValueError:
        return False


def as_object(value: object, place: str) -> JsonObject:
    """Return `value` if it is a JSON object, or `{}` if it is null.

    Raises:
        BadReply: `value` has another type; the message names `place`.
    """
    # `is_object` would satisfy the type checker, but costs a function call per delta.
    if isinstance(value, dict):
        return value  # pyright: ignore[reportUnknownVariableType]
    if value is None:
        return {}
    raise _unexpected(place, "an object or null", value)


def as_list(value: object, place: str) -> list[Any]:
    """Return `value` if it is a JSON array, or `[]` if it is null.

    Raises:
        BadReply: `value` has another type; the message names `place`.
    """
    if isinstance(value, list):
        return value  # pyright: ignore[reportUnknownVariableType]
    if value is None:
        return []
    raise _unexpected(place, "an array or null", value)


def string_at(fields: JsonObject, key: str) -> str:
    """Return the string at `key`, or an empty string if the value is absent or null.

    Raises:
        TypeError: the value has another type. A decoder converts this error to `BadReply`.
    """
    value = fields.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{key}: expected a string, found {value!r}")
    return whole_text(value)


def count_of(fields: object, key: str) -> int:
    """Return the positive integer at `key` of a JSON object, or 0 for any other value."""
    value = fields.get(key) if is_object(fields) else None
    # In Python, True is an int, but a JSON `true` is not a count.
    return value if isinstance(value, int) and value is not True and value > 0 else 0


def details_of(**counts: int) -> UsageDetails:
    """Return counts of tokens that may have a price of their own; see `UsageDetails`."""
    return UsageDetails(**counts) if any(counts.values()) else NO_DETAILS


def parse_json(data: bytes) -> object:
    """Parse JSON bytes; lone surrogates stay in strings unchanged.

    The nesting depth is limited, so that parsed values can always be encoded again.

    Raises:
        ValueError: `data` is not JSON.
    """
    try:
        return cast("object", from_json(data))  # jiter's result is Any
    except ValueError:
        # jiter refuses lone surrogates, which servers send when they split a character over two
        # deltas. The slow standard parser accepts lone surrogates, but cannot help otherwise.
        if b"\\ud" not in data and b"\\uD" not in data:
            raise
    # jiter checks the rest first, so that the slow parser can neither fail nor run out of stack.
    from_json(data.replace(b"\\ud", b"\\u0").replace(b"\\uD", b"\\u0"))
    return cast("object", json.loads(data))  # json's result is Any


def parse_object(data: bytes) -> JsonObject:
    """Parse the data of a server-sent event as a JSON object.

    Raises:
        BadReply: `data` is not a JSON object.
    """
    value: object
    try:
        value = from_json(data)  # A hot path, so without another function call.
    except ValueError:
        value = _parsed_slowly(data)
    if isinstance(value, dict):
        return value  # pyright: ignore[reportUnknownVariableType]
    raise _unexpected("the top of an event", "an object", value)


def object_in(text: str, *, place: str) -> JsonObject:
    """Parse `text` as a JSON object; lone surrogates in `text` become U+FFFD.

    Raises:
        ConfigError: `text` is not a JSON object; the message names `place`.
    """
    try:
        value = parse_json(whole_text(text).encode())
    except ValueError:
        value = None
    if not is_object(value):
        raise _no_object(text, place)
    return value


def object_text(text: str, *, place: str) -> str:
    """Return `text`, in whole characters, if it is a JSON object that every server accepts.

    Raises:
        ConfigError: `text` is not such an object; the message names `place`.
    """
    whole = whole_text(text)
    if not is_object_text(whole):
        raise _no_object(text, place)
    return whole


def json_bytes(value: object) -> bytes:
    """Encode any parsed JSON value as compact JSON; no value is refused.

    Surrogate pairs are joined, and lone surrogates are replaced. NaN and infinities become null.
    """
    try:
        return _encode(value)
    except UnicodeEncodeError:
        # json.dumps writes NaN, which is not JSON; parsing and encoding it again gives null.
        return _encode(from_json(whole_text(json.dumps(value, ensure_ascii=False))))


def json_text(value: object) -> str:
    """Encode `value` as compact JSON text (see `json_bytes`); equal values give equal text."""
    return json_bytes(value).decode()


def object_or_empty(arguments: str) -> str:
    """Return a tool call's `arguments` unchanged if they are a JSON object, else `{}`.

    Servers may deliver broken JSON or "" as arguments. But some servers refuse every request with
    such arguments in its history.
    """
    return arguments if is_object_text(arguments) else "{}"


def sent_name(name: str) -> str:
    """Return the tool name of a call in a form that every server accepts.

    A legal name is kept. Models invent illegal names (`functions.get weather`, or an empty name).
    Strict servers would refuse every later request with an illegal name in its history.
    """
    return name if _is_legal_name(name) else _ILLEGAL.sub("_", name)[:64] or "_"


def failure_text(text: str) -> str:
    """Return the text of a failed tool call for a wire format whose results have no error flag.

    A text that already begins by reporting the failure stays as it is.
    """
    return text if text.startswith(FAILURES) else f"Error: {text}"


def quoted(data: bytes | str) -> str:
    """Return the beginning of `data` as a printable quotation; never raises."""
    text = data if isinstance(data, str) else data[: QUOTE_CHARACTERS * 4].decode(errors="replace")
    cut = text[:QUOTE_CHARACTERS]
    return repr(cut) if cut == text else f"{cut!r}…"


def _parsed_slowly(data: bytes) -> object:
    try:
        return parse_json(data)
    except ValueError as error:
        raise BadReply(
            f"expected a JSON object in each event of the stream, found {quoted(data)} ({error}). "
            "Ask again; if it stays, check that the base URL speaks this wire."
        ) from error


def _unexpected(place: str, expected: str, value: object) -> BadReply:
    return BadReply(
        f"expected {expected} at {place}, found {quoted(json_bytes(value))}. "
        "Check that the base URL speaks this wire."
    )


def _no_object(text: str, place: str) -> ConfigError:
    return ConfigError(
        f"{place}: expected the text of one JSON object, found {quoted(text)}. "
        "Write it with json.dumps of a dict."
    )
