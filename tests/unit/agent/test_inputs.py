"""Inputs: the question of a run, as a prompt, as messages, or as both."""

from __future__ import annotations

import pytest

from graphloop.agent.starting import conversation
from graphloop.errors import ConfigError
from graphloop.values import SystemMessage, ToolResult, UserMessage
from tests.strategies import wrong


@pytest.mark.parametrize(
    ("prompt", "messages", "found"),
    [
        (None, None, "found neither"),
        ("hi", 0, "`messages` is a list of messages; found int"),
        (None, [], "is empty"),
        (None, 0, "`messages` is a list of messages; found int"),
        (None, "hello", "`messages` is a list of messages"),
        (None, b"hello", "`messages` is a list of messages"),
        (None, UserMessage("u"), "`messages` is a list of messages"),
        (None, {"role": "user", "content": "u"}, "`messages` is a list of messages"),
        (5, None, "`prompt` is a string; found int"),
        (None, [ToolResult("", "b", "read", "two")], "holds only results of calls"),
    ],
)
def test_a_question_is_a_prompt_or_messages(prompt: object, messages: object, found: str) -> None:
    with pytest.raises(ConfigError, match=found):
        conversation(wrong(prompt), wrong(messages), None)


def test_instructions_come_first_and_only_once() -> None:
    system = SystemMessage("be kind")
    both = (system, UserMessage("hi"))

    assert (both, ()) == conversation("hi", None, "be kind")
    assert (both, ()) == conversation(None, both, "be kind")
    assert ((UserMessage(""),), ()) == conversation("", None, None)
