"""Decode a Responses event stream into deltas and one reply.

The decoder assembles items by their ids, since servers interleave them and leave out indexes. The
stream is a reply only after its last event: `response.completed` or `response.incomplete`. Items
that came without their own last event are read from that event.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Final, Literal, TypeAlias, final

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from ...errors import BadReply, StreamTruncated
from ...spending import UsageDetails
from ...values import AssistantMessage, AssistantPart, FinishReason, Reply, Usage
from ..base import Live, ServerEvent, TextDelta, UsageSoFar
from ..finish_words import FinishWords, meaning
from ..refusals import stream_error
from ..text import TextJoiner
from ..wire_json import (
    JsonObject,
    as_list,
    as_object,
    count_of,
    is_object,
    json_bytes,
    json_text,
    parse_object,
    quoted,
    string_at,
)
from .assembly import SEARCH, SERVER_TOOLS, new_item
from .item import Item
from .items import PICTURE, RESPONSES_WIRE, reasoning_of

__all__ = ["ResponsesDecoder", "message_of_items"]

_Shown: TypeAlias = Iterable[Live | UsageSoFar]

_METADATA: Final = ("id", "service_tier", "incomplete_details")
_LAST: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
_CONTENT: Final = frozenset({"output_text.delta", "refusal.delta", "function_call_arguments.delta"})
_NOTHING: Final = Usage()


class _More(Struct, gc=False):
    """An event that only adds text to a message."""

    type: Literal["response.output_text.delta"]
    item_id: str
    delta: str
    content_index: int = 0


# Most events only add text; decoding them as this type takes a third of the generic time.
_decode = Decoder(_More).decode


@final
class ResponsesDecoder:
    """Decodes the events of one Responses stream (see `Decoder`)."""

    def __init__(self, words: FinishWords) -> None:
        self.content_started = False
        self.complete = False
        self._words = words
        self._response: JsonObject = {}
        self._raw = self._model = ""
        self._items: list[Item] = []
        self._by_key: dict[object, Item] = {}
        self._counts: Counter[type[Item]] = Counter()
        # The items of a type and a call id, in the order of their beginnings.
        self._alike: dict[tuple[object, object], deque[Item]] = {}
        # Whether a delta came of an item that had not begun.
        self._is_early = False
        # The joiner, item id and content index that text events extend; None for no fast path.
        self._flowing: tuple[TextJoiner, str, int] | None = None

    def feed(self, event: ServerEvent) -> _Shown:
        """Decode an event; return the deltas to show, and the usage if the event reports it.

        Raises:
            BadReply: the event does not follow this wire format.
            ProviderError: the event reports a server error, which determines the subclass.
        """
        data = event.data
        if self._flowing is not None:
            joiner, item_id, index = self._flowing
            text = _more_text(data, item_id, index)
            if text is not None:
                shown = joiner.push(text) if text else ""
                return (TextDelta(shown),) if shown else ()
            self._flowing = None
        if self.complete or not data or data.startswith(b"[DONE]"):
            return ()
        return self._take(event.name, data)

    def reply(self) -> Reply:
        """Return the complete reply after the stream has ended.

        Raises:
            StreamTruncated: the stream had no last event, or the server failed.
        """
        if not self.complete:
            raise StreamTruncated(
                "expected the stream to end with response.completed, found its end after "
                f"{len(self._items)} item(s). The part that arrived is no answer; ask again."
            )
        parts: list[AssistantPart] = [part for item in self._items for part in item.parts()]
        message = AssistantMessage(tuple(parts), RESPONSES_WIRE, reasoning_of(parts))
        response, raw = self._response, self._raw
        metadata = {key: response[key] for key in _METADATA if response.get(key) is not None}
        return Reply(
            message,
            self._finish_reason(meaning(self._words, raw), message),
            _usage(response.get("usage"), self._items),
            raw,
            self._model,
            json_text(metadata) if metadata else "",
        )

    def _finish_reason(self, said: FinishReason, message: AssistantMessage) -> FinishReason:
        """Return why the reply ended; llama.cpp says "completed" of a reply that it cut."""
        if said is not FinishReason.STOP:
            return said
        if any(item.is_cut for item in self._items):
            return FinishReason.LENGTH
        if message.calls:
            return FinishReason.TOOL_CALLS
        refused = any(item.is_refusal for item in self._items)
        return FinishReason.REFUSAL if refused else said

    def _take(self, name: str, data: bytes) -> _Shown:
        """Decode an event of any type, without the fast path for text."""
        fields = parse_object(data)
        kind = fields.get("type") or name
        if kind == "error" or (fields.get("error") and "response" not in fields):
            raise stream_error(RESPONSES_WIRE, data)
        if not isinstance(kind, str) or not kind.startswith("response."):
            return ()
        try:
            if kind in _LAST:
                return self._on_last(kind, as_object(fields.get("response"), "response"))
            if kind == "response.output_item.added":
                return self._shown(self._on_added(fields["item"], fields.get("output_index")))
            if kind == "response.output_item.done":
                return self._shown(self._on_done(fields["item"], fields.get("output_index")))
            return self._shown(self._on_part(kind.removeprefix("response."), fields))
        except (AttributeError, KeyError, TypeError) as problem:
            raise BadReply(
                "expected an event of the OpenAI Responses wire, found one with a missing or "
                f"wrong field ({problem!r}): {quoted(data)}. Check that the server speaks it."
            ) from problem

    def _on_added(self, start: JsonObject, index: object) -> _Shown:
        known = self._find(start.get("id"), None)
        if known is not None and not known.is_done and _kind(known.fields) == _kind(start):
            return ()  # A gateway repeats events.
        item = new_item(start, self._counts)
        self._items.append(item)
        self._alike.setdefault(_kind(start), deque()).append(item)
        if start.get("id"):
            self._by_key[string_at(start, "id")] = item
        if isinstance(index, int):
            self._by_key[index] = item
        self.content_started |= not item.is_shown
        return item.opened()

    def _on_done(self, whole: JsonObject, index: object) -> _Shown:
        # A call without an id, or with another id than before, must not run twice.
        item = self._find(whole.get("id"), index) or self._find_open(whole)
        # A server may send only the whole item.
        opened = self._on_added(whole, index) if item is None else ()
        item = item or self._items[-1]
        return (*opened, *item.done(whole), *item.flush())

    def _find_open(self, whole: JsonObject) -> Item | None:
        """Return the first item like `whole` that is not done, if any."""
        alike = self._alike.get(_kind(whole)) or deque[Item]()
        while alike and alike[0].is_done:
            alike.popleft()
        return alike[0] if alike else None

    def _on_part(self, kind: str, fields: JsonObject) -> _Shown:
        item_id, index = fields.get("item_id"), fields.get("output_index")
        item = self._find(item_id, index)
        if item is None and item_id is None and index is None and self._items:
            item = self._items[-1]
        if item is None:
            self._is_early |= kind in _CONTENT
            return ()
        shown = item.push(kind, fields)
        text = item.text_at(fields.get("content_index")) if kind == "output_text.delta" else None
        if text is not None and isinstance(item_id, str):
            self._flowing = (text, item_id, fields.get("content_index") or 0)
        return shown

    def _find(self, item_id: object, index: object) -> Item | None:
        # Gateways change an item's id between its events, and llama.cpp sends no index.
        by_id = self._by_key.get(item_id) if isinstance(item_id, str) else None
        return by_id or (self._by_key.get(index) if isinstance(index, int) else None)

    def _on_last(self, kind: str, response: JsonObject) -> _Shown:
        self._response = response
        if response.get("error"):
            raise stream_error(RESPONSES_WIRE, json_bytes({"error": response["error"]}))
        why = as_object(response.get("incomplete_details"), "incomplete_details")
        status = string_at(response, "status") or kind.removeprefix("response.")
        self._raw, self._model = string_at(why, "reason") or status, string_at(response, "model")
        shown: list[Live | UsageSoFar] = []
        for index, whole in enumerate(as_list(response.get("output"), "response.output")):
            shown += self._take_missing(index, as_object(whole, "response.output[]"))
        for item in self._items:
            shown += item.flush()
        if self._is_early and not self._items:
            raise StreamTruncated(
                "expected the items of the reply, found only deltas: a part of the stream was "
                "lost. Fix: ask again; the reply so far is no answer."
            )
        self.complete = True
        usage = _usage(response.get("usage"), self._items)
        if usage != _NOTHING:
            shown.append(UsageSoFar(usage))
        return self._shown(shown)

    def _take_missing(self, index: int, whole: JsonObject) -> _Shown:
        """Take an item of the last event, unless the stream has sent the whole item before."""
        item = self._find(whole.get("id"), index)
        if item is None and index < len(self._items):
            item = self._items[index]
        return () if item is not None and item.is_done else self._on_done(whole, index)

    def _shown(self, shown: _Shown) -> _Shown:
        self.content_started |= any(not isinstance(item, UsageSoFar) for item in shown)
        return shown


def message_of_items(items: Sequence[JsonObject]) -> AssistantMessage:
    """Return the message of a reply with these output items, which a caller has kept.

    Raises:
        BadReply: an item does not follow this wire format.
        StreamTruncated: an item is not whole.
    """
    decoder = ResponsesDecoder({})
    response = {"status": "completed", "output": items}
    decoder.feed(ServerEvent("", json_bytes({"type": "response.completed", "response": response})))
    return decoder.reply().message


def _kind(item: JsonObject) -> tuple[object, object]:
    """Return what stays the same in an item whose id and index are unknown."""
    return item.get("type"), item.get("call_id")


def _more_text(data: bytes, item_id: str, index: int) -> str | None:
    """Return the text of an event that only adds text to this content, else None."""
    try:
        event = _decode(data)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return event.delta if event.item_id == item_id and event.content_index == index else None


def _usage(usage: object, items: Iterable[Item]) -> Usage:
    """Convert a server's `usage` object; the input count of `Usage` excludes cached tokens.

    The object does not count the tools that the server ran, which have prices of their own: of web
    searches, only actions of type `search` (https://platform.openai.com/docs/guides/tools-web-search).
    """
    if not is_object(usage):
        return _NOTHING
    ran = [item.fields for item in items if item.fields.get("type") in (*SERVER_TOOLS, PICTURE)]
    actions = [one.get("action") for one in ran if one["type"] == SEARCH]
    opened = [one for one in actions if is_object(one) and one.get("type", "search") != "search"]
    details = usage.get("input_tokens_details")
    read, written = count_of(details, "cached_tokens"), count_of(details, "cache_write_tokens")
    return Usage(
        input_tokens=max(0, count_of(usage, "input_tokens") - read - written),
        output_tokens=count_of(usage, "output_tokens"),
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=count_of(usage.get("output_tokens_details"), "reasoning_tokens"),
        server_tool_calls=len(ran),
        details=UsageDetails(web_searches=len(actions) - len(opened)),
    )
