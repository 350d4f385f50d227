"""The words by which servers end an answer: one closed table for each wire.

Each word stands beside the services that send it. Capitals do not matter. An unknown word ends an
answer without meaning: its calls never run, and its text comes with a warning. A word for a server
that broke off ends no answer at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ..errors import StreamTruncated
from ..values import FinishReason

__all__ = ["ANTHROPIC", "CHAT", "FinishWord", "meaning", "worst"]


class FinishWord(NamedTuple):
    """The meaning of a word (None: the server broke off), and the services that send it."""

    means: FinishReason | None
    said_by: str


CHAT: Final[Mapping[str, FinishWord]] = {
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

UNKNOWN: Final = FinishWord(FinishReason.OTHER, "")

ANTHROPIC: Final[Mapping[str, FinishWord]] = {
    "end_turn": FinishWord(FinishReason.STOP, "Anthropic, llama.cpp, vLLM"),
    "stop_sequence": FinishWord(FinishReason.STOP_SEQUENCE, "Anthropic"),
    "tool_use": FinishWord(FinishReason.TOOL_CALLS, "Anthropic, llama.cpp, vLLM"),
    "max_tokens": FinishWord(FinishReason.LENGTH, "Anthropic, llama.cpp, vLLM"),
    "pause_turn": FinishWord(FinishReason.PAUSE, "Anthropic"),
    "compaction": FinishWord(FinishReason.PAUSE, "Anthropic"),
    "refusal": FinishWord(FinishReason.REFUSAL, "Anthropic"),
    "model_context_window_exceeded": FinishWord(FinishReason.CONTEXT_WINDOW, "Anthropic"),
}


BADNESS: Final[Mapping[FinishReason | None, int]] = {
    FinishReason.OTHER: 1,
    FinishReason.LENGTH: 2,
    FinishReason.CONTEXT_WINDOW: 2,
    FinishReason.REFUSAL: 3,
    FinishReason.CONTENT_FILTER: 3,
    None: 4,
}
"""How bad a meaning is; meanings that are not here end an answer well."""


def worst(words: Mapping[str, FinishWord], said: str, word: str) -> str:
    """Return the worse of two words of one answer; of equals the later."""
    before, after = [
        BADNESS.get(words.get(one.lower(), UNKNOWN).means, 0) for one in (said or word, word)
    ]
    return said if before > after else word


def meaning(words: Mapping[str, FinishWord], raw: str) -> FinishReason:
    """Return the meaning of a server's last word; an empty text means no word.

    Raises:
        StreamTruncated: the server broke off.
    """
    word = words.get(raw.lower(), UNKNOWN)
    if word.means is None or not raw:
        raise StreamTruncated(
            f"finish reason: expected a word that ends an answer, found {raw!r}: the server broke "
            "off before the model was done. Fix: ask again; what came is not an answer."
        )
    return word.means
