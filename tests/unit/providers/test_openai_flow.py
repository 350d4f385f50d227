"""Which chunks of the OpenAI chat wire say nothing but a little more text."""

from __future__ import annotations

import json

import pytest

from graphloop.providers.openai_chat.flow import more_text

PLAIN: dict[str, object] = {"delta": {"content": "word"}, "index": 0, "finish_reason": None}


def chunk(choice: object, **envelope: object) -> bytes:
    return json.dumps({"id": "x", "choices": [choice], **envelope}).encode()


@pytest.mark.parametrize(
    "data",
    [
        chunk(PLAIN),
        chunk({"delta": {"content": "word"}}),
        chunk({**PLAIN, "logprobs": None}, usage=None, error=None, model="m"),
        chunk({"delta": {"role": "assistant", "content": "word"}}),
        chunk({"delta": {"content": "word", "tool_calls": None, "refusal": None}}),
    ],
)
def test_a_chunk_that_only_goes_on_is_read(data: bytes) -> None:
    """The envelope around it says what the chunks before it said."""
    assert more_text(data) == "word"


@pytest.mark.parametrize(
    "data",
    [
        chunk({**PLAIN, "finish_reason": "stop"}),
        chunk({**PLAIN, "index": 1}),
        chunk({"delta": {"content": None}}),
        chunk({"delta": {}}),
        chunk({"delta": {"content": "word", "tool_calls": [{"index": 0}]}}),
        chunk({"delta": {"content": "word", "reasoning": "hm"}}),
        chunk({"delta": {"content": "word", "annotations": []}}),
        chunk({"delta": {"content": [{"type": "text", "text": "word"}]}}),
        chunk(PLAIN, usage={"prompt_tokens": 1}),
        chunk(PLAIN, error={"message": "slot died"}),
        json.dumps({"choices": [PLAIN, PLAIN]}).encode(),
        json.dumps({"choices": []}).encode(),
        b'{"choices":[{"delta":{"content":"\\ud83d"}}]}',
        b'{"choices":[{"delta":{"content":"\xff"}}]}',
        chunk(PLAIN)[:-1] + b',"x":' + b"[" * 100_000,
        chunk(PLAIN)[:-1],
        b"[DONE]",
        b"null",
        b"",
    ],
)
def test_a_chunk_that_says_anything_else_is_left_to_those_who_read_all(data: bytes) -> None:
    """A shortcut that overlooks a finish, a call or an error would be a wrong answer."""
    assert more_text(data) is None
