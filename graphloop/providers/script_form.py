"""Parse the entries of a script, from Python or from a file, into ready replies.

Each reply is built once, when the script is read, so that sending it costs next to nothing. An
error names the place, the value found, and the fix.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar, cast, final

import yaml
from msgspec import Struct, ValidationError, convert

from .. import errors
from ..errors import BadReply, ConfigError, ProviderError, ScriptError
from ..media import Inline, MediaPart, file, image
from ..spending import UsageDetails
from ..values import (
    AssistantMessage,
    AssistantPart,
    FinishReason,
    Message,
    ModelRequest,
    ReasoningPart,
    Reply,
    TextPart,
    ToolCall,
    ToolResult,
    Usage,
)
from .base import Delta, MediaDelta, ReasoningDelta, TextDelta, ToolCallDelta
from .media import base64_text
from .wire_json import details_of

__all__ = ["ReadyReply", "load_script", "ready_reply"]

WIRE = "script"
T = TypeVar("T")

INPUT_TOKENS: Final = 10
CALL_TOKENS: Final = 5
SHOWN_CHARS: Final = 80
COUNTS: Final = tuple([name for name in Usage.__struct_fields__ if name != "details"])

_words = re.compile(r"\S+\s*|\s+").findall


class _Call(Struct, forbid_unknown_fields=True):
    name: str
    arguments: str | dict[str, object] = {}
    id: str | None = None


class _Error(Struct, forbid_unknown_fields=True):
    """A recorded failure: the class in `graphloop.errors`, and what the server said."""

    message: str
    type: str = "BadReply"
    status: int = 0
    retry_after_s: float | None = None


class _Entry(Struct, forbid_unknown_fields=True):
    """A script entry in mapping form; the other forms are a text and a `Reply`."""

    text: str = ""
    reasoning: str = ""
    media: list[str] = []
    calls: list[_Call] = []
    finish_reason: FinishReason | None = None
    usage: dict[str, int] | None = None
    error: str | _Error | None = None
    deltas: list[str] | None = None
    to: str | list[str] | None = None
    asked: dict[str, object] | None = None
    model: str = ""
    # A recording adds these: the parts, if the fields above cannot hold them, and their wire.
    parts: list[AssistantPart] = []
    wire: str = WIRE
    extra: str = ""
    service: str = ""
    raw_finish_reason: str = ""
    metadata: str = ""


class _Script(Struct, forbid_unknown_fields=True):
    """A script file in mapping form; the other form is a bare list of replies."""

    replies: list[object]
    model: str = "scripted"


@final
@dataclass(frozen=True, slots=True)
class ReadyReply:
    """A parsed script entry: the deltas to stream, then a reply or an exception to raise."""

    deltas: tuple[Delta, ...]
    end: Reply | Exception
    to: tuple[str, ...] | None = None
    """The texts that a conversation must contain to get this reply; None without `to`."""
    asked: Mapping[str, object] | None = None
    """The recorded request that this reply answers (`asked_of`); None if it answers any."""

    def fits(self, request: ModelRequest) -> bool:
        """Whether the request's conversation contains all texts in `to`."""
        conversation = "\n".join(_text_of(message) for message in request.messages)
        return all(text in conversation for text in self.to or ())


def load_script(path: Path) -> tuple[list[object], str]:
    """Return the entries of a YAML or JSON script file, and the model name in it.

    Raises:
        ScriptError: the file cannot be read, or is neither a list nor a mapping with `replies`.
    """
    script = _load_file(path)
    if not isinstance(script, list | Mapping):
        raise ScriptError(
            f"{path}: expected a list of replies, or a mapping with the keys 'replies' and "
            f"'model', found {type(script).__name__}. Fix: write a '- text: …' for each reply."
        )
    if isinstance(script, list):
        return cast("list[object]", script), "scripted"
    fields = _read(cast("object", script), _Script, str(path))
    return fields.replies, fields.model


def ready_reply(entry: object, place: str, model: str) -> ReadyReply:
    """Convert a script `entry` to a ready reply that names `model` as its model.

    Raises:
        ScriptError: the entry is not a valid reply; the message names `place`.
    """
    if isinstance(entry, Reply):
        return ReadyReply(_deltas_of(entry), entry)
    if not isinstance(entry, str | Mapping):
        raise ScriptError(
            f"{place}: expected a text, a mapping of {', '.join(_Entry.__struct_fields__)}, or a "
            f"Reply, found {entry!r:.{SHOWN_CHARS}}. Fix: quote it if it is text."
        )
    if isinstance(entry, str):
        return _make_ready(_Entry(entry), place, model)
    return _make_ready(_read(cast("object", entry), _Entry, place), place, model)


def _read(fields: object, kind: type[T], place: str) -> T:
    try:
        return convert(fields, kind)
    except (ValidationError, TypeError) as error:
        keys = ", ".join(cast("tuple[str, ...]", getattr(kind, "__struct_fields__", ())))
        raise ScriptError(
            f"{place}: {error}. Fix: write a mapping of {keys}, and quote each text."
        ) from error


