"""Costs: for usage as services document it, graphloop and genai-prices come to one price.

genai-prices reads the raw usage of a response itself, by its own table of each service's fields.
graphloop reads it by the wire, counts cached and reasoning tokens apart, and prices the sum.
Sound, pictures and video, an hour in a cache and searches have prices of their own. The fields:

- OpenAI: `prompt_tokens_details` and `completion_tokens_details` of
  https://platform.openai.com/docs/api-reference/chat/object
- Anthropic: `cache_creation` and `server_tool_use` of
  https://platform.claude.com/docs/en/build-with-claude/prompt-caching
- Google: `ModalityTokenCount` of https://ai.google.dev/api/generate-content#UsageMetadata
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from genai_prices import extract_usage

from graphloop.providers import UsageSoFar, price
from graphloop.providers.anthropic.wire import AnthropicMessages
from graphloop.providers.base import ServerEvent, Wire
from graphloop.providers.google.wire import GoogleGemini
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.providers.openai_responses.wire import OpenAIResponses
from graphloop.spending import UsageDetails
from graphloop.values import AssistantMessage, FinishReason, Reply, Usage, evolve


@dataclass(frozen=True)
class Billed:
    """The usage of a response, and what it counts.

    Attributes:
        provider: the service's id in genai-prices.
        flavor: the form of the response, as genai-prices names it.
        model: the model.
        raw: the usage, as the service documents it.
        counted: the usage as graphloop counts it.
    """

    provider: str
    flavor: str
    model: str
    raw: dict[str, Any]
    counted: Usage = field(default_factory=Usage)


CHAT = {
    "prompt_tokens": 2_000,
    "completion_tokens": 700,
    "total_tokens": 2_700,
    "prompt_tokens_details": {"cached_tokens": 1_500},
    "completion_tokens_details": {"reasoning_tokens": 300},
}
READ = Usage(500, 700, 1_500, 0, 300)
"""What `CHAT` counts: reasoning tokens are among the completion tokens."""
RESPONSES = {
    "input_tokens": 2_000,
    "input_tokens_details": {"cached_tokens": 1_500},
    "output_tokens": 700,
    "output_tokens_details": {"reasoning_tokens": 300},
    "total_tokens": 2_700,
}
XAI = CHAT | {"completion_tokens": 400}
"""xAI's reasoning tokens are not among its completion tokens; the total has both."""
DEEPSEEK = CHAT | {"prompt_cache_hit_tokens": 1_500, "prompt_cache_miss_tokens": 500}
MESSAGES = {
    "input_tokens": 500,
    "cache_read_input_tokens": 1_500,
    "cache_creation_input_tokens": 400,
    "output_tokens": 700,
    "output_tokens_details": {"thinking_tokens": 300},
}
GEMINI = {
    "promptTokenCount": 2_000,
    "cachedContentTokenCount": 1_500,
    "candidatesTokenCount": 400,
    "thoughtsTokenCount": 300,
    "toolUsePromptTokenCount": 100,
    "totalTokenCount": 2_800,
}
SPOKEN = CHAT | {
    "prompt_tokens_details": {
        "cached_tokens": 0,
        "text_tokens": 400,
        "audio_tokens": 1_500,
        "image_tokens": 100,
    },
    "completion_tokens_details": {"text_tokens": 100, "audio_tokens": 600},
}
HOUR = MESSAGES | {
    "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 300},
    "server_tool_use": {"web_search_requests": 3, "web_fetch_requests": 1},
}
"""Tokens that a cache keeps for an hour cost more to write than those of five minutes."""
HEARD = GEMINI | {
    "promptTokensDetails": [
        {"modality": "TEXT", "tokenCount": 800},
        {"modality": "AUDIO", "tokenCount": 700},
        {"modality": "VIDEO", "tokenCount": 300},
        {"modality": "DOCUMENT", "tokenCount": 150},
        {"modality": "IMAGE", "tokenCount": 50},
    ],
    "cacheTokensDetails": [
        {"modality": "TEXT", "tokenCount": 900},
        {"modality": "AUDIO", "tokenCount": 600},
    ],
    "toolUsePromptTokensDetails": [{"modality": "AUDIO", "tokenCount": 100}],
}
DRAWN = GEMINI | {
    "cachedContentTokenCount": 0,
    "candidatesTokensDetails": [
        {"modality": "TEXT", "tokenCount": 100},
        {"modality": "IMAGE", "tokenCount": 300},
    ],
}
LIVE = DRAWN | {
    "promptTokensDetails": [{"modality": "VIDEO", "tokenCount": 900}],
    "candidatesTokensDetails": [{"modality": "AUDIO", "tokenCount": 300}],
}
BILLED = [
    Billed("openai", "chat", "gpt-5", CHAT, READ),
    Billed("openai", "responses", "gpt-5", RESPONSES, READ),
    Billed("azure", "chat", "gpt-5", CHAT, READ),
    Billed("x-ai", "chat", "grok-3-mini", XAI, READ),
    Billed("deepseek", "chat", "deepseek-reasoner", DEEPSEEK, READ),
    Billed("groq", "default", "openai/gpt-oss-120b", CHAT, READ),
    Billed("openrouter", "chat", "openai/gpt-5", CHAT, READ),
    Billed("mistral", "default", "mistral-large-latest", CHAT, READ),
    Billed("anthropic", "default", "claude-opus-4-1", MESSAGES, Usage(500, 700, 1_500, 400, 300)),
    Billed("google", "default", "gemini-2.5-pro", GEMINI, Usage(600, 700, 1_500, 0, 300)),
    Billed(
        *("openai", "chat", "gpt-audio", SPOKEN),
        Usage(
            *(2_000, 700),
            details=UsageDetails(
                input_audio_tokens=1_500, input_image_tokens=100, output_audio_tokens=600
            ),
        ),
    ),
    Billed(
        *("anthropic", "default", "claude-opus-4-1", HOUR),
        Usage(
            *(500, 700, 1_500, 400, 300, 4),
            details=UsageDetails(cache_write_1h_tokens=300, web_searches=3),
        ),
    ),
    Billed(
        *("google", "default", "gemini-2.5-flash", HEARD),
        Usage(
            *(600, 700, 1_500, 0, 300),
            details=UsageDetails(
                input_audio_tokens=800,
                input_image_tokens=200,
                input_video_tokens=300,
                cache_audio_read_tokens=600,
            ),
        ),
    ),
    Billed(
        *("google", "default", "gemini-2.5-flash-image", DRAWN),
        Usage(2_100, 700, 0, 0, 300, details=UsageDetails(output_image_tokens=300)),
    ),
    Billed(
        *("google", "default", "gemini-3.1-flash-live-preview", LIVE),
        Usage(
            *(2_100, 700, 0, 0, 300),
            details=UsageDetails(input_video_tokens=900, output_audio_tokens=300),
        ),
    ),
]


