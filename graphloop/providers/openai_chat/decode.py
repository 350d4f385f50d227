"""Streams of the OpenAI chat wire: chunks to deltas and a reply.

The answer is over at its finish reason, which `[DONE]` follows on most servers. A stream without a
finish reason is truncated, even with `[DONE]`. Of several finish reasons the worst counts.
The decoder reads only the first choice, and keeps unknown fields of a chunk's delta.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias, final

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from ...values import (
    AssistantMessage,
    AssistantPart,
    FinishReason,
    OpaquePart,
    ReasoningPart,
    Reply,
    TextPart,
    Usage,
)
from ..base import Delta, ReasoningDelta, ServerEvent, TextDelta, UsageSoFar
from ..finish_words import FinishWords, meaning, worst
from ..refusals import stream_error
from ..text import TextJoiner, whole_text
from ..wire_json import (
    JsonObject,
    as_list,
    as_object,
    count_of,
    is_list,
    is_object,
    json_text,
    parse_object,
)
from .calls import CallAssembler, CallDraft, add_field
from .messages import CHAT_REASONING, CHAT_WIRE, THINKING_EXTRA

__all__ = ["ChatDecoder"]

_METADATA: Final = ("id", "system_fingerprint", "service_tier", "timings")
_NOTHING: Final = Usage()
_GROWING: Final = ("text", "summary", "data")  # Fields of a reasoning detail that come in pieces.

_ProseDelta: TypeAlias = type[TextDelta] | type[ReasoningDelta]


class _Delta(Struct, forbid_unknown_fields=True):
    """Text alone; some servers write null into all other fields."""

    content: str
    role: str | None = None
    refusal: None = None
    tool_calls: None = None
    function_call: None = None
    reasoning: None = None
    reasoning_content: None = None


class _Choice(Struct):
    delta: _Delta
    index: Literal[0] = 0
    finish_reason: None = None


class _Chunk(Struct):
    choices: tuple[_Choice]
    usage: None = None
    error: None = None


# Most chunks hold only more text: to decode them by their own types costs a third.
_decode = Decoder(_Chunk).decode


class _Prose:
    """A stretch of text, or of reasoning."""

    __slots__ = ("extra", "joiner", "kind")

    def __init__(self, kind: _ProseDelta, extra: str) -> None:
        self.kind: _ProseDelta = kind
        self.extra = extra
        self.joiner = TextJoiner()


@final
class ChatDecoder:
    """Decodes the events of one stream (see `Decoder`).

    `complete` waits for `[DONE]`: the usage may follow the finish reason.
    """

    def __init__(self, words: FinishWords) -> None:
        self.complete = False
        self._words = words
        self._out: list[Delta | UsageSoFar] = []  # The deltas of the event in hand.
        self._parts: list[_Prose | CallDraft | OpaquePart] = []
        self._prose: _Prose | None = None
        self._calls = CallAssembler()
        self._reasoning_field = ""
        self._details: list[JsonObject] = []
        self._extra: JsonObject = {}
        self._metadata: JsonObject = {}
        self._model = ""
        self._usage = Usage()
        self._finish = ""
        # The target of a chunk that holds only text; None while every chunk must be read.
        self._flowing: TextJoiner | None = None
        self._by_deltas = False
        self._refused = False

    @property
    def content_started(self) -> bool:
        """Whether any content has come."""
        return bool(self._parts)

    def feed(self, event: ServerEvent) -> Iterable[Delta | UsageSoFar]:
        """Take an event; return deltas to show, and usage if reported.

        Raises:
            BadReply: the event's JSON does not parse or is not of this wire.
            ProviderError: the event reports an error of the server, of the fitting class.
        """
        text = None if self._flowing is None else _more_text(event.data)
        if self._flowing is None or text is None:
            self._flowing, self._out = None, []
            if event.data and not self.complete:
                self._take(event)
            return self._out
        shown = self._flowing.push(text)
        return (TextDelta(shown),) if shown else ()

    def reply(self) -> Reply:
        """Return the whole answer once the stream has ended.

        Raises:
            StreamTruncated: no finish reason has come, or the server broke off.
        """
        extra = dict(self._extra)
        if self._details:
            extra["reasoning_details"] = self._details
        parts = tuple(map(_part, self._parts))
        message = AssistantMessage(parts, CHAT_WIRE, json_text(extra) if extra else "")
        metadata = json_text(self._metadata) if self._metadata else ""
        reason = meaning(self._words, self._finish)
        if self._refused:
            reason = FinishReason.REFUSAL
        elif reason is FinishReason.STOP and message.calls:
            reason = FinishReason.TOOL_CALLS  # Many servers say "stop" when the turn has calls.
        return Reply(message, reason, self._usage, self._finish, self._model, metadata)

    def _take(self, event: ServerEvent) -> None:
        """Take an event of any kind."""
        data = event.data
        if data.startswith(b"[DONE]"):
            self.complete = True
            self._flush()
            return
        chunk = {} if event.name == "error" else parse_object(data)
        if event.name == "error" or _is_error(chunk):
            raise stream_error(CHAT_WIRE, data)
        if not self._model:
            self._take_envelope(chunk)
        for choice in as_list(chunk.get("choices"), "choices"):
            entry = as_object(choice, "choices[]")
            if not entry.get("index"):  # 0, or not there at all
                self._take_choice(entry)
        usage = chunk.get("usage")
        if self._finish or usage:
            self._take_envelope(chunk)
        if self._finish:
            self._flush()
        if usage and self._usage != _NOTHING:
            self._out.append(UsageSoFar(self._usage))

    def _take_envelope(self, chunk: JsonObject) -> None:
        model = chunk.get("model")
        if isinstance(model, str) and model:
            self._model = whole_text(model)
        for name in _METADATA:
            if chunk.get(name) is not None:
                self._metadata[name] = chunk[name]
        usage = chunk.get("usage")
        if is_object(usage) and usage:
            self._usage = _usage(usage)

    def _take_choice(self, choice: JsonObject) -> None:
        delta = choice.get("delta")
        if delta is not None:
            self._by_deltas = True
        elif not self._by_deltas:
            # Some servers stream whole messages; behind deltas a message is a repetition.
            delta = choice.get("message")
        for name, value in as_object(delta, "choices[0].delta").items():
            if name == "content" and isinstance(value, str):
                self._say(TextDelta, value)
            elif value is not None:
                self._take_field(name, value)
        finish = choice.get("finish_reason")
        if finish:
            word = whole_text(finish) if isinstance(finish, str) else "other"
            self._finish = worst(self._words, self._finish, word)

    def _take_field(self, name: str, value: object) -> None:
        match name, value:
            case "role", _:
                pass
            case "content", _:
                self._take_typed(as_list(value, "delta.content"))
            case (("reasoning_content" | "reasoning"), str()):
                self._reason(name, value)
            case "refusal", str():
                self._refused |= bool(value)
                self._say(TextDelta, value)
            case "reasoning_details", _ if is_list(value):
                self._take_details(value)
            case "tool_calls", _:
                for fragment in as_list(value, "delta.tool_calls"):
                    self._call(as_object(fragment, "delta.tool_calls[]"))
            case "function_call", _:
                # The wire's old form: one call without id; -1 is no server's index.
                self._call({"index": -1, "function": value})
            case _:
                add_field(self._extra, name, value)

    def _say(self, kind: _ProseDelta, text: str, extra: str = "") -> None:
        if not text:
            return
        prose = self._prose
        if prose is None or prose.kind is not kind or prose.extra != extra:
            self._end_prose()
            prose = self._prose = _Prose(kind, extra)
            self._parts.append(prose)
            if kind is TextDelta and self._model and not (extra or self._finish):
                self._flowing = prose.joiner
        shown = prose.joiner.push(text)
        if shown:
            self._out.append(kind(shown))

    def _reason(self, field: str, text: str) -> None:
        # Some servers send everything twice, under two names: only the first name counts.
        if text:
            self._reasoning_field = self._reasoning_field or field
            if field == self._reasoning_field:
                self._say(ReasoningDelta, text, CHAT_REASONING.get(field, ""))

    def _take_typed(self, content: list[object]) -> None:
        for item in content:
            part = as_object(item, "delta.content[]")
            text = part.get("text")
            if part.get("type") == "text" and isinstance(text, str):
                self._say(TextDelta, text)
            elif part.get("type") == "thinking":
                self._say(ReasoningDelta, _thought(part.get("thinking")), THINKING_EXTRA)
            else:
                self._end_prose()
                self._parts.append(OpaquePart(json_text(part)))

    def _take_details(self, details: list[object]) -> None:
        for item in details:
            detail = as_object(item, "delta.reasoning_details[]")
            kept = self._kept_detail(detail)
            if kept is None:
                self._details.append(detail)
            else:
                _grow(kept, detail)
            text = detail.get("text") or detail.get("summary")
            if isinstance(text, str):
                self._reason("reasoning_details", text)

    def _kept_detail(self, detail: JsonObject) -> JsonObject | None:
        index, kind = detail.get("index"), detail.get("type")
        if index is None:
            return None
        same = (
            kept
            for kept in reversed(self._details)
            if kept.get("index") == index and kind in {None, kept.get("type")}
        )
        return next(same, None)

    def _call(self, fragment: JsonObject) -> None:
        draft, deltas = self._calls.add(fragment)
        if draft is not None:
            self._end_prose()
            self._parts.append(draft)
        self._out += deltas

    def _end_prose(self) -> None:
        prose, self._prose = self._prose, None
        self._flowing = None
        if prose is not None and (rest := prose.joiner.flush()):
            self._out.append(prose.kind(rest))

    def _flush(self) -> None:
        self._end_prose()
        self._out += self._calls.flush()


def _more_text(data: bytes) -> str | None:
    """Return the text of a chunk without anything else, or None."""
    try:
        return _decode(data).choices[0].delta.content
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _is_error(chunk: JsonObject) -> bool:
    if chunk.get("error") or chunk.get("object") == "error":
        return True
    # The bare report; keep-alive objects have no choices either, and no fields of an error.
    bare = chunk.get("detail") or (chunk.get("code") and chunk.get("message"))
    return bool(bare) and not chunk.get("choices")


def _part(draft: _Prose | CallDraft | OpaquePart) -> AssistantPart:
    if isinstance(draft, CallDraft):
        return draft.call()
    if isinstance(draft, OpaquePart):
        return draft
    text = draft.joiner.text
    return TextPart(text) if draft.kind is TextDelta else ReasoningPart(text, extra=draft.extra)


def _thought(thinking: object) -> str:
    if isinstance(thinking, str):
        return thinking
    if not is_list(thinking):
        return ""
    texts = (piece.get("text") for piece in thinking if is_object(piece))
    return "".join(text for text in texts if isinstance(text, str))


def _grow(kept: JsonObject, piece: JsonObject) -> None:
    for name, value in piece.items():
        before = kept.get(name)
        if name in _GROWING and isinstance(before, str) and isinstance(value, str):
            kept[name] = before + value
        elif value is not None:
            kept[name] = value


def _usage(usage: JsonObject) -> Usage:
    """Return the tokens of a turn.

    Input excludes tokens from a cache; output includes reasoning.
    """
    prompt = count_of(usage, "prompt_tokens")
    completion = count_of(usage, "completion_tokens")
    # DeepSeek and Moonshot name the cached tokens beside the details, not in them.
    cached = (
        count_of(usage.get("prompt_tokens_details"), "cached_tokens")
        or count_of(usage, "prompt_cache_hit_tokens")
        or count_of(usage, "cached_tokens")
    )
    reasoning = count_of(usage.get("completion_tokens_details"), "reasoning_tokens")
    # xAI, and Gemini behind this wire, count reasoning beside the completion.
    if reasoning and count_of(usage, "total_tokens") == prompt + completion + reasoning:
        completion += reasoning
    return Usage(
        input_tokens=max(0, prompt - cached),
        output_tokens=completion,
        cache_read_tokens=cached,
        reasoning_tokens=reasoning,
    )
