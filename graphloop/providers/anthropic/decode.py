"""The decoder of the Anthropic wire: events to deltas and a reply.

Blocks are assembled by their index, for servers let them overlap. The stream is an answer only
after `message_stop`, and only if each call is whole and a stop reason came. Events before
`message_start` or after the stop are noise of proxies and are ignored; a second `message_start`
starts the answer over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal, TypeAlias, final

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from ...errors import BadReply, StreamTruncated
from ...values import AssistantMessage, FinishReason, Reply, Usage
from ..base import Delta, Live, Restarted, ServerEvent, TextDelta, UsageSoFar
from ..finish_words import FinishWords, meaning
from ..refusals import stream_error
from ..text import TextJoiner
from ..wire_json import JsonObject, count_of, is_list, is_object, json_text, parse_object, quoted
from .assembly import Block, new_block, string
from .blocks import WIRE
from .container import container_to_keep

__all__ = ["AnthropicDecoder"]

_Shown: TypeAlias = Iterable[Live | UsageSoFar]

_METADATA: Final = ("id", "stop_sequence", "stop_details", "container", "context_management")
_NOTHING: Final = Usage()


# The types are fields and no tags, for msgspec lets a tag be absent.
class _Text(Struct):
    type: Literal["text_delta"]
    text: str


class _BlockDelta(Struct):
    type: Literal["content_block_delta"]
    index: int
    delta: _Text


# Most events hold only more text: to decode them by their own types costs a third.
_decode = Decoder(_BlockDelta).decode


@final
class AnthropicDecoder:
    """Decodes the events of one stream (see `Decoder`)."""

    def __init__(self, words: FinishWords) -> None:
        self.content_started = False
        self.complete = False
        self._words = words
        # Counts all shown calls, also those of an answer that started over.
        self._calls_shown = 0
        self._handlers: dict[object, Callable[[JsonObject], _Shown]] = {
            "message_start": self._on_message_start,
            "content_block_start": self._on_block_start,
            "content_block_delta": self._on_block_delta,
            "content_block_stop": self._on_block_stop,
            "message_delta": self._on_message_delta,
            "message_stop": self._on_message_stop,
        }
        self._reset(None)

    def _reset(self, message: JsonObject | None) -> None:
        self._started = message is not None
        self._message: JsonObject = message or {}
        self._usage: JsonObject = {}
        self._blocks: list[tuple[int, Block]] = []
        self._by_index: dict[int, Block] = {}
        # The text that comes now and its block's index; None where every event must be read.
        self._flowing: TextJoiner | None = None
        self._flowing_index = 0

    def feed(self, event: ServerEvent) -> _Shown:
        """Take an event; return deltas to show, and usage if reported.

        Raises:
            BadReply: the event is not of this wire.
            ProviderError: the event reports an error, of the fitting class.
        """
        data = event.data
        if self._flowing is not None:
            text = _more_text(data, self._flowing_index)
            if text is not None:
                shown = self._flowing.push(text)
                return (TextDelta(shown),) if shown else ()
            self._flowing = None
        return () if self.complete or not data else self._take(event.name, data)

    def reply(self) -> Reply:
        """Return the whole answer.

        Raises:
            StreamTruncated: `message_stop` or a stop reason has not come.
        """
        if not self.complete:
            seen = f"{len(self._blocks)} block(s)" if self._started else "no message_start"
            raise StreamTruncated(
                f"Expected the stream to end with message_stop, found its end after {seen}. "
                "What came is not an answer; ask again."
            )
        message = self._message
        raw = string(message, "stop_reason")
        # Stable: a proxy that gives every block the same index still gets them in their order.
        blocks = sorted(self._blocks, key=lambda numbered: numbered[0])
        parts = tuple(block.part() for _, block in blocks)
        metadata = {key: message[key] for key in _METADATA if message.get(key) is not None}
        reason = meaning(self._words, raw)
        # llama.cpp says end_turn where a stop sequence ended the turn.
        if reason is FinishReason.STOP and message.get("stop_sequence") is not None:
            reason = FinishReason.STOP_SEQUENCE
        return Reply(
            AssistantMessage(parts, WIRE, container_to_keep(message.get("container"))),
            reason,
            _usage(self._usage),
            raw,
            string(message, "model"),
            json_text(metadata) if metadata else "",
        )

    def _take(self, name: str, data: bytes) -> _Shown:
        """Take an event of any kind."""
        if name == "error":
            raise stream_error(WIRE, data)
        fields = parse_object(data)
        kind = fields.get("type") or name
        try:
            handler = self._handlers.get(kind)
            if handler is not None:
                return handler(fields) if self._started or kind == "message_start" else ()
        except (AttributeError, KeyError, TypeError) as problem:
            raise BadReply(
                "Expected an event of the Anthropic Messages wire, found one with a missing or "
                f"wrong field ({problem!r}): {quoted(data)}. Check that the server speaks it."
            ) from problem
        if _is_error(name, fields):
            raise stream_error(WIRE, data)
        return ()

    def _on_message_start(self, fields: JsonObject) -> _Shown:
        if not is_object(fields["message"]):
            raise TypeError(f"message: expected an object, found {fields['message']!r}")
        message = dict(fields["message"])
        again = (Restarted(),) if self._started and self.content_started else ()
        self._reset(message)
        for key in ("id", "model", "stop_reason"):
            string(message, key)
        return (*again, *self._merge_usage(message.get("usage")))

    def _on_block_start(self, fields: JsonObject) -> _Shown:
        index, start = fields["index"], fields["content_block"]
        if not isinstance(index, int):
            raise TypeError(f"index: expected a number, found {index!r}")
        block = new_block(start, self._calls_shown)
        self._calls_shown += block.is_call
        if start["type"] == "fallback":
            self._fall_back(start)
        self.content_started |= not block.is_shown
        self._by_index[index] = block
        self._blocks.append((index, block))
        return self._shown(block.opened())

    def _fall_back(self, start: JsonObject) -> None:
        """Go on with the fallback model, without the earlier model's calls.

        The API wants neither these calls nor results for them when the turn is sent back.
        """
        self._blocks = [(at, block) for at, block in self._blocks if not block.is_call]
        successor = start.get("to")
        if is_object(successor):
            self._message["model"] = string(successor, "model")

    def _on_block_delta(self, fields: JsonObject) -> _Shown:
        index = fields["index"]
        block = self._by_index[index]
        delta = block.push(fields["delta"])
        if delta is not None:
            self._flowing, self._flowing_index = block.text, index
        return self._shown(delta)

    def _on_block_stop(self, fields: JsonObject) -> _Shown:
        return self._shown(self._by_index[fields["index"]].closed())

    def _on_message_delta(self, fields: JsonObject) -> _Shown:
        for source in (fields, fields["delta"]):
            string(source, "stop_reason")
            for key in ("stop_reason", *_METADATA):
                if source.get(key) is not None:
                    self._message[key] = source[key]
        return self._merge_usage(fields.get("usage"))

    def _on_message_stop(self, fields: JsonObject) -> _Shown:  # noqa: ARG002 - says nothing
        is_whole = all(block.is_whole for _, block in self._blocks)
        # The calls of a reply with a cut stop reason never run.
        if not is_whole and self._message.get("stop_reason") != "max_tokens":
            raise StreamTruncated(
                "tool_use: expected content_block_stop before message_stop, found none: the "
                "arguments may go on. Fix: ask again; what came is not an answer."
            )
        self.complete = True
        rest = (block.closed() for _, block in self._blocks)
        return tuple(delta for delta in rest if delta is not None)

    def _merge_usage(self, usage: JsonObject | None) -> _Shown:
        """Replace repeated counts: they are cumulative, and an absent count changes nothing."""
        if usage is None:
            return ()
        self._usage |= {key: value for key, value in usage.items() if value is not None}
        spent = _usage(self._usage)
        return () if spent == _NOTHING else (UsageSoFar(spent),)

    def _shown(self, delta: Delta | None) -> _Shown:
        if delta is None:
            return ()
        self.content_started = True
        return (delta,)


def _more_text(data: bytes, index: int) -> str | None:
    """Return the text of an event that only extends this block."""
    try:
        event = _decode(data)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return event.delta.text if event.index == index else None


def _is_error(name: str, fields: JsonObject) -> bool:
    """Whether an event of an unknown kind reports an error."""
    kind = fields.get("type")
    if kind == "error" or fields.get("error"):
        return True
    if isinstance(kind, str) and kind:
        return kind.endswith("_error")
    # Nothing but an error's own fields: the whole report, bare.
    report = (fields.get("message"), fields.get("detail"), fields.get("code"))
    return not name and any(value is not None for value in report)


def _usage(fields: JsonObject) -> Usage:
    """Return the tokens of a turn, summed over the server's iterations."""
    iterations, server_calls = fields.get("iterations"), fields.get("server_tool_use")
    rounds = iterations if is_list(iterations) and iterations else [fields]

    def total(key: str) -> int:
        return sum(count_of(round_, key) for round_ in rounds)

    return Usage(
        total("input_tokens"),
        total("output_tokens"),
        total("cache_read_input_tokens"),
        total("cache_creation_input_tokens"),
        count_of(fields.get("output_tokens_details"), "thinking_tokens"),
        # How often the server ran a tool itself, of any kind.
        sum(count_of(server_calls, kind) for kind in server_calls)
        if is_object(server_calls)
        else 0,
    )
