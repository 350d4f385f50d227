"""Content blocks of a streamed Anthropic turn, each assembled from its own deltas.

A block knows its start, takes any number of deltas, and becomes a part. Blocks may overlap, so no
block knows of others. Unknown fields are kept as JSON.
A field of the wrong type raises TypeError, KeyError or AttributeError; the decoder reports it.
"""

from __future__ import annotations

from typing import Protocol, final

from ...values import AssistantPart, OpaquePart, ReasoningPart, TextPart, ToolCall
from ..base import Delta, ReasoningDelta, TextDelta, ToolCallDelta
from ..text import TextJoiner, whole_text
from ..wire_json import JsonObject, is_list, is_object_text, json_text, object_or_empty

__all__ = ["Block", "CallBlock", "OpaqueBlock", "TextBlock", "string", "text_or_thinking"]


class Block(Protocol):
    """A content block under assembly."""

    def opened(self) -> Delta | None:
        """Return the deltas of the block's start."""
        ...

    def push(self, delta: JsonObject) -> Delta | None:
        """Take a delta; return the deltas to show."""
        ...

    def closed(self) -> Delta | None:
        """End the block; return its remaining deltas. A second call returns none."""
        ...

    def part(self) -> AssistantPart:
        """Return the whole block."""
        ...


def text_or_thinking(start: JsonObject) -> Block | None:
    """Return the assembly of a block of text or thinking, or None."""
    match start.get("type"):
        case "text":
            return TextBlock(start)
        case "thinking":
            return _ThinkingBlock(start)
        case "redacted_thinking":
            return _RedactedBlock(start)
        case _:
            return None


def string(fields: JsonObject, key: str) -> str:
    """Return the string at `key`, in whole characters; absent and null are the empty string."""
    value = fields.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{key}: expected a string, found {value!r}")
    return whole_text(value)


@final
class TextBlock:
    """Text that the model wrote, with its citations."""

    def __init__(self, start: JsonObject) -> None:
        self._start = start
        self.joiner = TextJoiner()
        self._citations: list[object] = []

    def opened(self) -> Delta | None:
        """Return the text that the start already holds."""
        return self._shown(self.joiner.push(string(self._start, "text")))

    def push(self, delta: JsonObject) -> Delta | None:
        """Take one delta; return the text it shows."""
        kind = delta["type"]
        if kind == "text_delta":
            return self._shown(self.joiner.push(delta["text"]))
        if kind == "citations_delta":
            self._citations.append(delta["citation"])
        return None

    def closed(self) -> Delta | None:
        """End the text; return the half of a character that no delta has shown."""
        return self._shown(self.joiner.flush())

    def part(self) -> TextPart:
        """Return the whole text."""
        fields = dict(self._start)
        if self._citations:
            known = fields.get("citations")
            fields["citations"] = [*(known if is_list(known) else ()), *self._citations]
        return TextPart(self.joiner.text, _extra(fields, "type", "text"))

    def _shown(self, text: str) -> Delta | None:
        return TextDelta(text) if text else None


@final
class _ThinkingBlock:
    def __init__(self, start: JsonObject) -> None:
        self._start = start
        self._joiner = TextJoiner()
        self._signature = string(start, "signature")

    def opened(self) -> Delta | None:
        return self._shown(self._joiner.push(string(self._start, "thinking")))

    def push(self, delta: JsonObject) -> Delta | None:
        kind = delta["type"]
        if kind == "thinking_delta":
            return self._shown(self._joiner.push(delta["thinking"]))
        if kind == "signature_delta":
            self._signature = string(delta, "signature")
        return None

    def closed(self) -> Delta | None:
        return self._shown(self._joiner.flush())

    def part(self) -> ReasoningPart:
        extra = _extra(self._start, "type", "thinking", "signature")
        return ReasoningPart(self._joiner.text, self._signature, "", extra)

    def _shown(self, text: str) -> Delta | None:
        return ReasoningDelta(text) if text else None


