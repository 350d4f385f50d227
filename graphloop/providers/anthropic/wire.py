"""The Anthropic Messages wire format for one model; it does no I/O.

`encode.py` writes the messages, `head.py` the settings and tools; `decode.py` reads the reply.
Servers of llama.cpp and vLLM also accept this wire format.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, final

from ...errors import ConfigError, ProviderError
from ...values import FinishReason, ToolSpec
from ..base import ServerEvent
from ..encoder import PrefixEncoder
from ..finish_words import FinishWord, FinishWords
from ..refusals import http_error
from ..wire_json import JsonObject, is_list, json_bytes, parse_object
from .blocks import ANTHROPIC_WIRE
from .decode import AnthropicDecoder
from .encode import anthropic_encoder
from .head import tool_text

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
    """The wire format of `POST /v1/messages` for one model (see `Wire`).

    Args:
        model: the model's name on the server.
        max_tokens_default: sent if the settings have no `max_tokens`, which the API requires.
        betas: the beta features to list in the `anthropic-beta` header.
        bearer: whether the server takes the API key as a bearer token, as Amazon Bedrock does.
        stream: whether requests ask for a stream; False for a server without streaming.
        finish_words: stop reasons that this server sends in addition to the API's own.

    Raises:
        ConfigError: `model` is empty or `max_tokens_default` is below 1.
    """

    model: str
    _: KW_ONLY
    max_tokens_default: int = 8192
    betas: tuple[str, ...] = ()
    bearer: bool = False
    stream: bool = True
    finish_words: FinishWords = field(default_factory=dict[str, FinishWord], repr=False)
    name: str = field(default=ANTHROPIC_WIRE, init=False)
    path: str = field(default="/v1/messages", init=False)

    def __post_init__(self) -> None:
        if not self.model:
            raise ConfigError("`model`: expected a model's name, found ''. Fix: name one.")
        if self.max_tokens_default < 1:
            raise ConfigError(
                f"`max_tokens_default`: expected at least 1, found {self.max_tokens_default!r}."
            )

    def headers(self, api_key: str) -> Mapping[str, str]:
        """Return the HTTP headers with the API key, the API version and the beta features."""
        own = {"authorization": f"Bearer {api_key}"} if self.bearer else {"x-api-key": api_key}
        headers = {**own, "anthropic-version": _VERSION}
        if self.betas:
            headers["anthropic-beta"] = ",".join(self.betas)
        return headers

    def check_tool(self, tool: ToolSpec) -> None:
        """Refuse a tool that no request of this wire format can carry."""
        tool_text(tool)

    def encoder(self) -> PrefixEncoder:
        """Return a new encoder for the requests of one run."""
        return anthropic_encoder(self.model, self.max_tokens_default, stream=self.stream)

    def decoder(self) -> AnthropicDecoder:
        """Return a new decoder for one response stream."""
        return AnthropicDecoder({**ANTHROPIC_WORDS, **self.finish_words})

    def events_of(self, body: bytes) -> list[ServerEvent]:
        """Return the events of the stream that the decoder would read in place of `body`."""
        message = parse_object(body)
        blocks = message.pop("content", None)
        if not is_list(blocks):
            return [ServerEvent("", body)]
        events: list[JsonObject] = [{"type": "message_start", "message": message}]
        for index, block in enumerate(blocks):
            events.append({"type": "content_block_start", "index": index, "content_block": block})
            events.append({"type": "content_block_stop", "index": index})
        events.append({"type": "message_stop"})
        return [ServerEvent("", json_bytes(event)) for event in events]

    def error(self, status: int, body: bytes) -> ProviderError:
        """Return the `ProviderError` for an HTTP error response; never raises."""
        return http_error(ANTHROPIC_WIRE, status, body, path=self.path)
