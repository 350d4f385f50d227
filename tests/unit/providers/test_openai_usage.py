"""Token counts of the OpenAI chat wire."""

from __future__ import annotations

import pytest

from graphloop.providers.openai_chat.usage import read_usage
from graphloop.values import Usage


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}, Usage(10, 4)),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 8}}, Usage(2, 0, 8)),
        ({"prompt_tokens": 10, "prompt_cache_hit_tokens": 8}, Usage(2, 0, 8)),
        ({"prompt_tokens": 3, "cached_tokens": 8}, Usage(0, 0, 8)),
        (
            {"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 5}},
            Usage(output_tokens=9, reasoning_tokens=5),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 4,
                "total_tokens": 19,
                "completion_tokens_details": {"reasoning_tokens": 5},
            },
            Usage(10, 9, reasoning_tokens=5),
        ),
        ({"prompt_tokens": None, "completion_tokens": "4", "total_tokens": True}, Usage()),
        ({"prompt_tokens": -1, "prompt_tokens_details": None}, Usage()),
    ],
)
def test_usage_means_the_same_as_on_every_wire(usage: dict[str, object], expected: Usage) -> None:
    """Input excludes what a cache gave, output includes reasoning; servers differ."""
    assert expected == read_usage(usage)