@final
class _RedactedBlock:
    def __init__(self, start: JsonObject) -> None:
        self._start = start
        self._data = string(start, "data")

    def opened(self) -> Delta | None:
        return None

    def push(self, delta: JsonObject) -> Delta | None:  # noqa: ARG002 - it has no deltas
        return None

    def closed(self) -> Delta | None:
        return None

    def part(self) -> AssistantPart:
        extra = _extra(self._start, "type", "data")
        # Without data it would look like thinking, so it stays opaque.
        return ReasoningPart("", "", self._data, extra) if self._data else _opaque(self._start)


@final
class CallBlock:
    """A call of a tool that is not Anthropic's own; its arguments stay the text of the model."""

    def __init__(self, start: JsonObject, index: int) -> None:
        self._start = start
        self._index = index
        self._id = string(start, "id")
        self._name = string(start, "name")
        self._joiner = TextJoiner()
        self._closed = False

    def opened(self) -> Delta:
        """Return the delta that names the call."""
        return ToolCallDelta(self._index, self._id, self._name, "")

    def push(self, delta: JsonObject) -> Delta | None:
        """Take one delta; return the piece of arguments it shows."""
        if delta["type"] != "input_json_delta":
            return None
        return self._shown(self._joiner.push(delta["partial_json"]))

    def closed(self) -> Delta | None:
        """End the call; return the arguments that no delta has shown."""
        if self._closed:
            return None
        self._closed = True
        rest = self._joiner.flush()
        return self._shown(rest if self._joiner.text else self._arguments())

    @property
    def is_whole(self) -> bool:
        """Whether its end has come, or its arguments are a whole object."""
        return self._closed or is_object_text(self._joiner.text)

    def part(self) -> ToolCall:
        """Return the call, its arguments valid or not."""
        extra = _extra(self._start, "type", "id", "name", "input")
        return ToolCall(self._id, self._name, self._arguments(), extra)

    def _arguments(self) -> str:
        whole = self._start.get("input")
        return self._joiner.text or (json_text(whole) if whole else "{}")

    def _shown(self, arguments: str) -> Delta | None:
        return ToolCallDelta(self._index, "", "", arguments) if arguments else None


@final
class OpaqueBlock:
    """A block only this wire understands: server tools and their results, fallbacks, new kinds."""

    def __init__(self, start: JsonObject) -> None:
        self._fields = dict(start)
        self._input = TextJoiner()

    def opened(self) -> Delta | None:
        """Return nothing: such a block is not shown."""
        return None

    def push(self, delta: JsonObject) -> Delta | None:
        """Merge the delta's fields: text and lists grow, everything else is replaced."""
        if delta["type"] == "input_json_delta":
            self._input.push(delta["partial_json"])
            return None
        for key, value in delta.items():
            if key != "type" and value is not None:
                self._fields[key] = _merged(self._fields.get(key), value)
        return None

    def closed(self) -> Delta | None:
        """Return nothing: such a block is not shown."""
        self._input.flush()
        return None

    def part(self) -> OpaquePart:
        """Return the block as the JSON it must go back as."""
        return _opaque(self._fields, self._input.text)


def _merged(old: object, new: object) -> object:
    if isinstance(old, str) and isinstance(new, str):
        return old + new
    if is_list(old) and is_list(new):
        return [*old, *new]
    return new


def _opaque(fields: JsonObject, arguments: str = "") -> OpaquePart:
    if not arguments:
        return OpaquePart(json_text(fields))
    fields = {key: value for key, value in fields.items() if key != "input"}
    return OpaquePart(f'{json_text(fields)[:-1]},"input":{object_or_empty(arguments)}}}')


def _extra(fields: JsonObject, *known: str) -> str:
    """Return the fields that are not `known` as JSON text; null says nothing and is left out."""
    more = {key: value for key, value in fields.items() if key not in known and value is not None}
    return json_text(more) if more else ""