def _make_ready(entry: _Entry, place: str, model: str) -> ReadyReply:
    to = (entry.to,) if isinstance(entry.to, str) else None if entry.to is None else tuple(entry.to)
    pieces = _words(entry.text) if entry.deltas is None else entry.deltas
    text = "".join(pieces)
    if entry.text not in {"", text}:
        raise ScriptError(
            f"{place}: expected deltas that make up the text {entry.text!r:.{SHOWN_CHARS}}, found "
            f"{text!r:.{SHOWN_CHARS}}. "
            "Fix: leave one of the two out."
        )
    message = AssistantMessage(
        _parts_of_entry(entry, text, place), entry.wire, entry.extra, entry.service
    )
    deltas: tuple[Delta, ...] = (
        *(ReasoningDelta(word) for word in _words(message.reasoning)),
        *(TextDelta(piece) for piece in pieces or _words(message.text)),
        *_media_deltas(message.media),
        *_call_deltas(message.calls),
    )
    if entry.error is not None:
        if entry.usage is not None or entry.finish_reason is not None:
            raise ScriptError(
                f"{place}: expected neither 'usage' nor 'finish_reason' beside 'error', found one. "
                "Fix: leave it out, for a reply that fails has none."
            )
        return ReadyReply(deltas, _make_failure(entry.error, place), to, entry.asked)
    calls = message.calls
    words = len(_words(message.reasoning + message.text))
    usage = Usage(INPUT_TOKENS, words + CALL_TOKENS * len(calls))
    if entry.usage is not None:
        usage = _make_usage(entry.usage, place)
    reason = entry.finish_reason or (FinishReason.TOOL_CALLS if calls else FinishReason.STOP)
    raw = entry.raw_finish_reason or reason.value
    reply = Reply(message, reason, usage, raw, entry.model or model, entry.metadata)
    return ReadyReply(deltas, reply, to, entry.asked)


def _parts_of_entry(entry: _Entry, text: str, place: str) -> tuple[AssistantPart, ...]:
    calls = [_make_call(call, at, f"{place}, calls[{at}]") for at, call in enumerate(entry.calls)]
    media = [_make_medium(each, f"{place}, media[{at}]") for at, each in enumerate(entry.media)]
    if entry.parts and (entry.reasoning or text or media or calls):
        raise ScriptError(
            f"{place}: expected 'parts' without 'reasoning', 'text', 'media' and 'calls', found "
            "one of them. Fix: leave it out."
        )
    reasoning = (ReasoningPart(entry.reasoning),) if entry.reasoning else ()
    said = (TextPart(text),) if text else ()
    return (*entry.parts, *reasoning, *said, *media, *calls)


def _make_failure(error: str | _Error, place: str) -> ProviderError:
    if isinstance(error, str):
        return BadReply(error)
    kind: object = getattr(errors, error.type, None)
    if not (isinstance(kind, type) and issubclass(kind, ProviderError)):
        raise ScriptError(
            f"{place}, error: expected the name of a ProviderError as 'type', found "
            f"{error.type!r}. Fix: name one of graphloop.errors, such as RateLimited."
        )
    failure = kind(error.message)
    failure.status, failure.retry_after_s = error.status, error.retry_after_s
    return failure


def _make_usage(counts: dict[str, int], place: str) -> Usage:
    known = [*COUNTS, *UsageDetails.__struct_fields__]
    if not counts.keys() <= set(known) or min(counts.values(), default=0) < 0:
        raise ScriptError(
            f"{place}, usage: expected counts of 0 or more of {', '.join(known)}, found {counts!r}."
            " Fix: leave the others out."
        )
    details = {name: count for name, count in counts.items() if name not in COUNTS}
    main = {name: count for name, count in counts.items() if name in COUNTS}
    return Usage(**main, details=details_of(**details))


def _make_medium(url: str, place: str) -> MediaPart:
    """Return a picture or sound from its data URL, or a picture from another URL."""
    try:
        return file(url) if url.startswith("data:") else image(url)
    except ConfigError as error:
        raise ScriptError(f"{place}: {error}") from error


def _make_call(call: _Call, at: int, place: str) -> ToolCall:
    arguments = call.arguments
    if not isinstance(arguments, str):
        try:
            arguments = json.dumps(arguments, ensure_ascii=False)
        except (TypeError, ValueError) as error:
            raise ScriptError(
                f"{place}, arguments: expected JSON values, found: {error}. "
                "Fix: quote it (YAML reads 2024-01-31 as a date)."
            ) from error
    return ToolCall(f"call_{at}" if call.id is None else call.id, call.name, arguments)


def _text_of(message: Message) -> str:
    """Return the text of a message of any role, without images, files and reasoning."""
    match message:
        case AssistantMessage() | ToolResult():
            return message.text
        case _ if isinstance(message.content, str):
            return message.content
        case _:
            return "\n".join(part.text for part in message.content if isinstance(part, TextPart))


def _load_file(path: Path) -> object:
    try:
        text = path.read_text(encoding="utf-8")
        return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except OSError as error:
        raise ScriptError(
            f"{path}: expected a script in YAML or JSON, but it cannot be read "
            f"({error.strerror}). Check the path after 'script:'."
        ) from error
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        # The error quotes no content, because the path may point to a file with secrets.
        flaw = getattr(error, "problem", None) or getattr(error, "msg", type(error).__name__)
        mark = getattr(error, "problem_mark", None)
        line = getattr(error, "lineno", 0) if mark is None else mark.line + 1
        where = f" on line {line}" if line else ""
        raise ScriptError(f"{path}: expected YAML or JSON in UTF-8, found: {flaw}{where}") from None


def _deltas_of(reply: Reply) -> tuple[Delta, ...]:
    message = reply.message
    reasoning, text = message.reasoning, message.text
    return (
        *((ReasoningDelta(reasoning),) if reasoning else ()),
        *((TextDelta(text),) if text else ()),
        *_media_deltas(message.media),
        *_call_deltas(message.calls),
    )


def _media_deltas(media: Iterable[MediaPart]) -> tuple[MediaDelta, ...]:
    return tuple(
        MediaDelta(index, part.media_type, base64_text(part.source))
        for index, part in enumerate(media)
        if isinstance(part.source, Inline)
    )


def _call_deltas(calls: Iterable[ToolCall]) -> tuple[ToolCallDelta, ...]:
    return tuple(
        ToolCallDelta(index, call.id, call.name, call.arguments) for index, call in enumerate(calls)
    )
