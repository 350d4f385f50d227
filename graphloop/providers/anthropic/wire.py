"""The Anthropic Messages wire, bound to one model. Pure: formats, not transport.

`encode.py` writes the messages, `head.py` the settings and tools; `decode.py` reads the answer.
llama.cpp and vLLM speak this wire as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, final

from ...errors import ConfigError, ProviderError
from ...values import FinishReason
from ..encoder import PrefixEncoder
from ..finish_words import FinishWord, FinishWords
from ..refusals import http_error
from .blocks import WIRE
from .decode import AnthropicDecoder
from .encode import anthropic_encoder

__all__ = ["ANTHROPIC_WORDS", "AnthropicMessages"]

_VERSION: Final = "2023-06-01"

ANTHROPIC_WORDS: Final[FinishWords] = {
    "end_turn": FinishWord(FinishReason.STOP, "Anthropic, llama.cpp, vLLM"),
    "stop_sequence": FinishWord(FinishReason.STOP_SEQUENCE, "Anthropic"),
    "tool_use": FinishWord(FinishReason.TOOL_CALLS, "Anthropic, llama.cpp, vLLM"),
    "max_tokens": FinishWord(FinishReason.LENGTH, "Anthropic, llama.cpp, vLLM"),
    "pause_turn": FinishWord(FinishReason.PAUSE, "Anthropic"),
    "compaction": FinishWord(FinishReason.PAUSE, "Anthropic"),
    "refusal": FinishWord(FinishReason.REFUSAL, "Anthropic"),
    "model_context_window_exceeded": FinishWord(FinishReason.CONTEXT_WINDOW, "Anthropic"),
}


@final
@dataclass(frozen=True, slots=True)
class AnthropicMessages:
    """The wire of `POST /v1/messages` (see `Wire`).

    Args:
        model: the model's name on the server.
        max_tokens_default: sent when the settings do not say `max_tokens`; the API demands one.
        betas: features to name in the `anthropic-beta` header.
        finish_words: words that the server sends beside those of the wire.

    Raises:
        ConfigError: `model` is empty or `max_tokens_default` is below 1.
    """

    model: str
    _: KW_ONLY
    max_tokens_default: int = 8192
    betas: tuple[str, ...] = ()
    finish_words: FinishWords = field(default_factory=dict[str, FinishWord], repr=False)
    name: str = field(default=WIRE, init=False)
    path: str = field(default="/v1/messages", init=False)

    def __post_init__(self) -> None:
        if not self.model:
            raise ConfigError("model: expected a model's name, found ''. Name one.")
        if self.max_tokens_default < 1:
            raise ConfigError(
                f"max_tokens_default: expected at least 1, found {self.max_tokens_default!r}."
            )

    def headers(self, api_key: str) -> Mapping[str, str]:
        """Return the headers that authenticate and version a request."""
        headers = {"x-api-key": api_key, "anthropic-version": _VERSION}
        if self.betas:
            headers["anthropic-beta"] = ",".join(self.betas)
        return headers

    def encoder(self) -> PrefixEncoder:
        """Return a fresh encoder for one run."""
        return anthropic_encoder(self.model, self.max_tokens_default)

    def decoder(self) -> AnthropicDecoder:
        """Return a fresh decoder for one stream."""
        return AnthropicDecoder({**ANTHROPIC_WORDS, **self.finish_words})

    def error(self, status: int, body: bytes) -> ProviderError:
        """Return the error that an HTTP refusal means; never raises."""
        return http_error(WIRE, status, body)
