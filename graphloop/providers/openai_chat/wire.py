"""The wire format of OpenAI chat completions and compatible servers, for one model.

vLLM, llama.cpp, Groq, Together, DeepSeek, Mistral, OpenRouter and others use this format with small
differences. This module does no I/O: the provider posts the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, Literal, TypeAlias, final

from ...errors import ProviderError
from ...values import FinishReason, ToolSpec
from ..base import ServerEvent
from ..encoder import PrefixEncoder
from ..finish_words import FinishWord, FinishWords
from ..refusals import http_error
from ..wire_json import is_list, is_object, json_bytes, parse_object
from .decode import ChatDecoder
from .encode import CALL_ID, ChatFields, chat_encoder, tool_bytes
from .messages import CHAT_WIRE

__all__ = ["CHAT_WORDS", "MaxTokensField", "OpenAIChat", "ReasoningReturn"]

MaxTokensField: TypeAlias = Literal["max_tokens", "max_completion_tokens"]
ReasoningReturn: TypeAlias = Literal["auto", "never"]

# OpenAI's reasoning models refuse `max_tokens`; many compatible servers accept only that field.
# A name may begin with a vendor's, as GitHub has it, or say that the model is fine-tuned.
_is_reasoning_model = re.compile(r"(?:openai/|ft:)?(?:o[1-9]|gpt-[5-9])").match

# Google's own endpoint for this wire, and gateways to it, keep Gemini's words.
_GEMINI: Final = "Gemini behind a gateway"
_FILTERED: Final = (
    *("safety", "recitation", "prohibited_content", "blocklist", "spii", "language"),
    *("image_safety", "image_prohibited_content", "image_recitation"),
)
_BROKEN: Final = ("malformed_function_call", "malformed_response", "unexpected_tool_call")

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
    **{word: FinishWord(FinishReason.CONTENT_FILTER, _GEMINI) for word in _FILTERED},
    "sensitive": FinishWord(FinishReason.CONTENT_FILTER, "Z.ai"),
    "error": FinishWord(None, "OpenRouter, Mistral, vLLM"),
    "abort": FinishWord(None, "vLLM, SGLang"),
    "aborted": FinishWord(None, "gateways"),
    "insufficient_system_resource": FinishWord(None, "DeepSeek"),
    "network_error": FinishWord(None, "Z.ai"),
    **{word: FinishWord(None, _GEMINI) for word in _BROKEN},
}


@final
@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """The wire format of `POST /chat/completions` for one model (see `Wire`).

    Args:
        model: the model's name on the server.
        max_tokens_field: the request field for `Settings.max_tokens`. The default is
            `max_completion_tokens` for the o series of OpenAI and for gpt-5 and later, else
            `max_tokens`.
        reasoning: whether the model's reasoning is sent back to the server. `auto` sends it on
            turns with tool calls, in the field in which it arrived. `never` is for servers that
            refuse it.
        seed_field: the request field for `Settings.seed`.
        asks_usage: whether requests ask for a report of their usage; some servers refuse this.
        call_id: a regular expression for the ids of calls that the server accepts. A call with
            another id, such as a call of another service, gets an id of its own.
        unknown_fields: whether fields of a reply that this wire does not know are sent back with
            it. Strict servers refuse such fields, even their own.
        stream: whether requests ask for a stream; False for a server without streaming.
        finish_words: finish reasons that this server sends in addition to the known words.
    """

    model: str
    _: KW_ONLY
    max_tokens_field: MaxTokensField | None = None
    reasoning: ReasoningReturn = "auto"
    seed_field: str = "seed"
    asks_usage: bool = True
    call_id: str = CALL_ID
    unknown_fields: bool = True
    stream: bool = True
    finish_words: FinishWords = field(default_factory=dict[str, FinishWord], repr=False)
    name: str = field(default=CHAT_WIRE, init=False)
    path: str = field(default="/chat/completions", init=False)

    def headers(self, api_key: str) -> Mapping[str, str]:
        """Return the authorization header, or no header if `api_key` is empty."""
        return {"authorization": f"Bearer {api_key}"} if api_key else {}

    def check_tool(self, tool: ToolSpec) -> None:
        """Refuse a tool that no request of this wire format can carry."""
        tool_bytes(tool)

    def encoder(self) -> PrefixEncoder:
        """Return a new encoder for the requests of one run."""
        reasons = _is_reasoning_model(self.model)
        by_name = "max_completion_tokens" if reasons else "max_tokens"
        limit = self.max_tokens_field or by_name
        names = ChatFields(
            limit,
            self.seed_field,
            self.asks_usage,
            self.stream,
            self.call_id,
            self.unknown_fields,
        )
        return chat_encoder(self.model, names, reasoning=self.reasoning == "auto")

    def decoder(self) -> ChatDecoder:
        """Return a new decoder for one response stream."""
        return ChatDecoder({**CHAT_WORDS, **self.finish_words}, self.model)

    def events_of(self, body: bytes) -> list[ServerEvent]:
        """Return the events of the stream that the decoder would read in place of `body`."""
        fields = parse_object(body)
        choices = fields.get("choices")
        if not is_list(choices):
            return [ServerEvent("", body)]
        fields["choices"] = [
            {**choice, "delta": _as_delta(choice.get("message"))} if is_object(choice) else choice
            for choice in choices
        ]
        return [ServerEvent("", json_bytes(fields)), ServerEvent("", b"[DONE]")]

    def error(self, status: int, body: bytes) -> ProviderError:
        """Return the `ProviderError` for an HTTP error response; never raises."""
        return http_error(CHAT_WIRE, status, body, path=self.path)


def _as_delta(message: object) -> object:
    """Return a whole message as a delta: reasoning first, as a stream has it, and calls last."""
    if not is_object(message):
        return message
    delta = {name: value for name, value in message.items() if name not in _SAID}
    delta |= {name: message[name] for name in _SAID if name in message}
    if is_list(calls := message.get("tool_calls")):
        delta["tool_calls"] = [
            {"index": index, **call} if is_object(call) else call
            for index, call in enumerate(calls)
        ]
    return delta


_SAID: Final = ("content", "refusal", "tool_calls", "function_call")
"""The fields of a message that follow its reasoning, in the order of a stream."""
