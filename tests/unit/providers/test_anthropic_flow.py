"""Which events of the Anthropic wire say nothing but a little more of the same text."""

from __future__ import annotations

import json

import pytest

from graphloop.providers.anthropic.flow import anthropic_more_text

TEXT = {"type": "text_delta", "text": "word"}


def delta(said: object, **fields: object) -> bytes:
    return json.dumps({"type": "content_block_delta", "index": 1, "delta": said, **fields}).encode()


@pytest.mark.parametrize("data", [delta(TEXT), delta({**TEXT, "p": [1]}, padding="abc")])
def test_an_event_that_only_goes_on_is_read(data: bytes) -> None:
    """Unknown fields are padding: the API adds some against eavesdroppers who count bytes."""
    assert anthropic_more_text(data, 1) == "word"


@pytest.mark.parametrize(
    "data",
    [
        delta(TEXT, index=0),
        delta(TEXT, index=None),
        delta(TEXT, type="content_block_start"),
        delta({**TEXT, "type": "thinking_delta"}),
        delta({**TEXT, "text": None}),
        delta({"type": "input_json_delta", "partial_json": "{"}),
        delta({"type": "citations_delta", "citation": {}}),
        delta({"text": "word"}),
        b'{"index":1,"delta":{"type":"text_delta","text":"word"}}',
        b'{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"\\ud83d"}}',
        b'{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"\xff"}}',
        delta(TEXT)[:-1] + b',"x":' + b"[" * 100_000,
        delta(TEXT)[:-1],
        b"null",
        b"",
    ],
)
def test_an_event_that_says_anything_else_is_left_to_those_who_read_all(data: bytes) -> None:
    """A shortcut that mixes up blocks, or loses a half of a character, would be a wrong answer."""
    assert anthropic_more_text(data, 1) is None