def wire_of(case: Billed) -> Wire:
    """Return the wire of a service's responses."""
    if case.provider == "anthropic":
        return AnthropicMessages(case.model)
    if case.provider == "google":
        return GoogleGemini(case.model)
    return OpenAIResponses(case.model) if case.flavor == "responses" else OpenAIChat(case.model)


def streamed(case: Billed) -> Usage:
    """Return the usage that the wire reads in the event that reports it."""
    events: list[dict[str, Any]]
    match wire_of(case):
        case AnthropicMessages():
            events = [
                {"type": "message_start", "message": {"role": "assistant", "content": list[str]()}},
                {"type": "message_delta", "delta": {}, "usage": case.raw},
            ]
        case GoogleGemini():
            events = [{"usageMetadata": case.raw}]
        case OpenAIResponses():
            done = {"status": "completed", "output": list[str](), "usage": case.raw}
            events = [{"type": "response.completed", "response": done}]
        case _:
            events = [{"choices": [], "usage": case.raw}]
    decoder = wire_of(case).decoder()
    found = [
        item.usage
        for event in events
        for item in decoder.feed(
            ServerEvent(str(event.get("type", "message")), json.dumps(event).encode())
        )
        if isinstance(item, UsageSoFar)
    ]
    return found[-1]


@pytest.mark.parametrize("case", BILLED, ids=lambda case: f"{case.provider}-{case.model}")
def test_a_reply_costs_what_genai_prices_reads_itself(case: Billed) -> None:
    """No token is paid twice, or left out."""
    usage = streamed(case)
    reply = Reply(AssistantMessage(()), FinishReason.STOP, usage, model=case.model)
    name = "usageMetadata" if case.provider == "google" else "usage"
    model = "modelVersion" if case.provider == "google" else "model"
    extracted = extract_usage(
        {name: case.raw, model: case.model}, provider_id=case.provider, api_flavor=case.flavor
    )
    expected = float(extracted.calc_price().total_price)

    assert usage == case.counted
    assert expected > 0
    assert price(reply, service=case.provider) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("model", "details"),
    [
        ("gpt-audio", UsageDetails(input_audio_tokens=1_000)),
        ("claude-opus-4-1", UsageDetails(cache_write_1h_tokens=1_000)),
        ("gemini-2.5-flash-image", UsageDetails(output_image_tokens=1_000)),
        ("claude-opus-4-1", UsageDetails(web_searches=1)),
        ("gpt-5", UsageDetails(web_searches=1)),
    ],
)
def test_what_has_a_price_of_its_own_is_not_paid_as_text(model: str, details: UsageDetails) -> None:
    """Each costs more than the same count of text."""
    plain = Usage(1_000, 1_000, 0, 1_000)

    def cost(usage: Usage) -> float:
        found = price(Reply(AssistantMessage(()), FinishReason.STOP, usage, model=model))
        assert found is not None
        return found

    assert cost(evolve(plain, details=details)) > cost(plain) > 0


def test_details_that_contradict_their_counts_are_left_out() -> None:
    """A server that tells more sound than tokens breaks no run: its counts have the usual price."""
    absurd = Usage(10, 10, details=UsageDetails(input_audio_tokens=500))
    reply = Reply(AssistantMessage(()), FinishReason.STOP, absurd, model="gpt-audio")

    assert price(reply) == price(evolve(reply, usage=Usage(10, 10)))


def test_details_are_summed_over_the_calls_of_a_run() -> None:
    """A run's usage has them, and the difference of two sums, too."""
    one = Usage(9, 9, details=UsageDetails(input_audio_tokens=3, web_searches=1))
    total = one + Usage(1, 1) + one

    assert total == Usage(19, 19, details=UsageDetails(input_audio_tokens=6, web_searches=2))
    assert total.details - one.details == one.details
