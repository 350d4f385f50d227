"""The form of a scripted reply, and the errors about it.

Defines the entries of a script, in Python or in a file. A reply is built here once, so that giving
it costs next to nothing; an error names the place, the value found, and the fix.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast, final

import yaml

from ..errors import BadReply, ScriptError, nearest
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
from .base import Delta, ReasoningDelta, TextDelta, ToolCallDelta

__all__ = ["ReadyReply", "load_script", "ready_reply"]

WIRE = "script"
REPLY_KEYS = ("text", "reasoning", "calls", "finish_reason", "usage", "error", "deltas", "to")
CALL_KEYS = ("name", "arguments", "id")
USAGE_KEYS = Usage.__struct_fields__
FILE_KEYS = ("replies", "model")
NO_ERROR_KEYS = ("finish_reason", "usage")
"""Keys of a whole reply that a failing reply cannot have."""

INPUT_TOKENS = 10
CALL_TOKENS = 5

_words = re.compile(r"\S+\s*|\s+").findall


@final
@dataclass(frozen=True, slots=True)
class ReadyReply:
    """The deltas of a stream, then its end."""

    deltas: tuple[Delta, ...]
    end: Reply | Exception
    to: tuple[str, ...] | None = None
    """The texts that its conversation must contain; None for an entry without `to`."""

    def fits(self, request: ModelRequest) -> bool:
        """Whether the conversation contains all its texts."""
        said = "\n".join(_said(message) for message in request.messages)
        return all(words in said for words in self.to or ())


def load_script(path: Path) -> tuple[list[object], str]:
    """Return the entries of a YAML or JSON file, and the name of its model.

    Raises:
        ScriptError: the file cannot be read, or is neither a list nor a mapping of `replies`.
    """
    found = _load(path)
    model = "scripted"
    if isinstance(found, Mapping):
        script = _mapping(cast("object", found), FILE_KEYS, str(path))
        model = _text(script.get("model", model), f"{path}: model")
        found = script.get("replies")
    if not isinstance(found, list):
        sort = f"a text of {len(found)} characters" if isinstance(found, str) else _shown(found)
        raise ScriptError(
            f"{path}: expected a list of replies, or a mapping with the keys 'replies' and "
            f"'model', found {sort}. Write one '- text: …' for each reply."
        )
    return cast("list[object]", found), model


def ready_reply(entry: object, place: str, model: str) -> ReadyReply:
    """Return the reply of an `entry` of a script; `model` is the model's name in it.

    Raises:
        ScriptError: the entry does not have the form of a reply.
    """
    if isinstance(entry, Reply):
        return ReadyReply(_deltas_of(entry), entry)
    if isinstance(entry, str):
        return _read({"text": entry}, place, model)
    if isinstance(entry, Mapping):
        fields_of = _mapping(cast("object", entry), REPLY_KEYS, place)
        return replace(_read(fields_of, place, model), to=_to(fields_of, place))
    raise ScriptError(
        f"{place}: expected a text, a mapping of {', '.join(REPLY_KEYS)}, or a Reply, "
        f"found {_shown(entry)}. Quote it if it is meant as text."
    )


def _read(entry: Mapping[str, object], place: str, model: str) -> ReadyReply:
    reasoning = _text(entry.get("reasoning", ""), f"{place}, reasoning")
    pieces = _pieces(entry, place)
    calls = _calls(entry.get("calls", []), f"{place}, calls")
    deltas: tuple[Delta, ...] = (
        *(ReasoningDelta(word) for word in _words(reasoning)),
        *(TextDelta(piece) for piece in pieces),
        *_call_deltas(calls),
    )
    if "error" in entry:
        return ReadyReply(deltas, _error(entry, place))
    text = "".join(pieces)
    parts: list[AssistantPart] = [ReasoningPart(reasoning)] if reasoning else []
    parts += [TextPart(text)] if text else []
    parts += calls
    usage = Usage(INPUT_TOKENS, len(_words(reasoning + text)) + CALL_TOKENS * len(calls))
    if "usage" in entry:
        usage = _usage(entry["usage"], f"{place}, usage")
    default = FinishReason.TOOL_CALLS if calls else FinishReason.STOP
    reason = _finish_reason(entry.get("finish_reason", default), f"{place}, finish_reason")
    message = AssistantMessage(tuple(parts), WIRE)
    return ReadyReply(deltas, Reply(message, reason, usage, reason.value, model))


def _to(entry: Mapping[str, object], place: str) -> tuple[str, ...] | None:
    """Return the texts of `to` of an entry, or None."""
    if "to" not in entry:
        return None
    found = entry["to"]
    listed = [found] if isinstance(found, str) else _list(found, f"{place}, to")
    return tuple([_text(one, f"{place}, to") for one in listed])


def _said(message: Message) -> str:
    """Return the text of a message."""
    match message:
        case AssistantMessage() | ToolResult():
            return message.text
        case _ if isinstance(message.content, str):
            return message.content
        case _:
            return "\n".join(one.text for one in message.content if isinstance(one, TextPart))


def _error(entry: Mapping[str, object], place: str) -> BadReply:
    for key in NO_ERROR_KEYS:
        if key in entry:
            raise ScriptError(
                f"{place}: expected no {key!r} beside 'error', for a reply that fails has none. "
                f"Leave {key!r} out."
            )
    return BadReply(_text(entry["error"], f"{place}, error"))


def _load(path: Path) -> object:
    try:
        text = path.read_text(encoding="utf-8")
        return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except OSError as error:
        raise ScriptError(
            f"{path}: expected a script in YAML or JSON, but it cannot be read "
            f"({error.strerror}). Check the path after 'script:'."
        ) from error
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        # The error quotes nothing of the file: a given path may lead to any file.
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
        *_call_deltas(message.calls),
    )


def _call_deltas(calls: Iterable[ToolCall]) -> tuple[ToolCallDelta, ...]:
    return tuple(
        ToolCallDelta(index, call.id, call.name, call.arguments) for index, call in enumerate(calls)
    )


def _pieces(entry: Mapping[str, object], place: str) -> list[str]:
    """Return the text in the pieces in which it is streamed."""
    if "deltas" not in entry:
        return _words(_text(entry.get("text", ""), f"{place}, text"))
    found = _list(entry["deltas"], f"{place}, deltas")
    pieces = [_text(one, f"{place}, deltas[{at}]") for at, one in enumerate(found)]
    if entry.get("text", "".join(pieces)) != "".join(pieces):
        raise ScriptError(
            f"{place}: expected deltas that make up the text {entry['text']!r}, found "
            f"{''.join(pieces)!r}. Leave one of the two out."
        )
    return pieces


def _calls(found: object, place: str) -> list[ToolCall]:
    return [_call(one, at, f"{place}[{at}]") for at, one in enumerate(_list(found, place))]


def _call(found: object, at: int, place: str) -> ToolCall:
    call = _mapping(found, CALL_KEYS, place)
    if "name" not in call:
        raise ScriptError(f"{place}: expected the key 'name', found {_shown(dict(call))}.")
    arguments = call.get("arguments", {})
    if isinstance(arguments, Mapping):
        try:
            arguments = json.dumps(arguments, ensure_ascii=False)
        except (TypeError, ValueError) as error:
            raise ScriptError(
                f"{place}, arguments: expected what JSON can say, found: {error}. "
                "Quote it (YAML reads 2024-01-31 as a date)."
            ) from error
    name = _text(call["name"], f"{place}, name")
    return ToolCall(
        _text(call.get("id", f"call_{at}"), f"{place}, id"),
        name,
        _text(arguments, f"{place}, arguments"),
    )


def _usage(found: object, place: str) -> Usage:
    counts: dict[str, int] = {}
    for name, count in _mapping(found, USAGE_KEYS, place).items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise ScriptError(
                f"{place}, {name}: expected a count of tokens, found {_shown(count)}."
            )
        counts[name] = count
    return Usage(**counts)


def _finish_reason(found: object, place: str) -> FinishReason:
    reasons = [reason.value for reason in FinishReason]
    if found not in reasons:
        raise ScriptError(
            f"{place}: expected one of {', '.join(reasons)}, found {_shown(found)}."
            f"{nearest(str(found), reasons)}"
        )
    return FinishReason(found)


def _mapping(found: object, keys: tuple[str, ...], place: str) -> Mapping[str, object]:
    if not isinstance(found, Mapping):
        raise ScriptError(
            f"{place}: expected a mapping of {', '.join(keys)}, found {_shown(found)}."
        )
    checked: dict[str, object] = {}
    for key, value in cast("Mapping[object, object]", found).items():
        if not isinstance(key, str) or key not in keys:
            raise ScriptError(
                f"{place}: unknown key {key!r}, expected {', '.join(keys)}."
                f"{nearest(str(key), keys)}"
            )
        checked[key] = value
    return checked


def _list(found: object, place: str) -> list[object]:
    if not isinstance(found, list | tuple):
        raise ScriptError(f"{place}: expected a list, found {_shown(found)}.")
    return list(cast("Iterable[object]", found))


def _text(found: object, place: str) -> str:
    if not isinstance(found, str):
        raise ScriptError(f"{place}: expected text, found {_shown(found)}. Quote it.")
    return found


def _shown(found: object) -> str:
    shown = repr(found)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
