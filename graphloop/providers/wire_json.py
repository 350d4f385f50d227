"""JSON as servers write it: loose types, halves, broken arguments.

Every wire reads events and errors and writes requests with it. No function here knows the meaning
of a field. JSON is never repaired: a call's arguments are an object as they stand, or not.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, TypeAlias, TypeGuard, cast

from msgspec.json import Encoder
from pydantic_core import from_json

from ..errors import BadReply, ConfigError
from .text import whole_text

__all__ = [
    "JsonObject",
    "as_list",
    "as_object",
    "count_of",
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
]

JsonObject: TypeAlias = dict[str, Any]

QUOTE_CHARACTERS: Final = 300

# The names of tools that the strictest servers accept, and the characters that they refuse.
_is_legal_name: Final = re.compile(r"[A-Za-z0-9_-]{1,64}").fullmatch
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_-]")

_encode = Encoder().encode


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Whether `value` is a parsed JSON object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether `value` is a parsed JSON array."""
    return isinstance(value, list)


def is_object_text(text: str) -> bool:
    """Whether `text` is one JSON object to every server."""
    try:
        return isinstance(from_json(text.encode(), allow_inf_nan=False), dict)
    except ValueError:
        return False


def as_object(value: object, place: str) -> JsonObject:
    """Return the object at `place`, `{}` for null.

    Raises:
        BadReply: the value has another type.
    """
    # isinstance does not know the types in a parsed dict, and is_object costs a call per delta.
    if isinstance(value, dict):
        return value  # pyright: ignore[reportUnknownVariableType]
    if value is None:
        return {}
    raise _unexpected(place, "an object or null", value)


def as_list(value: object, place: str) -> list[Any]:
    """Return the array at `place`, `[]` for null.

    Raises:
        BadReply: the value has another type.
    """
    if isinstance(value, list):
        return value  # pyright: ignore[reportUnknownVariableType]
    if value is None:
        return []
    raise _unexpected(place, "an array or null", value)


def count_of(fields: object, key: str) -> int:
    """Return the count at `key`; 0 unless positive and whole."""
    value = fields.get(key) if is_object(fields) else None
    # True is an int to Python, but not to a reader of the journal.
    return value if isinstance(value, int) and value is not True and value > 0 else 0


def parse_json(data: bytes) -> object:
    """Parse `data`; halves of characters come through as they are.

    The depth is limited below the stack's: parsed values can always be written again.

    Raises:
        ValueError: `data` is not JSON.
    """
    try:
        return cast("object", from_json(data))  # jiter's result is Any
    except ValueError:
        # jiter refuses lone surrogates, but servers send them when a character is split over two
        # deltas. The slow parser accepts them; no other error is worth a second try.
        if b"\\ud" not in data and b"\\uD" not in data:
            raise
    # If the rest is valid, the slow parser can neither fail nor run out of stack.
    from_json(data.replace(b"\\ud", b"\\u0").replace(b"\\uD", b"\\u0"))
    return cast("object", json.loads(data))  # json's result is Any


def parse_object(data: bytes) -> JsonObject:
    """Parse one event's data.

    Raises:
        BadReply: it is not a JSON object.
    """
    value: object
    try:
        value = from_json(data)  # First try without a call: this is the hot path.
    except ValueError:
        value = _parsed_slowly(data)
    if isinstance(value, dict):
        return value  # pyright: ignore[reportUnknownVariableType]
    raise _unexpected("the top of an event", "an object", value)


def object_in(text: str, *, place: str) -> JsonObject:
    """Return the JSON object in `text`, also with halves of characters.

    Raises:
        ConfigError: it is no JSON object; the message names `place`.
    """
    try:
        value = parse_json(whole_text(text).encode())
    except ValueError:
        value = None
    if not is_object(value):
        raise _no_object(text, place)
    return value


def object_text(text: str, *, place: str) -> str:
    """Return `text` if it is a JSON object to any server.

    Raises:
        ConfigError: it is none; the message names `place`.
    """
    whole = whole_text(text)
    if not is_object_text(whole):
        raise _no_object(text, place)
    return whole


def json_bytes(value: object) -> bytes:
    """Write `value` as compact JSON; never refuses a value.

    Characters in halves are joined or replaced; NaN and the infinities become null.
    """
    try:
        return _encode(value)
    except UnicodeEncodeError:
        # json.dumps writes NaN, which is no JSON; reading and encoding it again turns it into null.
        return _encode(from_json(whole_text(json.dumps(value, ensure_ascii=False))))


def json_text(value: object) -> str:
    """Write `value` as `json_bytes` does; the same value gives the same text."""
    return json_bytes(value).decode()


def object_or_empty(arguments: str) -> str:
    """Return `arguments` verbatim if they are a JSON object, else `{}`.

    Servers accept less than they send: broken JSON or "" in a history makes some of them refuse
    every later request, so it is never sent back.
    """
    return arguments if is_object_text(arguments) else "{}"


def sent_name(name: str) -> str:
    """Return a call's name in a form that every server accepts.

    A legal name is kept. Models invent names (`functions.get weather`, or none). A server with a
    pattern for names would refuse every later request of a history that holds one.
    """
    return name if _is_legal_name(name) else _ILLEGAL.sub("_", name)[:64] or "_"


def quoted(data: bytes | str) -> str:
    """Return the beginning of `data`, printable; never raises."""
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
