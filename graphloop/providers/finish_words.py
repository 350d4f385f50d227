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

__all__ = ["ANTHROPIC", "CHAT", "Word", "meaning", "worst"]


class Word(NamedTuple):
    """The meaning of a word (None: the server broke off), and the services that send it."""

    means: FinishReason | None
    said_by: str


CHAT: Final[Mapping[str, Word]] = {
    "stop": Word(FinishReason.STOP, "OpenAI and nearly all others"),
    "end_turn": Word(FinishReason.STOP, "Anthropic behind a gateway, xAI"),
    "eos": Word(FinishReason.STOP, "Together"),
    "eos_token": Word(FinishReason.STOP, "text-generation-inference"),
    "complete": Word(FinishReason.STOP, "Cohere behind a gateway"),
    "stop_sequence": Word(FinishReason.STOP_SEQUENCE, "Anthropic behind a gateway"),
    "tool_calls": Word(FinishReason.TOOL_CALLS, "OpenAI and nearly all others"),
    "function_call": Word(FinishReason.TOOL_CALLS, "OpenAI, the wire's old form"),
    "tool_use": Word(FinishReason.TOOL_CALLS, "Anthropic behind a gateway"),
    "length": Word(FinishReason.LENGTH, "OpenAI and nearly all others"),
    "model_length": Word(FinishReason.LENGTH, "Mistral"),
    "max_tokens": Word(FinishReason.LENGTH, "Anthropic or Gemini behind a gateway"),
    "max_output_tokens": Word(FinishReason.LENGTH, "OpenAI Responses behind a gateway"),
    "model_context_window_exceeded": Word(
        FinishReason.CONTEXT_WINDOW, "Anthropic behind a gateway, Z.ai"
    ),
    "refusal": Word(FinishReason.REFUSAL, "Anthropic behind a gateway"),
    "content_filter": Word(FinishReason.CONTENT_FILTER, "OpenAI, Azure, DeepSeek, OpenRouter"),
    "safety": Word(FinishReason.CONTENT_FILTER, "Gemini behind a gateway"),
    "recitation": Word(FinishReason.CONTENT_FILTER, "Gemini behind a gateway"),
    "prohibited_content": Word(FinishReason.CONTENT_FILTER, "Gemini behind a gateway"),
    "blocklist": Word(FinishReason.CONTENT_FILTER, "Gemini behind a gateway"),
    "sensitive": Word(FinishReason.CONTENT_FILTER, "Z.ai"),
    "error": Word(None, "OpenRouter, Mistral, vLLM"),
    "abort": Word(None, "vLLM, SGLang"),
    "aborted": Word(None, "gateways"),
    "insufficient_system_resource": Word(None, "DeepSeek"),
    "network_error": Word(None, "Z.ai"),
    "malformed_function_call": Word(None, "Gemini behind a gateway"),
}

UNKNOWN: Final = Word(FinishReason.OTHER, "")

ANTHROPIC: Final[Mapping[str, Word]] = {
    "end_turn": Word(FinishReason.STOP, "Anthropic, llama.cpp, vLLM"),
    "stop_sequence": Word(FinishReason.STOP_SEQUENCE, "Anthropic"),
    "tool_use": Word(FinishReason.TOOL_CALLS, "Anthropic, llama.cpp, vLLM"),
    "max_tokens": Word(FinishReason.LENGTH, "Anthropic, llama.cpp, vLLM"),
    "pause_turn": Word(FinishReason.PAUSE, "Anthropic"),
    "compaction": Word(FinishReason.PAUSE, "Anthropic"),
    "refusal": Word(FinishReason.REFUSAL, "Anthropic"),
    "model_context_window_exceeded": Word(FinishReason.CONTEXT_WINDOW, "Anthropic"),
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


def worst(words: Mapping[str, Word], said: str, word: str) -> str:
    """Return the worse of two words of one answer; of equals the later."""
    before, after = [
        BADNESS.get(words.get(one.lower(), UNKNOWN).means, 0) for one in (said or word, word)
    ]
    return said if before > after else word


def meaning(words: Mapping[str, Word], raw: str) -> FinishReason:
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
