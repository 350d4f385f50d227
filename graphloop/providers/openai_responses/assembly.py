"""Assemble the output items of a streamed Responses reply: one class for each type of item."""

from __future__ import annotations

from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
from ..text import TextJoiner
from ..wire_json import JsonObject, is_list, json_text, string_at
from .calls import CallItem
from .item import Item, piece_of, rest_of
from .items import CONTENT, PICTURE

__all__ = ["SEARCH", "SERVER_TOOLS", "new_item"]

_TEXTS: Final = {"output_text": "text", "refusal": "refusal"}
"""Maps each type of a message's content part to the field with its text."""


def new_item(start: JsonObject, counts: Counter[type[Item]]) -> Item:
    """Return the object for an item's first event.

    Args:
        start: the item, as far as the server has sent it.
        counts: the number of items of each class in the reply; this function adds the new item.
    """
    kind = string_at(start, "type")
    made = _ServerItem if kind in SERVER_TOOLS else _ITEMS.get(kind, Item)
    item = made(start, counts[made])
    if isinstance(item, _ServerItem):
        item.run = counts[_ServerItem]
    counts.update({made, *made.__bases__})
    return item


class _Text:
    """A text that grows with deltas, and may come once more as a whole."""

    def __init__(self, shown: type[TextDelta] | type[ReasoningDelta]) -> None:
        self.joiner = TextJoiner()
        self.fields: JsonObject = {}
        self._shown = shown

    def push(self, piece: str) -> Sequence[Delta]:
        return self._show(self.joiner.push(piece) if piece else "")

    def whole(self, text: str) -> Sequence[Delta]:
        """Take the whole text, which shows whether its deltas were complete."""
        return self.push(rest_of(text, self.joiner.text))

    def flush(self) -> Sequence[Delta]:
        return self._show(self.joiner.flush())

    def _show(self, text: str) -> Sequence[Delta]:
        return (self._shown(text),) if text else ()


@final
class _MessageItem(Item):
    """A message of the model: texts and refusals, by their index."""

    is_shown = True

    def __init__(self, start: JsonObject, index: int) -> None:
        super().__init__(start, index)
        self._texts: dict[int, _Text] = {}

    def text_at(self, index: object) -> TextJoiner:
        return self._text(index).joiner

    def _text(self, index: object) -> _Text:
        """Return the text at an index; the latest one if the server sends no index."""
        at = index if isinstance(index, int) else max(self._texts, default=0)
        return self._texts.setdefault(at, _Text(TextDelta))

    def push(self, kind: str, event: JsonObject) -> Sequence[Delta]:
        part = kind.partition(".")[0]
        if kind == "content_part.added" and event.get("content_index") is None:
            self._text(len(self._texts))
        if part not in _TEXTS:
            return ()
        text = self._text(event.get("content_index"))
        if part == "refusal":
            text.fields["type"] = "refusal"
        if kind.endswith(".delta"):
            return text.push(piece_of(event))
        if kind.endswith(".done"):
            return text.whole(string_at(event, _TEXTS[part]))
        return ()

    def done(self, item: JsonObject) -> Sequence[Delta]:
        super().done(item)
        content: object = item.get("content") or []
        shown: list[Delta] = []
        for index, part in enumerate(content if is_list(content) else ()):
            field = _TEXTS.get(part["type"])
            if field is None:
                continue
            text = self._text(index)
            shown += text.whole(string_at(part, field))
            text.fields = {key: part[key] for key in part if key not in {field, "logprobs"}}
        return shown

    def flush(self) -> Sequence[Delta]:
        return [delta for text in self._texts.values() for delta in text.flush()]

    def parts(self) -> Iterable[AssistantPart]:
        about = self.fields_without("type", "role", CONTENT)
        if about.get("status") == "completed":
            del about["status"]
        for _, text in sorted(self._texts.items()):
            fields = {key: value for key, value in text.fields.items() if value not in (None, [])}
            if fields.get("type") == "output_text":
                del fields["type"]
            extra = {**about, CONTENT: fields} if fields else about
            yield TextPart(text.joiner.text, json_text(extra) if extra else "")

    @property
    def is_refusal(self) -> bool:
        return any(text.fields.get("type") == "refusal" for text in self._texts.values())


