"""Outcomes of tool calls: the text and the status that the model reads.

No function here raises: each returned value and each exception of a tool becomes an outcome. Text
is cut to a limit and made encodable as UTF-8, for the request body and the journal. A refusal of
arguments lists each finding with its path, and ends with the fix for the model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, cast

from msgspec import Struct, to_builtins
from pydantic_core import ErrorDetails, ValidationError, to_json

from ..errors import ToolError
from ..media import MediaPart, received
from ..values import ResultStatus, TextPart, UserPart, evolve

__all__ = [
    "ArgumentsRejected",
    "Content",
    "ToolOutcome",
    "ToolReturn",
    "error_text",
    "findings_of",
    "join_issues",
    "not_json",
    "outcome_of_error",
    "outcome_of_value",
    "rejection",
    "result_content",
    "shorten",
    "unknown_outcome",
]

ERROR_CHARS_MAX = 4_000
MARKER_CHARS_MAX = 100
EXCERPT_CHARS_MAX = 200
FOUND_CHARS_MAX = 80
ISSUE_CHARS_MAX = 300
ISSUES_MAX = 10

TEXT: Final = "text/plain"
PARTS: Final = (TextPart, MediaPart)
PLAIN: Final = frozenset({int, float, bool, dict, type(None)})
"""Types of values that hold no parts, and become JSON text."""

Content: TypeAlias = str | tuple[UserPart, ...]


class ToolOutcome(Struct, frozen=True, gc=False):
    """The result of a tool call: the content for the model, the status, and JSON for programs."""

    content: Content
    status: ResultStatus
    data: str = ""


class ToolReturn(Struct, frozen=True):
    """The return value of a tool that gives the model one thing, and programs another.

        return ToolReturn("Sold 3 of 40 items.", data=rows)

    The model reads `content`, in any form that a tool may return. No model reads `data`: a journal
    keeps it as JSON, and `ToolResult.value` returns it.
    """

    content: object
    data: object


class ArgumentsRejected(ValueError):
    """The arguments of a call do not fit the tool's schema; the message lists the findings."""


def unknown_outcome(name: str) -> ToolOutcome:
    """Return the outcome of a call that was running when its process stopped."""
    return ToolOutcome(
        f"The process stopped while tool {name!r} was running this call. Whether the call took "
        "effect is not known. Check before calling the tool again.",
        "unknown",
    )


def outcome_of_value(value: object, chars_max: int) -> ToolOutcome:
    """Return the outcome of a call that returned `value`; see `result_content`."""
    if type(value) is str and len(value) <= chars_max and value.isascii():
        return ToolOutcome(value, "ok")
    if isinstance(value, ToolReturn):
        return ToolOutcome(result_content(value.content, chars_max), "ok", _data_text(value.data))
    return ToolOutcome(result_content(value, chars_max), "ok")


def outcome_of_error(error: Exception, chars_max: int) -> ToolOutcome:
    """Return the outcome of a call that raised `error`; a `ToolError` may have parts, too."""
    text = error_text(error)
    if not isinstance(error, ToolError) or error.content is None:
        return ToolOutcome(text, "error")
    said, more = _safely(str, error) and text, result_content(error.content, chars_max)
    if isinstance(more, str):
        return ToolOutcome("\n".join(filter(None, (said, more))), "error")
    if isinstance(more[0], TextPart):  # Some servers join neighbouring texts without a break.
        said, more = f"{said}\n{more[0].text}", more[1:]
    return ToolOutcome((TextPart(said or text), *more), "error")


def result_content(value: object, chars_max: int) -> Content:
    """Return the returned value of a tool as text or as content parts.

    A string stays as it is. Bytes become the media that they are, or text. Any other value becomes
    JSON text. Text beyond `chars_max` characters, counted over all parts together, is cut and
    marked.
    """
    if type(value) is str and len(value) <= chars_max and value.isascii():
        return value
    if isinstance(value, str):
        # A subclass, such as an enum member, would come back from the journal as a plain string.
        return shorten(str.__str__(value), chars_max)
    if isinstance(value, bytes):
        part = received(value, "")
        value = value.decode() if part.media_type == TEXT else part
        return result_content(value, chars_max)
    if type(value) in PLAIN:
        return shorten(_json_text(value), chars_max)
    parts = _parts_or_none(value)
    return _shorten_parts(parts, chars_max) if parts else shorten(_json_text(value), chars_max)


def error_text(error: Exception) -> str:
    """Return the text of an exception for the model: `"<Type>: <message>"`.

    A `ToolError` gives its message alone. Tracebacks, causes and notes stay out, because they may
    hold secrets.
    """
    name = type(error).__name__
    message = _safely(str, error)
    if message and not isinstance(error, ToolError):
        message = f"{name}: {message}"
    return shorten(message or name, ERROR_CHARS_MAX - MARKER_CHARS_MAX)


