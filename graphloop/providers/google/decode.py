"""Decode a Gemini event stream into deltas and one reply.

Each event is a response with the next parts of the answer. The stream is a reply only after an
event with a finish reason. If the server blocks the prompt, it sends no candidate at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, TypeAlias, final

from ...errors import BadReply, StreamTruncated
from ...spending import UsageDetails
from ...values import AssistantMessage, FinishReason, Reply, Usage
from ..base import Live, ServerEvent, UsageSoFar
from ..finish_words import FinishWords, meaning
from ..refusals import stream_error
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
    quoted,
    string_at,
)
from .assembly import new_part
from .contents import GOOGLE_WIRE
from .part import StreamedPart

__all__ = ["GoogleDecoder"]

_Shown: TypeAlias = Iterable[Live | UsageSoFar]

_OF_RESPONSE: Final = ("responseId", "promptFeedback")
_OF_CANDIDATE: Final = (
    *("citationMetadata", "groundingMetadata", "urlContextMetadata"),
    *("finishMessage", "continuationToken"),
)
"""The fields of a candidate that `Reply.metadata` keeps: sources, and words about the end."""

_NOT_ENDED: Final = frozenset({"", "FINISH_REASON_UNSPECIFIED"})
_NOTHING: Final = Usage()

_MODALITIES: Final = {"AUDIO": "audio", "IMAGE": "image", "DOCUMENT": "image", "VIDEO": "video"}
"""The words for media with a price of their own; pages of documents are pictures."""
_MODALITY_COUNTS: Final = {
    "promptTokensDetails": "input_{}_tokens",
    "toolUsePromptTokensDetails": "input_{}_tokens",
    "cacheTokensDetails": "cache_{}_read_tokens",
    "candidatesTokensDetails": "output_{}_tokens",
}
"""The fields of `UsageDetails` by those of `usageMetadata`, with a place for the modality."""


@final
class GoogleDecoder:
    """Decodes the events of one Gemini stream (see `Decoder`)."""

    def __init__(self, words: FinishWords) -> None:
        self.content_started = False
        self.complete = False
        self._words = words
        self._parts: list[StreamedPart] = []
        self._metadata: JsonObject = {}
        self._counts: JsonObject = {}
        self._usage = _NOTHING
        self._raw = self._model = ""
        self._answered = self._candidates = 0

    def feed(self, event: ServerEvent) -> _Shown:
        """Decode an event; return the deltas to show, and the usage if the event reports it.

        Raises:
            BadReply: the event does not follow this wire format.
            ProviderError: the event reports a server error, which determines the subclass.
        """
        data = event.data
        if self.complete or not data or data.startswith(b"[DONE]"):
            return ()
        fields = parse_object(data)
        if event.name == "error" or fields.get("error"):
            raise stream_error(GOOGLE_WIRE, data)
        try:
            return self._take(fields)
        except (AttributeError, KeyError, TypeError) as problem:
            raise BadReply(
                "expected an event of the Gemini wire, found one with a missing or wrong field "
                f"({problem!r}): {quoted(data)}. Check that the server speaks it."
            ) from problem

    def reply(self) -> Reply:
        """Return the complete reply after the stream has ended.

        Raises:
            StreamTruncated: the stream had no finish reason, or the server failed.
        """
        if not self.complete and (self._candidates or not self._answered):
            raise StreamTruncated(
                "expected the stream to end with a finish reason, found its end after "
                f"{len(self._parts)} part(s). The part that arrived is no answer; ask again."
            )
        message = AssistantMessage(tuple(part.whole() for part in self._parts), GOOGLE_WIRE)
        return Reply(
            message,
            self._finish_reason(message),
            self._usage,
            self._raw,
            self._model,
            json_text(self._metadata) if self._metadata else "",
        )

    def _finish_reason(self, message: AssistantMessage) -> FinishReason:
        if not self._candidates:
            return FinishReason.CONTENT_FILTER  # The server blocked the prompt.
        said = meaning(self._words, self._raw)
        if said is not FinishReason.STOP:
            return said
        if any(part.is_cut for part in self._parts):
            return FinishReason.LENGTH
        return FinishReason.TOOL_CALLS if message.calls else said

    def _take(self, fields: JsonObject) -> _Shown:
        self._model = string_at(fields, "modelVersion") or self._model
        self._keep_metadata(fields, _OF_RESPONSE)
        shown: list[Live | UsageSoFar] = []
        candidates = as_list(fields.get("candidates"), "candidates")
        for each in candidates:
            candidate = as_object(each, "candidates[]")
            if not candidate.get("index"):  # Of several answers, the first one.
                shown += self._on_candidate(candidate)
        self.content_started |= bool(self._parts)
        feedback = as_object(fields.get("promptFeedback"), "promptFeedback")
        blocked = string_at(feedback, "blockReason")
        if blocked and not self._candidates:
            self._raw, self.complete = blocked, True
        self._answered += bool(fields.keys() & {"candidates", "promptFeedback", "usageMetadata"})
        self._counts |= as_object(fields.get("usageMetadata"), "usageMetadata")
        usage = _usage(self._counts)
        if usage != self._usage:
            self._usage = usage
            shown.append(UsageSoFar(usage))
        return shown

    def _on_candidate(self, candidate: JsonObject) -> _Shown:
        self._candidates += 1
        self._keep_metadata(candidate, _OF_CANDIDATE)
        content = as_object(candidate.get("content"), "content")
        shown: list[Live] = []
        for part in as_list(content.get("parts"), "content.parts"):
            shown += self._on_part(as_object(part, "content.parts[]"))
        word = string_at(candidate, "finishReason")
        if word not in _NOT_ENDED:
            self._raw, self.complete = word, True
            shown += self._parts[-1].flush() if self._parts else ()
        return shown

    def _on_part(self, part: JsonObject) -> Iterable[Live]:
        last = self._parts[-1] if self._parts else None
        if last is not None and last.takes(part):
            return last.push(part)
        new = new_part(part, self._parts)
        if new is None:
            return ()
        self._parts.append(new)
        return (*(last.flush() if last is not None else ()), *new.opened())

    def _keep_metadata(self, fields: JsonObject, names: Iterable[str]) -> None:
        for name in names:
            if fields.get(name) not in (None, "", {}, []):
                self._metadata[name] = fields[name]


def _usage(counts: object) -> Usage:
    """Convert a server's `usageMetadata`; the input count of `Usage` excludes cached tokens."""
    if not is_object(counts):
        return _NOTHING
    cached = count_of(counts, "cachedContentTokenCount")
    thoughts = count_of(counts, "thoughtsTokenCount")
    asked = count_of(counts, "promptTokenCount") - cached
    return Usage(
        input_tokens=max(0, asked) + count_of(counts, "toolUsePromptTokenCount"),
        output_tokens=count_of(counts, "candidatesTokenCount") + thoughts,
        cache_read_tokens=cached,
        reasoning_tokens=thoughts,
        details=_details(counts),
    )


def _details(counts: JsonObject) -> UsageDetails:
    """Return the tokens by modality; https://ai.google.dev/api/generate-content#UsageMetadata."""
    found = Counter[str]()
    for name, field in _MODALITY_COUNTS.items():
        told = counts.get(name)
        for one in filter(is_object, told if is_list(told) else ()):
            if modality := _MODALITIES.get(str(one.get("modality"))):
                found[field.format(modality)] += count_of(one, "tokenCount")
    return details_of(**found)
