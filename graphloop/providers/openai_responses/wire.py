"""The wire format of OpenAI's Responses API, for one model.

OpenAI, Azure, Bedrock, llama.cpp, vLLM and others serve it. This module does no I/O: the provider
posts the bytes. Source: the page "Responses" of OpenAI's API reference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, final

from ...errors import ProviderError
from ...values import FinishReason, ToolSpec
from ..base import ServerEvent
from ..encoder import PrefixEncoder
from ..finish_words import FinishWord, FinishWords
from ..refusals import http_error
from ..wire_json import json_bytes, parse_object
from .decode import ResponsesDecoder
from .encode import function_or_tool, responses_encoder
from .items import RESPONSES_WIRE

__all__ = ["RESPONSES_WORDS", "OpenAIResponses"]

# OpenAI refuses to include encrypted reasoning for its models that do not reason.
_never_reasons = re.compile(r"(?:openai/|ft:)?(?:chatgpt-|gpt-3|gpt-4)").match

RESPONSES_WORDS: Final[FinishWords] = {
    "completed": FinishWord(FinishReason.STOP, "OpenAI, llama.cpp, vLLM"),
    "max_output_tokens": FinishWord(FinishReason.LENGTH, "OpenAI, Azure"),
    "max_tokens": FinishWord(FinishReason.LENGTH, "vLLM"),
    "content_filter": FinishWord(FinishReason.CONTENT_FILTER, "OpenAI, Azure"),
    "incomplete": FinishWord(FinishReason.LENGTH, "OpenAI, without a reason"),
    "failed": FinishWord(None, "OpenAI"),
    "cancelled": FinishWord(None, "OpenAI"),
    "in_progress": FinishWord(None, "gateways"),
    "queued": FinishWord(None, "gateways"),
}


@final
@dataclass(frozen=True, slots=True)
class OpenAIResponses:
    """The wire format of `POST /responses` for one model (see `Wire`).

    Args:
        model: the model's name on the server.
        encrypted_reasoning: whether requests ask for the model's reasoning in encrypted form, which
            the next request sends back. The default is False for OpenAI's models before gpt-5 and
            the o series, which refuse the question.
        stream: whether requests ask for a stream; False for a server without streaming.
        finish_words: finish reasons that this server sends in addition to the known words.
    """

    model: str
    _: KW_ONLY
    encrypted_reasoning: bool | None = None
    stream: bool = True
    finish_words: FinishWords = field(default_factory=dict[str, FinishWord], repr=False)
    name: str = field(default=RESPONSES_WIRE, init=False)
    path: str = field(default="/responses", init=False)

    def headers(self, api_key: str) -> Mapping[str, str]:
        """Return the authorization header, or no header if `api_key` is empty."""
        return {"authorization": f"Bearer {api_key}"} if api_key else {}

    def check_tool(self, tool: ToolSpec) -> None:
        """Refuse a tool that no request of this wire format can carry."""
        function_or_tool(tool)

    def encoder(self) -> PrefixEncoder:
        """Return a new encoder for the requests of one run."""
        encrypted = self.encrypted_reasoning
        if encrypted is None:
            encrypted = not _never_reasons(self.model)
        return responses_encoder(self.model, encrypted_reasoning=encrypted, stream=self.stream)

    def decoder(self) -> ResponsesDecoder:
        """Return a new decoder for one response stream."""
        return ResponsesDecoder({**RESPONSES_WORDS, **self.finish_words})

    def events_of(self, body: bytes) -> list[ServerEvent]:
        """Return the event of the stream that the decoder would read in place of `body`."""
        response = parse_object(body)
        status = response.get("status")
        if status not in {"completed", "incomplete", "failed"}:
            return [ServerEvent("", body)]
        last = {"type": f"response.{status}", "response": response}
        return [ServerEvent("", json_bytes(last))]

    def error(self, status: int, body: bytes) -> ProviderError:
        """Return the `ProviderError` for an HTTP error response; never raises."""
        return http_error(RESPONSES_WIRE, status, body, path=self.path)
