"""The OpenAI chat-completions wire, and the servers compatible with it.

vLLM, llama.cpp, Groq, Together, DeepSeek, Mistral, OpenRouter and others speak it, each a little
differently. This module binds the wire to one model, with an encoder and a decoder in modules of
their own. It does no I/O: the provider posts the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, TypeAlias, final

from ..errors import ProviderError
from .openai_decode import ChatDecoder
from .openai_encode import ChatEncoder
from .openai_messages import WIRE
from .refusals import http_error

__all__ = ["MaxTokensField", "OpenAIChat", "ReasoningReturn"]

MaxTokensField: TypeAlias = Literal["max_tokens", "max_completion_tokens"]
ReasoningReturn: TypeAlias = Literal["auto", "never"]

# OpenAI's reasoning models refuse `max_tokens`; many compatible servers know nothing else.
_is_reasoning_model = re.compile(r"(?:o1|o3|o4|gpt-5)").match


@final
@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """The wire of `POST /chat/completions` (see `Wire`).

    Args:
        model: The model's name on the server.
        max_tokens_field: The body's field for `Settings.max_tokens`. Left out, it is
            `max_completion_tokens` for names that start with o1, o3, o4 or gpt-5, else
            `max_tokens`.
        reasoning: Whether a turn's reasoning goes back to the server: `auto` is on turns that
            called tools, under the name it came by; `never` is for servers that refuse it.
    """

    model: str
    _: KW_ONLY
    max_tokens_field: MaxTokensField | None = None
    reasoning: ReasoningReturn = "auto"
    name: str = field(default=WIRE, init=False)
    path: str = field(default="/chat/completions", init=False)

    def headers(self, api_key: str) -> Mapping[str, str]:
        """Return the bearer header; nothing for a server that needs no key."""
        return {"authorization": f"Bearer {api_key}"} if api_key else {}

    def encoder(self) -> ChatEncoder:
        """Return a fresh encoder for one run."""
        reasons = _is_reasoning_model(self.model)
        by_name = "max_completion_tokens" if reasons else "max_tokens"
        limit = self.max_tokens_field or by_name
        return ChatEncoder(self.model, limit, reasoning=self.reasoning == "auto")

    def decoder(self) -> ChatDecoder:
        """Return a fresh decoder for one stream."""
        return ChatDecoder()

    def error(self, status: int, body: bytes) -> ProviderError:
        """Return the error that an HTTP answer without a stream means; never raises."""
        return http_error(WIRE, status, body)
