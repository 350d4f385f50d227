"""Token counts of the OpenAI chat wire, translated to `Usage`.

`prompt_tokens` includes tokens from a prompt cache; reasoning is part of `completion_tokens`,
except on servers (xAI, Gemini's compatible endpoint) whose `total_tokens` shows that it is not.
"""

from __future__ import annotations

from ..values import Usage
from .wire_json import JsonObject, is_object

__all__ = ["read_usage"]


def read_usage(usage: JsonObject) -> Usage:
    """Return the counts of a `usage` object; a missing or odd count is 0."""
    prompt = _count(usage, "prompt_tokens")
    completion = _count(usage, "completion_tokens")
    # DeepSeek and Moonshot name the cached tokens beside the details, not in them.
    cached = (
        _detail(usage, "prompt_tokens_details", "cached_tokens")
        or _count(usage, "prompt_cache_hit_tokens")
        or _count(usage, "cached_tokens")
    )
    reasoning = _detail(usage, "completion_tokens_details", "reasoning_tokens")
    if reasoning and _count(usage, "total_tokens") == prompt + completion + reasoning:
        completion += reasoning
    return Usage(
        input_tokens=max(0, prompt - cached),
        output_tokens=completion,
        cache_read_tokens=cached,
        reasoning_tokens=reasoning,
    )


def _detail(usage: JsonObject, group: str, name: str) -> int:
    details = usage.get(group)
    return _count(details, name) if is_object(details) else 0


def _count(counts: JsonObject, name: str) -> int:
    value = counts.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
