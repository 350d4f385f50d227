"""The wire format of Google's Gemini API, for one model.

This module does no I/O: the provider posts the bytes. Source: the pages "Generating content",
"Function calling" and "Thought signatures" of Google's Gemini API documentation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, final
from urllib.parse import quote

from ...errors import ProviderError
from ...values import FinishReason, ToolSpec
from ..base import ServerEvent
from ..encoder import PrefixEncoder
from ..finish_words import FinishWord, FinishWords
from ..refusals import http_error
from .contents import GOOGLE_WIRE
from .decode import GoogleDecoder
from .encode import TOOLS, google_encoder

__all__ = ["GOOGLE_WORDS", "GoogleGemini"]

# Gemini 3 and later models refuse a call without a signature; these models never do.
_never_checks = re.compile(r"(?:models/)?(?:gemini-[12][.-]|gemma|learnlm)").match

_FILTERED: Final = (
    *("safety", "recitation", "language", "blocklist", "prohibited_content", "spii"),
    *("image_safety", "image_prohibited_content", "image_recitation"),
    *("escalation", "pup_limited_disabled"),
)
_BROKEN: Final = (
    *("malformed_function_call", "malformed_response", "unexpected_tool_call"),
    "missing_thought_signature",
)
_OTHER: Final = ("other", "image_other", "no_image", "too_many_tool_calls")

GOOGLE_WORDS: Final[FinishWords] = {
    "stop": FinishWord(FinishReason.STOP, "Gemini"),
    "max_tokens": FinishWord(FinishReason.LENGTH, "Gemini"),
    "continuation": FinishWord(FinishReason.LENGTH, "Gemini"),
    **{word: FinishWord(FinishReason.CONTENT_FILTER, "Gemini") for word in _FILTERED},
    "model_armor": FinishWord(FinishReason.CONTENT_FILTER, "Vertex AI"),
    **{word: FinishWord(FinishReason.OTHER, "Gemini") for word in _OTHER},
    **{word: FinishWord(None, "Gemini") for word in _BROKEN},
}


@final
@dataclass(frozen=True, slots=True)
class GoogleGemini:
    """The wire format of `POST /v1beta/models/NAME:streamGenerateContent` (see `Wire`).

    A reply in one piece comes from `generateContent`, and is an event of the stream as it stands.

    Args:
        model: the model's name on the server, such as `gemini-3-flash`, or its resource name, such
            as `tunedModels/my-model`.
        signed_calls: whether the server refuses a turn whose first call has no signature. A call
            without one, such as a call of another model, then gets the signature that Google
            documents for this case. The default is False for Gemini before 3 and for Gemma.
        stream: whether requests ask for a stream; False for a server without streaming.
        finish_words: finish reasons that this server sends in addition to the known words.
    """

    model: str
    _: KW_ONLY
    signed_calls: bool | None = None
    stream: bool = True
    finish_words: FinishWords = field(default_factory=dict[str, FinishWord], repr=False)
    name: str = field(default=GOOGLE_WIRE, init=False)

    @property
    def path(self) -> str:
        """The URL path for requests, relative to the base URL."""
        resource = self.model if "/" in self.model else f"models/{self.model}"
        method = "streamGenerateContent?alt=sse" if self.stream else "generateContent"
        return f"/v1beta/{quote(resource)}:{method}"

    def headers(self, api_key: str) -> Mapping[str, str]:
        """Return the header with the API key, or no header if `api_key` is empty."""
        return {"x-goog-api-key": api_key} if api_key else {}

    def check_tool(self, tool: ToolSpec) -> None:
        """Refuse a tool that no request of this wire format can carry."""
        TOOLS.check(tool)

    def encoder(self) -> PrefixEncoder:
        """Return a new encoder for the requests of one run."""
        signed = self.signed_calls
        if signed is None:
            signed = not _never_checks(self.model)
        return google_encoder(signed_calls=signed)

    def decoder(self) -> GoogleDecoder:
        """Return a new decoder for one response stream."""
        return GoogleDecoder({**GOOGLE_WORDS, **self.finish_words})

    def events_of(self, body: bytes) -> list[ServerEvent]:
        """Return the event of the stream that the decoder would read in place of `body`."""
        return [ServerEvent("", body)]

    def error(self, status: int, body: bytes) -> ProviderError:
        """Return the `ProviderError` for an HTTP error response; never raises."""
        return http_error(GOOGLE_WIRE, status, body, path=self.path)