def rejection(tool: str, arguments: str, error: Exception) -> str:
    """Return the message that tells the model why its arguments failed to parse (`error`)."""
    issue = f"Invalid arguments for tool {tool!r}: {findings_of(arguments, error)}"
    remedy = "Correct the arguments and call the tool again."
    room = ERROR_CHARS_MAX - 2 * len(remedy) - len(tool)
    return f"{shorten(issue, room).rstrip('.')}. {remedy}"


def join_issues(issues: Sequence[tuple[str, str]]) -> str:
    """Return `(path, message)` findings as one line; only the first `ISSUES_MAX` are listed."""
    listed = [
        shorten(f"{path}: {message}" if path else message, ISSUE_CHARS_MAX)
        for path, message in issues[:ISSUES_MAX]
    ]
    if len(issues) > ISSUES_MAX:
        listed.append(f"and {len(issues) - ISSUES_MAX} more")
    return "; ".join(listed)


def not_json(text: str, reason: str) -> str:
    """Return the message that the arguments are not JSON, with the reason and an excerpt."""
    return f"not valid JSON ({reason}): {_excerpt(text)!r}"


def shorten(text: str, chars_max: int) -> str:
    """Return `text`; text beyond `chars_max` characters is cut off, and a note says how much.

    Lone surrogates, which UTF-8 cannot encode, become question marks.
    """
    if len(text) > chars_max:
        left_out = len(text) - chars_max
        text = f"{text[:chars_max]}\n[cut: {left_out} of {len(text)} characters left out]"
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _parts_or_none(value: object) -> tuple[UserPart, ...]:
    if isinstance(value, PARTS):
        return (value,)
    if not isinstance(value, (list, tuple)):
        return ()
    items = cast("Sequence[object]", value)  # isinstance does not know the item types.
    parts = tuple([item for item in items if isinstance(item, PARTS)])
    return parts if len(parts) == len(items) else ()


def _shorten_parts(parts: tuple[UserPart, ...], chars_max: int) -> tuple[UserPart, ...]:
    kept: list[UserPart] = []
    for part in parts:
        if isinstance(part, TextPart):
            kept.append(evolve(part, text=shorten(part.text, chars_max)))
            chars_max = max(0, chars_max - len(part.text))
        else:
            kept.append(part)
    return tuple(kept)


def _json_text(value: object) -> str:
    try:
        return to_json(value, fallback=_plain_data).decode("utf-8")
    except Exception:  # noqa: BLE001 - cycles, lone surrogates, user serialisers.
        return _repr(value)


def _data_text(value: object) -> str:
    """Return a value as JSON text; what JSON cannot hold becomes its repr."""
    try:
        return to_json(value, fallback=_plain_data, inf_nan_mode="null").decode("utf-8")
    except Exception:  # noqa: BLE001 - cycles, lone surrogates, user serialisers.
        return json.dumps(_repr(value))


def _plain_data(value: object) -> object:
    """Return a msgspec struct as a dict of its fields, and any other object as its repr."""
    return to_builtins(value) if isinstance(value, Struct) else _repr(value)


def _repr(value: object) -> str:
    return _safely(repr, value) or f"<{type(value).__name__}>"


def _safely(describe: Callable[[object], str], value: object) -> str:
    try:
        return describe(value)
    except Exception:  # noqa: BLE001 - `__str__` and `__repr__` are user code.
        return ""


def findings_of(text: str, error: Exception) -> str:
    """Return what is wrong with a value's JSON text, from the error that its check raised."""
    if isinstance(error, ArgumentsRejected):
        return str(error)
    if not isinstance(error, ValidationError):
        return error_text(error)
    details = error.errors(include_url=False, include_context=False)
    match details[0]["type"]:
        case "json_invalid":
            return not_json(text, details[0]["msg"].removeprefix("Invalid JSON: "))
        case "string_unicode":
            return not_json(text, "half of a surrogate pair is no Unicode text")
        case "dict_type" | "model_type" if not details[0]["loc"]:
            excerpt = _excerpt(text)
            return f'expected one JSON object, such as {{"name": "value"}}, found {excerpt!r}'
        case _:
            return join_issues([_finding_text(detail) for detail in details])


def _excerpt(text: str) -> str:
    if len(text) <= EXCERPT_CHARS_MAX:
        return text
    half = (EXCERPT_CHARS_MAX - 3) // 2
    return f"{text[:half]} … {text[-half:]}"


def _finding_text(detail: ErrorDetails) -> tuple[str, str]:
    path = ".".join(str(step) for step in detail["loc"])
    if detail["type"] == "missing":
        return path, detail["msg"]
    return path, f"{detail['msg']}, found {shorten(repr(detail['input']), FOUND_CHARS_MAX)}"
