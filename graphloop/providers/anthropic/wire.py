"""The Anthropic Messages wire, bound to one model. Pure: formats, not transport.

`encode.py` writes the messages, `head.py` the settings and tools; `decode.py` reads the answer.
llama.cpp and vLLM speak this wire as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import final

from ...errors import ConfigError, ProviderError
from ..refusals import http_error
from .blocks import WIRE
from .decode import AnthropicDecoder
from .encode import AnthropicEncoder

__all__ = ["AnthropicMessages"]

_VERSION = "2023-06-01"


@final
@dataclass(frozen=True, slots=True)
class AnthropicMessages:
    """The wire of `POST /v1/messages` (see `Wire`).

    Args:
        model: The model's name on the server.
        max_tokens_default: Sent when the settings do not say `max_tokens`; the API demands one.
        betas: Features to name in the `anthropic-beta` header.

    Raises:
        ConfigError: `model` is empty or `max_tokens_default` is below 1.
    """

    model: str
    _: KW_ONLY
    max_tokens_default: int = 8192
    betas: tuple[str, ...] = ()
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

    def encoder(self) -> AnthropicEncoder:
        """Return a fresh encoder for one run."""
        return AnthropicEncoder(self.model, max_tokens_default=self.max_tokens_default)

    def decoder(self) -> AnthropicDecoder:
        """Return a fresh decoder for one stream."""
        return AnthropicDecoder()

    def error(self, status: int, body: bytes) -> ProviderError:
        """Return the error that an HTTP answer without a stream means; never raises."""
        return http_error(WIRE, status, body)
