"""Decode an Anthropic event stream into deltas and one reply.

The decoder assembles blocks by index, because servers may interleave them. The stream is a reply
only after `message_stop`, and only with a stop reason and complete tool calls. Some proxies send
events before `message_start` or after `message_stop`; the decoder ignores these. A second
`message_start` starts the reply over.
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
from ..wire_json import (
    JsonObject,
    count_of,
    details_of,
    is_list,
    is_object,
    json_text,
    parse_object,
    quoted,
    string_at,
)
from .assembly import Block, ServerRuns, new_block
from .blocks import ANTHROPIC_WIRE
from .container import container_to_keep

__all__ = ["AnthropicDecoder"]

_Shown: TypeAlias = Iterable[Live | UsageSoFar]

_METADATA: Final = ("id", "stop_sequence", "stop_details", "container", "context_management")
_NOTHING: Final = Usage()


# `type` is a field here, because msgspec would accept an object without its tag.
class _Text(Struct, gc=False):
    type: Literal["text_delta"]
    text: str


class _BlockDelta(Struct, gc=False):
    type: Literal["content_block_delta"]
    index: int
    delta: _Text


# Most events only add text; decoding them as these types takes a third of the generic time.
_decode = Decoder(_BlockDelta).decode


@final
class AnthropicDecoder:
    """Decodes the events of one Anthropic response stream (see `Decoder`)."""

    def __init__(self, words: FinishWords) -> None:
        self.content_started = False
        self.complete = False
        self._words = words
        # The number of tool calls shown so far, including those before a second `message_start`.
        self._calls_shown = 0
        self._server_runs: ServerRuns = {}
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
        # The joiner and index of the block that text events extend; None disables the fast path.
        self._flowing: TextJoiner | None = None
        self._flowing_index = 0

    def feed(self, event: ServerEvent) -> _Shown:
        """Decode an event; return the deltas to show, and the usage if the event reports it.

        Raises:
            BadReply: the event does not follow this wire format.
            ProviderError: the event reports a server error, which determines the subclass.
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
        """Return the complete reply after the stream has ended.

        Raises:
            StreamTruncated: the stream had no `message_stop` or no stop reason.
        """
        if not self.complete:
            seen = f"{len(self._blocks)} block(s)" if self._started else "no message_start"
            raise StreamTruncated(
                f"Expected the stream to end with message_stop, found its end after {seen}. "
                "The part that arrived is no answer; ask again."
            )
        message = self._message
        raw = string_at(message, "stop_reason")
        # The sort is stable: blocks keep their order even if a proxy gives all the same index.
        blocks = sorted(self._blocks, key=lambda numbered: numbered[0])
        parts = tuple(block.part() for _, block in blocks)
        metadata = {key: message[key] for key in _METADATA if message.get(key) is not None}
        reason = meaning(self._words, raw)
        # llama.cpp sends `end_turn` even if a stop sequence ended the turn.
        if reason is FinishReason.STOP and message.get("stop_sequence") is not None:
            reason = FinishReason.STOP_SEQUENCE
        return Reply(
            AssistantMessage(parts, ANTHROPIC_WIRE, container_to_keep(message.get("container"))),
            reason,
            _usage(self._usage),
            raw,
            string_at(message, "model"),
            json_text(metadata) if metadata else "",
        )

    def _take(self, name: str, data: bytes) -> _Shown:
        """Decode an event of any type, without the fast path for text."""
        if name == "error":
            raise stream_error(ANTHROPIC_WIRE, data)
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
            raise stream_error(ANTHROPIC_WIRE, data)
        return ()

    def _on_message_start(self, fields: JsonObject) -> _Shown:
        if not is_object(fields["message"]):
            raise TypeError(f"message: expected an object, found {fields['message']!r}")
        message = dict(fields["message"])
        again = (Restarted(),) if self._started and self.content_started else ()
        self._reset(message)
        for key in ("id", "model", "stop_reason"):
            string_at(message, key)
        return (*again, *self._merge_usage(message.get("usage")))

    def _on_block_start(self, fields: JsonObject) -> _Shown:
        index, start = fields["index"], fields["content_block"]
        if not isinstance(index, int):
            raise TypeError(f"index: expected a number, found {index!r}")
        block = new_block(start, self._calls_shown, self._server_runs)
        self._calls_shown += block.is_call
        if start["type"] == "fallback":
            self._fall_back(start)
        self.content_started |= not block.is_shown
        self._by_index[index] = block
        self._blocks.append((index, block))
        return self._shown(block.opened())

    def _fall_back(self, start: JsonObject) -> None:
        """Switch to the fallback model, and drop the tool calls of the model before it.

        When the turn is sent back, the API expects neither these calls nor their results.
        """
        self._blocks = [(at, block) for at, block in self._blocks if not block.is_call]
        successor = start.get("to")
        if is_object(successor):
            self._message["model"] = string_at(successor, "model")

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
            string_at(source, "stop_reason")
            for key in ("stop_reason", *_METADATA):
                if source.get(key) is not None:
                    self._message[key] = source[key]
        return self._merge_usage(fields.get("usage"))

    def _on_message_stop(self, fields: JsonObject) -> _Shown:  # noqa: ARG002 - has no data
        is_whole = all(block.is_whole for _, block in self._blocks)
        # Tool calls of a reply that `max_tokens` cut never run, so they may be incomplete.
        if not is_whole and self._message.get("stop_reason") != "max_tokens":
            raise StreamTruncated(
                "tool_use: expected content_block_stop before message_stop, found none: the "
                "arguments may go on. Fix: ask again; what came is not an answer."
            )
        self.complete = True
        rest = (block.closed() for _, block in self._blocks)
        return tuple(delta for delta in rest if delta is not None)

    def _merge_usage(self, usage: JsonObject | None) -> _Shown:
        """Update the usage with an event's counts, which are cumulative; return the new total.

        A count that is absent or null keeps its earlier value.
        """
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
    """Return the text of an event that only adds text to the block at `index`, else None."""
    try:
        event = _decode(data)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return event.delta.text if event.index == index else None


def _is_error(name: str, fields: JsonObject) -> bool:
    """Whether an event of an unknown type reports an error."""
    kind = fields.get("type")
    if kind == "error" or fields.get("error"):
        return True
    if isinstance(kind, str) and kind:
        return kind.endswith("_error")
    # Some servers send an error's fields at the top level, without a type or an event name.
    report = (fields.get("message"), fields.get("detail"), fields.get("code"))
    return not name and any(value is not None for value in report)


def _usage(fields: JsonObject) -> Usage:
    """Return the usage of a turn, with token counts summed over the server's iterations."""
    iterations, server_calls = fields.get("iterations"), fields.get("server_tool_use")
    rounds = iterations if is_list(iterations) and iterations else [fields]

    def total(key: str) -> int:
        return sum(count_of(round_, key) for round_ in rounds)

    kept = [round_.get("cache_creation") for round_ in rounds if is_object(round_)]

    return Usage(
        total("input_tokens"),
        total("output_tokens"),
        total("cache_read_input_tokens"),
        total("cache_creation_input_tokens"),
        count_of(fields.get("output_tokens_details"), "thinking_tokens"),
        # The number of calls that the server ran itself, over all server tools.
        sum(count_of(server_calls, kind) for kind in server_calls)
        if is_object(server_calls)
        else 0,
        details=details_of(
            cache_write_1h_tokens=sum(count_of(one, "ephemeral_1h_input_tokens") for one in kept),
            web_searches=count_of(server_calls, "web_search_requests"),
        ),
    )
