"""Content blocks of a streamed turn, each assembled from its deltas.

A block knows its start, takes any number of deltas, and becomes a part. Blocks may overlap, so no
block knows of others. Unknown fields are kept as JSON. A field of the wrong type raises TypeError,
KeyError or AttributeError; the decoder reports it.
"""

from __future__ import annotations

from typing import final

from ...values import AssistantPart, OpaquePart, ReasoningPart, TextPart, ToolCall
from ..base import Delta, ReasoningDelta, TextDelta, ToolCallDelta
from ..text import TextJoiner, whole_text
from ..wire_json import JsonObject, is_list, is_object_text, json_text, object_or_empty

__all__ = ["Block", "new_block", "string"]


def new_block(start: JsonObject, calls: int) -> Block:
    """Return the assembly of a block; `calls` counts the calls before it."""
    match start["type"]:
        case "text":
            return _TextBlock(start)
        case "thinking":
            return _ThinkingBlock(start)
        case "redacted_thinking":
            return _RedactedBlock(start)
        case "tool_use":
            return _CallBlock(start, calls)
        case _:
            return Block(start)


def string(fields: JsonObject, key: str) -> str:
    """Return the string at `key`; absent and null are empty."""
    value = fields.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{key}: expected a string, found {value!r}")
    return whole_text(value)


class Block:
    """A block under assembly; this class keeps blocks of unknown kinds.

    Such blocks are server tools and their results, fallbacks, and new kinds.

    Attributes:
        is_call: whether it is a call of a tool that runs here.
        is_shown: whether it has a form outside of this wire.
        text: its text, where all deltas of one kind only extend it.
    """

    is_call = False
    is_shown = False
    text: TextJoiner | None = None

    def __init__(self, start: JsonObject) -> None:
        self.start = dict(start)
        self.joiner = TextJoiner()

    @property
    def is_whole(self) -> bool:
        """Whether its end has come, or nothing can be missing."""
        return True

    def opened(self) -> Delta | None:
        """Return the delta of the block's start."""
        return None

    def push(self, delta: JsonObject) -> Delta | None:
        """Take a delta; return the delta to show."""
        if delta["type"] == "input_json_delta":
            self.joiner.push(delta["partial_json"])
            return None
        for key, value in delta.items():
            if key != "type" and value is not None:
                self.start[key] = _merged(self.start.get(key), value)
        return None

    def closed(self) -> Delta | None:
        """End the block; return its last delta. A second call returns none."""
        self.joiner.flush()
        return None

    def part(self) -> AssistantPart:
        """Return the whole block."""
        arguments, fields = self.joiner.text, self.start
        if not arguments:
            return OpaquePart(json_text(fields))
        fields = {key: value for key, value in fields.items() if key != "input"}
        return OpaquePart(f'{json_text(fields)[:-1]},"input":{object_or_empty(arguments)}}}')

    def unknown_fields(self, *known: str) -> str:
        """Return the fields that are not `known` as JSON text."""
        fields = self.start.items()
        more = {key: value for key, value in fields if key not in known and value is not None}
        return json_text(more) if more else ""


class _Prose(Block):
    """Text or thinking: a field that grows by deltas of its name."""

    is_shown = True
    field: str
    shown: type[TextDelta] | type[ReasoningDelta]

    def opened(self) -> Delta | None:
        return self._show(self.joiner.push(string(self.start, self.field)))

    def push(self, delta: JsonObject) -> Delta | None:
        if delta["type"] == f"{self.field}_delta":
            return self._show(self.joiner.push(delta[self.field]))
        self.take_beside(delta)
        return None

    def closed(self) -> Delta | None:
        return self._show(self.joiner.flush())

    def take_beside(self, delta: JsonObject) -> None:
        """Take a delta of another kind."""

    def _show(self, text: str) -> Delta | None:
        return self.shown(text) if text else None


@final
class _TextBlock(_Prose):
    field = "text"
    shown = TextDelta

    def __init__(self, start: JsonObject) -> None:
        super().__init__(start)
        self.text = self.joiner

    def take_beside(self, delta: JsonObject) -> None:
        if delta["type"] == "citations_delta":
            if not is_list(self.start.get("citations")):
                self.start["citations"] = list[object]()
            self.start["citations"].append(delta["citation"])

    def part(self) -> TextPart:
        return TextPart(self.joiner.text, self.unknown_fields("type", "text"))


@final
class _ThinkingBlock(_Prose):
    field = "thinking"
    shown = ReasoningDelta

    def __init__(self, start: JsonObject) -> None:
        super().__init__(start)
        self._signature = string(start, "signature")

    def take_beside(self, delta: JsonObject) -> None:
        if delta["type"] == "signature_delta":
            self._signature = string(delta, "signature")

    def part(self) -> ReasoningPart:
        extra = self.unknown_fields("type", "thinking", "signature")
        return ReasoningPart(self.joiner.text, self._signature, "", extra)


@final
class _RedactedBlock(Block):
    is_shown = True

    def __init__(self, start: JsonObject) -> None:
        super().__init__(start)
        self._data = string(start, "data")

    def push(self, delta: JsonObject) -> Delta | None:  # noqa: ARG002 - it has no deltas
        return None

    def part(self) -> AssistantPart:
        # Without data it would look like thinking, so it stays opaque.
        extra = self.unknown_fields("type", "data")
        return ReasoningPart("", "", self._data, extra) if self._data else super().part()


@final
class _CallBlock(Block):
    """A call; its arguments stay the text of the model."""

    is_call = is_shown = True

    def __init__(self, start: JsonObject, index: int) -> None:
        super().__init__(start)
        self._index = index
        self._id = string(start, "id")
        self._name = string(start, "name")
        self._closed = False

    @property
    def is_whole(self) -> bool:
        return self._closed or is_object_text(self.joiner.text)

    def opened(self) -> Delta:
        return ToolCallDelta(self._index, self._id, self._name, "")

    def push(self, delta: JsonObject) -> Delta | None:
        if delta["type"] != "input_json_delta":
            return None
        return self._show(self.joiner.push(delta["partial_json"]))

    def closed(self) -> Delta | None:
        if self._closed:
            return None
        self._closed = True
        rest = self.joiner.flush()
        return self._show(rest if self.joiner.text else self._arguments())

    def part(self) -> ToolCall:
        extra = self.unknown_fields("type", "id", "name", "input")
        return ToolCall(self._id, self._name, self._arguments(), extra)

    def _arguments(self) -> str:
        whole = self.start.get("input")
        return self.joiner.text or (json_text(whole) if whole else "{}")

    def _show(self, arguments: str) -> Delta | None:
        return ToolCallDelta(self._index, "", "", arguments) if arguments else None


def _merged(old: object, new: object) -> object:
    if isinstance(old, str) and isinstance(new, str):
        return old + new
    if is_list(old) and is_list(new):
        return [*old, *new]
    return new
