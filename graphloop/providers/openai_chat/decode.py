"""Decode an OpenAI chat stream into deltas and one reply.

A finish reason ends the answer; most servers then send `[DONE]`. A stream without a finish reason
is truncated, even with `[DONE]`. If several finish reasons arrive, the worst of them counts. The
decoder reads only the first choice, and keeps unknown fields of a chunk's delta.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias, final

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from ...media import Inline, MediaPart
from ...values import (
    AssistantMessage,
    FinishReason,
    OpaquePart,
    Reply,
    Usage,
)
from ..base import Delta, MediaDelta, ReasoningDelta, ServerEvent, TextDelta, UsageSoFar
from ..finish_words import FinishWords, meaning, worst
from ..media import base64_text
from ..refusals import stream_error
from ..text import TextJoiner, whole_text
from ..wire_json import (
    JsonObject,
    as_list,
    as_object,
    count_of,
    details_of,
    is_list,
    is_object,
    json_text,
    parse_object,
)
from .assembly import CallAssembler, CallDraft, Prose, ProseDelta, SoundDraft, add_field
from .messages import CHAT_REASONING, CHAT_WIRE, THINKING_EXTRA, TRANSCRIPT_EXTRA, image_part

__all__ = ["ChatDecoder"]

_METADATA: Final = ("id", "system_fingerprint", "service_tier", "timings")
_NOTHING: Final = Usage()
_GROWING: Final = ("text", "summary", "data")  # Reasoning detail fields that stream in pieces.

_Ready: TypeAlias = OpaquePart | MediaPart
_Medium: TypeAlias = MediaPart | SoundDraft


class _Delta(Struct, forbid_unknown_fields=True, gc=False):
    """A delta that holds only text; some servers send its other fields as null."""

    content: str
    role: str | None = None
    refusal: None = None
    tool_calls: None = None
    function_call: None = None
    reasoning: None = None
    reasoning_content: None = None


class _Choice(Struct, gc=False):
    delta: _Delta
    index: Literal[0] = 0
    finish_reason: None = None


class _Chunk(Struct, gc=False):
    choices: tuple[_Choice]
    usage: None = None
    error: None = None


# Most chunks only add text; decoding them as these types takes a third of the generic time.
_decode = Decoder(_Chunk).decode


@final
class ChatDecoder:
    """Decodes the events of one OpenAI chat response stream (see `Decoder`).

    Only `[DONE]` sets `complete`, because the usage may follow the finish reason.

    Args:
        words: the meanings of the server's finish reasons.
        model: the name of the model that is asked.
    """

    def __init__(self, words: FinishWords, model: str = "") -> None:
        self.complete = False
        self._words, self._asked = words, model
        self._out: list[Delta | UsageSoFar] = []  # The items of the current event.
        self._parts: list[Prose | CallDraft | SoundDraft | _Ready] = []
        self._sound: SoundDraft | None = None
        self._prose: Prose | None = None
        self._calls = CallAssembler()
        self._reasoning_field = ""
        self._details: list[JsonObject] = []
        self._extra: JsonObject = {}
        self._metadata: JsonObject = {}
        self._model = ""
        self._usage = Usage()
        self._finish = ""
        # The joiner that text-only chunks extend; None while each chunk needs the full decoder.
        self._flowing: TextJoiner | None = None
        self._by_deltas = False
        self._refused = False

    @property
    def content_started(self) -> bool:
        """Whether the stream has delivered content."""
        return bool(self._parts)

    def feed(self, event: ServerEvent) -> Iterable[Delta | UsageSoFar]:
        """Decode an event; return the deltas to show, and the usage if the event reports it.

        Raises:
            BadReply: the event is not valid JSON or does not follow this wire format.
            ProviderError: the event reports a server error, which determines the subclass.
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
        """Return the complete reply after the stream has ended.

        Raises:
            StreamTruncated: the stream had no finish reason, or the server failed.
        """
        extra = dict(self._extra)
        if self._details:
            extra["reasoning_details"] = self._details
        parts = [each if isinstance(each, _Ready) else each.part() for each in self._parts]
        message = AssistantMessage(tuple(parts), CHAT_WIRE, json_text(extra) if extra else "")
        metadata = json_text(self._metadata) if self._metadata else ""
        reason = meaning(self._words, self._finish)
        if self._refused:
            reason = FinishReason.REFUSAL
        elif reason is FinishReason.STOP and message.calls:
            reason = FinishReason.TOOL_CALLS  # Many servers send "stop" despite calls.
        return Reply(message, reason, self._usage, self._finish, self._model, metadata)

    def _take(self, event: ServerEvent) -> None:
        """Decode an event of any type, without the fast path for text."""
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
            if not entry.get("index"):  # Of several choices, the first is read.
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
            # Some servers send a whole message instead of deltas; after deltas, it repeats them.
            delta = choice.get("message")
        for name, value in as_object(delta, "choices[0].delta").items():
            if name == "content" and isinstance(value, str):
                self._add_text(TextDelta, value)
            elif value is not None and name != "role":
                self._take_field(name, value)
        finish = choice.get("finish_reason")
        if finish:
            word = whole_text(finish) if isinstance(finish, str) else "other"
            self._finish = worst(self._words, self._finish, word)

    def _take_field(self, name: str, value: object) -> None:
        match name, value:
            case "content", _:
                self._take_typed(as_list(value, "delta.content"))
            case (("reasoning_content" | "reasoning"), str()):
                self._add_reasoning(name, value)
            case "refusal", str():
                self._refused |= bool(value)
                self._add_text(TextDelta, value)
            case "reasoning_details", _ if is_list(value):
                self._take_details(value)
            case "tool_calls", _:
                for fragment in as_list(value, "delta.tool_calls"):
                    self._add_call(as_object(fragment, "delta.tool_calls[]"))
            case "images", _ if is_list(value):
                self._take_images(value)
            case "audio", _ if is_object(value):
                self._take_sound(value)
            case "function_call", _:
                # The API's old format has one call without an id; no server uses the index -1.
                self._add_call({"index": -1, "function": value})
            case _:
                add_field(self._extra, name, value)

    def _add_text(self, kind: ProseDelta, text: str, extra: str = "") -> None:
        if not text:
            return
        prose = self._prose
        if prose is None or prose.kind is not kind or prose.extra != extra:
            self._end_prose()
            prose = self._prose = Prose(kind, extra)
            self._parts.append(prose)
            if kind is TextDelta and self._model and not (extra or self._finish):
                self._flowing = prose.joiner
        shown = prose.joiner.push(text)
        if shown:
            self._out.append(kind(shown))

    def _add_reasoning(self, field: str, text: str) -> None:
        # Some servers send reasoning twice, in two fields; only the field that came first counts.
        if text:
            self._reasoning_field = self._reasoning_field or field
            if field == self._reasoning_field:
                self._add_text(ReasoningDelta, text, CHAT_REASONING.get(field, ""))

    def _take_typed(self, content: list[object]) -> None:
        for item in content:
            part = as_object(item, "delta.content[]")
            text = part.get("text")
            if part.get("type") == "text" and isinstance(text, str):
                self._add_text(TextDelta, text)
            elif part.get("type") == "thinking":
                self._add_text(ReasoningDelta, _thinking_text(part.get("thinking")), THINKING_EXTRA)
            else:
                self._end_prose()
                self._parts.append(OpaquePart(json_text(part)))

    def _take_images(self, images: list[object]) -> None:
        """Add pictures that the model made; OpenRouter and other gateways send them whole."""
        for image in images:
            part = image_part(image)
            if part is None:
                add_field(self._extra, "images", [image])
                continue
            self._end_prose()
            if isinstance(part.source, Inline):
                data = base64_text(part.source)
                self._out.append(MediaDelta(self._media_count(), part.media_type, data))
            self._parts.append(part)

    def _take_sound(self, audio: JsonObject) -> None:
        """Add a piece of what the model says aloud, and of its words."""
        if isinstance(words := audio.get("transcript"), str):
            self._add_text(TextDelta, words, TRANSCRIPT_EXTRA)
        if self._sound is None:
            self._sound = SoundDraft(self._media_count(), self._asked)
        deltas = self._sound.add(audio)
        if deltas and self._sound not in self._parts:
            self._parts.append(self._sound)
        self._out += deltas

    def _media_count(self) -> int:
        return sum(isinstance(each, _Medium) for each in self._parts)

    def _take_details(self, details: list[object]) -> None:
        for item in details:
            detail = as_object(item, "delta.reasoning_details[]")
            kept = self._kept_detail(detail)
            if kept is None:
                self._details.append(detail)
            else:
                _merge_pieces(kept, detail)
            text = detail.get("text") or detail.get("summary")
            if isinstance(text, str):
                self._add_reasoning("reasoning_details", text)

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

    def _add_call(self, fragment: JsonObject) -> None:
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
    """Return the text of a chunk that holds only text, or None for any other chunk."""
    try:
        return _decode(data).choices[0].delta.content
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _is_error(chunk: JsonObject) -> bool:
    if chunk.get("error") or chunk.get("object") == "error":
        return True
    # Some servers send an error's fields at the top level. Keep-alive objects have neither
    # choices nor these fields.
    bare = chunk.get("detail") or (chunk.get("code") and chunk.get("message"))
    return bool(bare) and not chunk.get("choices")


