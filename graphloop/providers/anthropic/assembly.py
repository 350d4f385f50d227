"""Assemble the content blocks of a streamed Anthropic reply from their deltas.

Each block takes its start event and any number of deltas, and becomes one message part. Events of
several blocks may interleave, so each block keeps its own state. Unknown fields are kept as JSON.
A field of the wrong type raises TypeError, KeyError or AttributeError; the decoder converts these
errors to `BadReply`.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Final, TypeAlias, final

from ...values import AssistantPart, OpaquePart, ReasoningPart, TextPart, ToolCall
from ..base import Delta, ProviderToolDelta, ReasoningDelta, TextDelta, ToolCallDelta
from ..text import TextJoiner
from ..wire_json import (
    JsonObject,
    is_list,
    is_object,
    is_object_text,
    json_text,
    object_or_empty,
    string_at,
)

__all__ = ["Block", "ServerRuns", "new_block"]

ServerRuns: TypeAlias = MutableMapping[str, tuple[int, str]]
"""The index and the name of each tool run of the server, by the id of its call."""

CALL: Final = "_tool_use"
RESULT: Final = "_tool_result"


def new_block(start: JsonObject, calls: int, server_runs: ServerRuns) -> Block:
    """Return the block object for a start event.

    Args:
        start: the content block of the event.
        calls: the number of earlier tool calls.
        server_runs: the earlier tool runs of the server; a new run is added.
    """
    kind = string_at(start, "type")
    if kind == "tool_use":
        return _CallBlock(start, calls)
    if kind.endswith(CALL):
        return _ServerCallBlock(start, server_runs)
    if kind.endswith(RESULT):
        return _ServerResultBlock(start, server_runs)
    return _BLOCKS.get(kind, Block)(start)


class Block:
    """A content block being assembled; this base class keeps block types without a subclass.

    Such blocks are fallbacks and unknown types.

    Attributes:
        is_call: whether the block is a tool call that the model's server does not run itself.
        is_shown: whether other wire formats can represent the block.
        text: the joiner that each `text_delta` of a text block extends; None for other blocks.
    """

    is_call = False
    is_shown = False
    text: TextJoiner | None = None

    def __init__(self, start: JsonObject) -> None:
        self.start = dict(start)
        self.joiner = TextJoiner()

    @property
    def is_whole(self) -> bool:
        """Whether the block is complete; only a tool call can be incomplete."""
        return True

    def opened(self) -> Delta | None:
        """Return the delta to show when the block starts, or None."""
        return None

    def push(self, delta: JsonObject) -> Delta | None:
        """Add a delta from the stream; return the delta to show to listeners, or None."""
        if delta["type"] == "input_json_delta":
            self.joiner.push(delta["partial_json"])
            return None
        for key, value in delta.items():
            if key != "type" and value is not None:
                self.start[key] = _merge(self.start.get(key), value)
        return None

    def closed(self) -> Delta | None:
        """End the block; return the last delta to show, or None. A second call returns None."""
        self.joiner.flush()
        return None

    def part(self) -> AssistantPart:
        """Return the assembled block as a message part."""
        arguments, fields = self.joiner.text, self.start
        if not arguments:
            return OpaquePart(json_text(fields))
        fields = {key: value for key, value in fields.items() if key != "input"}
        return OpaquePart(f'{json_text(fields)[:-1]},"input":{object_or_empty(arguments)}}}')

    def unknown_fields(self, *known: str) -> str:
        """Return the block's fields, except `known` and null fields, as JSON text or empty text."""
        fields = self.start.items()
        more = {key: value for key, value in fields if key not in known and value is not None}
        return json_text(more) if more else ""


class _Prose(Block):
    """A text or thinking block, whose main field (`field`) grows with each `<field>_delta`."""

    is_shown = True
    field: str
    shown: type[TextDelta] | type[ReasoningDelta]

    def opened(self) -> Delta | None:
        return self._show(self.joiner.push(string_at(self.start, self.field)))

    def push(self, delta: JsonObject) -> Delta | None:
        if delta["type"] == f"{self.field}_delta":
            return self._show(self.joiner.push(delta[self.field]))
        self.take_beside(delta)
        return None

    def closed(self) -> Delta | None:
        return self._show(self.joiner.flush())

    def take_beside(self, delta: JsonObject) -> None:
        """Handle a delta that does not extend the main field."""

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
        self._signature = string_at(start, "signature")

    def take_beside(self, delta: JsonObject) -> None:
        if delta["type"] == "signature_delta":
            self._signature = string_at(delta, "signature")

    def part(self) -> ReasoningPart:
        extra = self.unknown_fields("type", "thinking", "signature")
        return ReasoningPart(self.joiner.text, self._signature, "", extra)


@final
class _RedactedBlock(Block):
    is_shown = True

    def __init__(self, start: JsonObject) -> None:
        super().__init__(start)
        self._data = string_at(start, "data")

    def push(self, delta: JsonObject) -> Delta | None:  # noqa: ARG002 - it has no deltas
        return None

    def part(self) -> AssistantPart:
        # A `ReasoningPart` without data would look like thinking, so an empty block stays opaque.
        extra = self.unknown_fields("type", "data")
        return ReasoningPart("", "", self._data, extra) if self._data else super().part()


@final
class _CallBlock(Block):
    """A tool call block; its arguments stay the JSON text that the model wrote."""

    is_call = is_shown = True

    def __init__(self, start: JsonObject, index: int) -> None:
        super().__init__(start)
        self._index = index
        self._id = string_at(start, "id")
        self._name = string_at(start, "name")
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


@final
class _ServerCallBlock(Block):
    """The call of a tool that the server runs itself, such as a web search."""

    def __init__(self, start: JsonObject, server_runs: ServerRuns) -> None:
        super().__init__(start)
        self._name = string_at(start, "name")
        self._index = len(server_runs)
        self._closed = False
        server_runs[string_at(start, "id") or f"#{self._index}"] = self._index, self._name

    def opened(self) -> Delta:
        return ProviderToolDelta(self._index, self._name, "started")

    def closed(self) -> Delta | None:
        super().closed()
        if self._closed:
            return None
        self._closed = True
        arguments = self.joiner.text or json_text(self.start.get("input") or {})
        return ProviderToolDelta(self._index, self._name, "running", arguments)


@final
class _ServerResultBlock(Block):
    """The result of a tool that the server has run; a paused turn has sent its call earlier."""

    def __init__(self, start: JsonObject, server_runs: ServerRuns) -> None:
        super().__init__(start)
        call_id = string_at(start, "tool_use_id")
        unknown = len(server_runs), string_at(start, "type").removesuffix(RESULT)
        self._index, self._name = server_runs.setdefault(call_id, unknown)

    def opened(self) -> Delta:
        content = self.start.get("content")
        refused = is_object(content) and string_at(content, "type").endswith("_error")
        failed = refused or self.start.get("is_error") is True
        return ProviderToolDelta(self._index, self._name, "failed" if failed else "done")


_BLOCKS: Final[Mapping[str, type[Block]]] = {
    "text": _TextBlock,
    "thinking": _ThinkingBlock,
    "redacted_thinking": _RedactedBlock,
}


def _merge(old: object, new: object) -> object:
    if isinstance(old, str) and isinstance(new, str):
        return old + new
    if is_list(old) and is_list(new):
        return [*old, *new]
    return new
