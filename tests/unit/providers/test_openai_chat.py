"""The OpenAI chat wire as a whole: what a session needs to post a request."""

from __future__ import annotations

import json

import pytest

from graphloop.providers.openai_chat.messages import THINKING_EXTRA
from graphloop.providers.openai_chat.wire import OpenAIChat, ReasoningReturn
from graphloop.values import (
    ModelRequest,
    ReasoningPart,
    Settings,
    TextPart,
)
from tests.openai_talk import NYC, result, said, with_settings


@pytest.mark.parametrize("model", ["o1-mini", "o3", "o4-mini", "gpt-5.1"])
def test_reasoning_models_get_max_completion_tokens(model: str) -> None:
    """OpenAI's reasoning models refuse `max_tokens`."""
    found = with_settings(Settings(max_tokens=5), model)

    assert found["max_completion_tokens"] == 5
    assert "max_tokens" not in found


@pytest.mark.parametrize(
    ("reasoning", "expected"), [("auto", "Hm"), ("never", None)], ids=["auto", "never"]
)
def test_reasoning_can_be_kept_from_the_server(
    reasoning: ReasoningReturn, expected: str | None
) -> None:
    """Strict servers refuse the field; nothing in their names says so."""
    wire = OpenAIChat("m", reasoning=reasoning)
    request = ModelRequest((said(ReasoningPart("Hm"), NYC), result("72")))

    found = json.loads(b"".join(wire.encoder().encode(request)))["messages"]

    assert found[0].get("reasoning_content") == expected


def test_reasoning_is_kept_from_the_server_in_every_form() -> None:
    """Signed blocks and typed parts are reasoning as well; other parts stay."""
    wire = OpenAIChat("m", reasoning="never")
    parts = (ReasoningPart("Hm", extra=THINKING_EXTRA), TextPart("Look:"))
    extra = '{"reasoning_details":[{"index":0}],"audio":{"id":"a"}}'
    request = ModelRequest((said(*parts, NYC, extra=extra), result("72")))

    found = json.loads(b"".join(wire.encoder().encode(request)))["messages"]

    assert list(found[0]) == ["role", "content", "tool_calls", "audio"]
    assert found[0]["content"] == "Look:"