def _thinking_text(thinking: object) -> str:
    if isinstance(thinking, str):
        return thinking
    if not is_list(thinking):
        return ""
    texts = (piece.get("text") for piece in thinking if is_object(piece))
    return "".join(text for text in texts if isinstance(text, str))


def _merge_pieces(kept: JsonObject, piece: JsonObject) -> None:
    for name, value in piece.items():
        before = kept.get(name)
        if name in _GROWING and isinstance(before, str) and isinstance(value, str):
            kept[name] = before + value
        elif value is not None:
            kept[name] = value


def _usage(usage: JsonObject) -> Usage:
    """Convert a server's `usage`: input without cached tokens, output with reasoning."""
    prompt = count_of(usage, "prompt_tokens")
    completion = count_of(usage, "completion_tokens")
    details, answered = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    written = count_of(details, "cache_write_tokens")
    # DeepSeek and Moonshot send the cached tokens outside `prompt_tokens_details`.
    cached = (
        count_of(details, "cached_tokens")
        or count_of(usage, "prompt_cache_hit_tokens")
        or count_of(usage, "cached_tokens")
    )
    reasoning = count_of(answered, "reasoning_tokens")
    # xAI and Gemini do not include reasoning in `completion_tokens`.
    if reasoning and count_of(usage, "total_tokens") == prompt + completion + reasoning:
        completion += reasoning
    return Usage(
        input_tokens=max(0, prompt - cached - written),
        output_tokens=completion,
        cache_read_tokens=cached,
        cache_write_tokens=written,
        reasoning_tokens=reasoning,
        details=details_of(
            input_audio_tokens=count_of(details, "audio_tokens"),
            input_image_tokens=count_of(details, "image_tokens"),
            output_audio_tokens=count_of(answered, "audio_tokens"),
        ),
    )