@final
class _ReasoningItem(Item):
    """The model's reasoning: a readable summary or text, and an encrypted form for the server."""

    is_shown = True

    def __init__(self, start: JsonObject, index: int) -> None:
        super().__init__(start, index)
        self._text = _Text(ReasoningDelta)
        self._source = ""
        self._index: object = None

    def push(self, kind: str, event: JsonObject) -> Sequence[Delta]:
        source, _, step = kind.partition(".")
        if step != "delta" or source not in {"reasoning_summary_text", "reasoning_text"}:
            return ()
        index = event.get("summary_index", event.get("content_index"))
        return self._add(source, index, piece_of(event))

    def _add(self, source: str, index: object, text: str) -> Sequence[Delta]:
        # A server may send both a summary and the text; only the kind that came first is shown.
        self._source = self._source or source
        if source != self._source:
            return ()
        gap = "\n\n" if self._index is not None and index != self._index else ""
        self._index = index
        return self._text.push(gap + text)

    def done(self, item: JsonObject) -> Sequence[Delta]:
        super().done(item)
        if self._source:
            return ()
        shown: list[Delta] = []
        for source, name in (("reasoning_summary_text", "summary"), ("reasoning_text", CONTENT)):
            pieces: object = item.get(name)
            for index, piece in enumerate(pieces if is_list(pieces) else ()):
                shown += self._add(source, index, string_at(piece, "text"))
        return shown

    def flush(self) -> Sequence[Delta]:
        return self._text.flush()

    def parts(self) -> Iterable[AssistantPart]:
        signature = string_at(self.fields, "encrypted_content")
        extra = self.fields_without("type", "encrypted_content", "status")
        return (ReasoningPart(self._text.joiner.text, signature, "", json_text(extra)),)


class _ServerItem(Item):
    """A run of one of the server's own tools, which stays opaque.

    Attributes:
        run: the position among the server's runs of tools, from 0.
    """

    run = 0

    @property
    def _name(self) -> str:
        kind = string_at(self.fields, "type")
        return string_at(self.fields, "name") if kind == "mcp_call" else kind.removesuffix("_call")

    def opened(self) -> Sequence[Delta]:
        return self._state("started")

    def push(self, kind: str, event: JsonObject) -> Sequence[Delta]:  # noqa: ARG002 - its name tells
        step = kind.rpartition(".")[2]
        return self._state("running") if step in _RUNNING else ()

    def done(self, item: JsonObject) -> Sequence[Delta]:
        super().done(item)
        failed = item.get("status") in {"failed", "incomplete"} or item.get("error")
        return self._state("failed" if failed else "done")

    def _state(self, state: ProviderToolState) -> Sequence[Delta]:
        return (ProviderToolDelta(self.run, self._name, state),)


@final
class _PictureItem(_ServerItem):
    """A picture that the model makes; the server sends previews first."""

    def push(self, kind: str, event: JsonObject) -> Sequence[Delta]:
        if kind != f"{PICTURE}.partial_image":
            return super().push(kind, event)
        preview = string_at(event, "partial_image_b64")
        return (MediaDelta(self.index, self._media_type(event), preview, preview=True),)

    def done(self, item: JsonObject) -> Sequence[Delta]:
        shown = super().done(item)
        data = string_at(item, "result")
        return (*shown, MediaDelta(self.index, self._media_type(item), data)) if data else shown

    def parts(self) -> Iterable[AssistantPart]:
        try:
            data = b64decode(string_at(self.fields, "result"), validate=True)
        except ValueError:
            data = b""
        if not data:
            return super().parts()
        extra = self.fields_without("type", "result")
        media_type = self._media_type(self.fields)
        return (MediaPart(media_type, Inline(data), extra=json_text(extra)),)

    def _media_type(self, fields: JsonObject) -> str:
        return f"image/{string_at(fields, 'output_format') or 'png'}"


_ITEMS: Final[Mapping[str, type[Item]]] = {
    "message": _MessageItem,
    "reasoning": _ReasoningItem,
    "function_call": CallItem,
    PICTURE: _PictureItem,
}

SEARCH: Final = "web_search_call"
SERVER_TOOLS: Final = frozenset({SEARCH, "file_search_call", "code_interpreter_call", "mcp_call"})

_RUNNING: Final = frozenset({"searching", "interpreting", "generating"})
"""The last words of the events that say that a tool of the server runs."""
