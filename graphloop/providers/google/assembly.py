"""Assemble the parts of a streamed Gemini reply: one class for each kind of part."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from typing import Final, final

from ...media import Inline, MediaPart
from ...values import AssistantPart, ReasoningPart, TextPart
from ..base import (
    Delta,
    MediaDelta,
    ProviderToolDelta,
    ProviderToolState,
    ReasoningDelta,
    TextDelta,
)
from ..media import base64_text
from ..text import TextJoiner
from ..wire_json import JsonObject, as_object, is_object, json_text, string_at
from .calls import StreamedCall
from .contents import CALL, MEDIA, SIGNATURE
from .part import StreamedPart, fields_without

__all__ = ["new_part"]


def new_part(start: JsonObject, earlier: Sequence[StreamedPart]) -> StreamedPart | None:
    """Return the object for a part that continues no other, or None if the part is empty.

    Args:
        start: the part, as far as the server has sent it.
        earlier: the parts of the reply before this part.
    """
    fields = fields_without(start, "thought")
    if not fields or fields in _EMPTY:
        return None
    made = _class_of(start)
    if made is _ServerTool:
        return _ServerTool(start, _run_of(start, earlier))
    return made(start, sum(isinstance(part, made) for part in earlier))


_EMPTY: Final[Sequence[JsonObject]] = ({"text": ""}, {CALL: {}}, {CALL: {"args": {}}})
"""Parts that say nothing, unless they continue a call: the server ends streams with such parts."""


def _class_of(start: JsonObject) -> type[StreamedPart]:
    if isinstance(start.get("text"), str):
        return _Thought if start.get("thought") is True else _Text
    if is_object(start.get(CALL)):
        return StreamedCall
    if _bytes_of(start) and start.get("thought") is not True:
        return _Medium
    return _ServerTool if _tool_field(start) else StreamedPart


class _Text(StreamedPart):
    """A text of the answer; the pieces of a text without a signature belong together."""

    _shown: type[TextDelta] | type[ReasoningDelta] = TextDelta

    def __init__(self, start: JsonObject, index: int) -> None:
        super().__init__(start, index)
        self.joiner = TextJoiner()
        self._is_plain = not fields_without(start, "text", "thought")

    def opened(self) -> Sequence[Delta]:
        return self.push(self.fields)

    def takes(self, part: JsonObject) -> bool:
        is_text = isinstance(part.get("text"), str) and not fields_without(part, "text", "thought")
        same = (part.get("thought") is True) == (self._shown is ReasoningDelta)
        return self._is_plain and is_text and same

    def push(self, part: JsonObject) -> Sequence[Delta]:
        piece: str = part["text"]
        return self._show(self.joiner.push(piece) if piece else "")

    def flush(self) -> Sequence[Delta]:
        return self._show(self.joiner.flush())

    def _show(self, text: str) -> Sequence[Delta]:
        return (self._shown(text),) if text else ()

    def whole(self) -> AssistantPart:
        extra = fields_without(self.fields, "text")
        return TextPart(self.joiner.text, json_text(extra) if extra else "")


@final
class _Thought(_Text):
    """A summary of the model's thoughts."""

    _shown = ReasoningDelta

    def whole(self) -> AssistantPart:
        extra = fields_without(self.fields, "text", "thought", SIGNATURE)
        signature = string_at(self.fields, SIGNATURE)
        return ReasoningPart(self.joiner.text, signature, "", json_text(extra) if extra else "")


@final
class _Medium(StreamedPart):
    """A picture or a sound that the model made. The pieces of a sound belong together."""

    def __init__(self, start: JsonObject, index: int) -> None:
        super().__init__(start, index)
        self._pieces: list[bytes] = []
        self._media_type = _type_of(start)

    def opened(self) -> Sequence[Delta]:
        return self.push(self.fields)

    def takes(self, part: JsonObject) -> bool:
        is_sound = self._media_type.startswith("audio/") and self._media_type == _type_of(part)
        plain = not fields_without(part, MEDIA) and not fields_without(self.fields, MEDIA)
        return is_sound and plain and bool(_bytes_of(part))

    def push(self, part: JsonObject) -> Sequence[Delta]:
        data = _bytes_of(part)
        self._pieces.append(data)
        return (MediaDelta(self.index, self._media_type, base64_text(Inline(data))),)

    def whole(self) -> AssistantPart:
        extra = fields_without(self.fields, MEDIA)
        own = json_text(extra) if extra else ""
        return MediaPart(self._media_type, Inline(b"".join(self._pieces)), extra=own)


@final
class _ServerTool(StreamedPart):
    """A call of one of the server's own tools, or its result; both stay opaque."""

    def opened(self) -> Sequence[Delta]:
        field = _tool_field(self.fields)
        about = as_object(self.fields[field], field)
        name = string_at(about, "toolType").lower() or "code_execution"
        if field == "toolCall":
            return self._state(name, "running", json_text(about.get("args") or {}))
        if field == "executableCode":
            return self._state(name, "running", json_text(about))
        is_ok = about.get("outcome") in {None, "OUTCOME_OK"}
        return self._state(name, "done" if is_ok else "failed")

    def _state(
        self, name: str, state: ProviderToolState, arguments: str = ""
    ) -> Sequence[ProviderToolDelta]:
        return (ProviderToolDelta(self.index, name, state, arguments),)


_CALLS: Final = ("toolCall", "executableCode")
_RESULTS: Final = ("toolResponse", "codeExecutionResult")


def _tool_field(part: JsonObject) -> str:
    """Return the field of a call of the server's own tools, or of its result; empty if none."""
    return next((field for field in (*_CALLS, *_RESULTS) if is_object(part.get(field))), "")


def _run_of(start: JsonObject, earlier: Sequence[StreamedPart]) -> int:
    """Return the position of a tool's run among the runs of this reply, from 0.

    A result belongs to the call with its id, or to the latest call.
    """
    tools = [part.fields for part in earlier if isinstance(part, _ServerTool)]
    calls = [fields[field] for fields in tools if (field := _tool_field(fields)) in _CALLS]
    field = _tool_field(start)
    if field in _CALLS:
        return len(calls)
    ids: list[object] = [call.get("id") for call in calls]
    run_id: object = start[field].get("id")
    return ids.index(run_id) if run_id in ids[:-1] else max(0, len(calls) - 1)


def _type_of(part: JsonObject) -> str:
    blob = part.get(MEDIA)
    kind = blob.get("mimeType") if is_object(blob) else None
    return kind if isinstance(kind, str) else ""


def _bytes_of(part: JsonObject) -> bytes:
    """Return the bytes of a part with a media type; empty for other parts."""
    blob = part.get(MEDIA)
    data = blob.get("data") if is_object(blob) and "/" in _type_of(part) else None
    if not isinstance(data, str):
        return b""
    altchars = b"-_" if "-" in data or "_" in data else None
    try:
        return b64decode(data, altchars, validate=True)
    except ValueError:
        return b""
