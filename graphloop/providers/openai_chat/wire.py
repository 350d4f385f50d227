"""The OpenAI chat-completions wire, and the servers compatible with it.

vLLM, llama.cpp, Groq, Together, DeepSeek, Mistral, OpenRouter and others speak it, each a little
differently. This module binds the wire to one model. It does no I/O: the provider posts the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, Literal, TypeAlias, final

from ...errors import ProviderError
from ...values import FinishReason
from ..encoder import PrefixEncoder
from ..finish_words import FinishWord, FinishWords
from ..refusals import http_error
from .decode import ChatDecoder
from .encode import chat_encoder
from .messages import CHAT_WIRE

__all__ = ["CHAT_WORDS", "MaxTokensField", "OpenAIChat", "ReasoningReturn"]

MaxTokensField: TypeAlias = Literal["max_tokens", "max_completion_tokens"]
ReasoningReturn: TypeAlias = Literal["auto", "never"]

# OpenAI's reasoning models refuse `max_tokens`; many compatible servers know nothing else.
_is_reasoning_model = re.compile(r"(?:o1|o3|o4|gpt-5)").match

CHAT_WORDS: Final[FinishWords] = {
    "stop": FinishWord(FinishReason.STOP, "OpenAI and nearly all others"),
    "end_turn": FinishWord(FinishReason.STOP, "Anthropic behind a gateway, xAI"),
    "eos": FinishWord(FinishReason.STOP, "Together"),
    "eos_token": FinishWord(FinishReason.STOP, "text-generation-inference"),
    "complete": FinishWord(FinishReason.STOP, "Cohere behind a gateway"),
    "stop_sequence": FinishWord(FinishReason.STOP_SEQUENCE, "Anthropic behind a gateway"),
    "tool_calls": FinishWord(FinishReason.TOOL_CALLS, "OpenAI and nearly all others"),
    "function_call": FinishWord(FinishReason.TOOL_CALLS, "OpenAI, the wire's old form"),
    "tool_use": FinishWord(FinishReason.TOOL_CALLS, "Anthropic behind a gateway"),
    "length": FinishWord(FinishReason.LENGTH, "OpenAI and nearly all others"),
    "model_length": FinishWord(FinishReason.LENGTH, "Mistral"),
    "max_tokens": FinishWord(FinishReason.LENGTH, "Anthropic or Gemini behind a gateway"),
    "max_output_tokens": FinishWord(FinishReason.LENGTH, "OpenAI Responses behind a gateway"),
    "model_context_window_exceeded": FinishWord(
        FinishReason.CONTEXT_WINDOW, "Anthropic behind a gateway, Z.ai"
    ),
    "refusal": FinishWord(FinishReason.REFUSAL, "Anthropic behind a gateway"),
    "content_filter": FinishWord(
        FinishReason.CONTENT_FILTER, "OpenAI, Azure, DeepSeek, OpenRouter"
    ),
    "safety": FinishWord(FinishReason.CONTENT_FILTER, "Gemini behind a gateway"),
    "recitation": FinishWord(FinishReason.CONTENT_FILTER, "Gemini behind a gateway"),
    "prohibited_content": FinishWord(FinishReason.CONTENT_FILTER, "Gemini behind a gateway"),
    "blocklist": FinishWord(FinishReason.CONTENT_FILTER, "Gemini behind a gateway"),
    "sensitive": FinishWord(FinishReason.CONTENT_FILTER, "Z.ai"),
    "error": FinishWord(None, "OpenRouter, Mistral, vLLM"),
    "abort": FinishWord(None, "vLLM, SGLang"),
    "aborted": FinishWord(None, "gateways"),
    "insufficient_system_resource": FinishWord(None, "DeepSeek"),
    "network_error": FinishWord(None, "Z.ai"),
    "malformed_function_call": FinishWord(None, "Gemini behind a gateway"),
}


@final
@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """The wire of `POST /chat/completions` (see `Wire`).

    Args:
        model: the model's name on the server.
        max_tokens_field: the body's field for `Settings.max_tokens`. Left out, it is
            `max_completion_tokens` for names that start with o1, o3, o4 or gpt-5, else
            `max_tokens`.
        reasoning: whether a turn's reasoning goes back to the server: `auto` is on turns that
            called tools, under the name it came by; `never` is for servers that refuse it.
        finish_words: words that the server sends beside those of the wire.
    """

    model: str
    _: KW_ONLY
    max_tokens_field: MaxTokensField | None = None
    reasoning: ReasoningReturn = "auto"
    finish_words: FinishWords = field(default_factory=dict[str, FinishWord], repr=False)
    name: str = field(default=CHAT_WIRE, init=False)
    path: str = field(default="/chat/completions", init=False)

    def headers(self, api_key: str) -> Mapping[str, str]:
        """Return the bearer header; nothing for a server that needs no key."""
        return {"authorization": f"Bearer {api_key}"} if api_key else {}

    def encoder(self) -> PrefixEncoder:
        """Return a fresh encoder for one run."""
        reasons = _is_reasoning_model(self.model)
        by_name = "max_completion_tokens" if reasons else "max_tokens"
        limit = self.max_tokens_field or by_name
        return chat_encoder(self.model, limit, reasoning=self.reasoning == "auto")

    def decoder(self) -> ChatDecoder:
        """Return a fresh decoder for one stream."""
        return ChatDecoder({**CHAT_WORDS, **self.finish_words})

    def error(self, status: int, body: bytes) -> ProviderError:
        """Return the error that an HTTP refusal means; never raises."""
        return http_error(CHAT_WIRE, status, body)
