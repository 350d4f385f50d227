"""Inputs: what a conversation may look like, and what is said of everything else."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from graphloop.agent.inputs import MessageInput, messages_of
from graphloop.agent.starting import conversation
from graphloop.errors import ConfigError
from graphloop.providers.anthropic.wire import AnthropicMessages
from graphloop.providers.openai_chat.messages import REASONING_EXTRA
from graphloop.providers.openai_chat.wire import OpenAIChat
from graphloop.values import (
    AssistantMessage,
    FilePart,
    ImagePart,
    Message,
    ModelRequest,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
)
from tests.openai_talk import sent
from tests.strategies import wrong

CALL = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
PDF = "data:application/pdf;base64,AAAA"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"role": "system", "content": "s"}, SystemMessage("s")),
        ({"role": "developer", "content": [{"type": "text", "text": "s"}]}, SystemMessage("s")),
        ({"role": "user", "content": "u"}, UserMessage("u")),
        (
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "u"},
                    {"type": "image_url", "image_url": {"url": "https://example.org/x.png"}},
                ],
            },
            UserMessage((TextPart("u"), ImagePart("https://example.org/x.png"))),
        ),
        ({"role": "user", "content": [TextPart("u")]}, UserMessage((TextPart("u"),))),
        (
            {"role": "assistant", "content": "a", "tool_calls": [CALL]},
            AssistantMessage((TextPart("a"), ToolCall("a", "read", "{}"))),
        ),
        ({"role": "assistant", "content": None}, AssistantMessage(())),
        (
            {"role": "assistant", "content": "a", "reasoning_content": "because"},
            AssistantMessage((ReasoningPart("because"), TextPart("a")), "openai"),
        ),
        (
            {"role": "assistant", "reasoning": "because", "tool_calls": [CALL]},
            AssistantMessage(
                (ReasoningPart("because", extra=REASONING_EXTRA), ToolCall("a", "read", "{}")),
                "openai",
            ),
        ),
        (
            {"role": "assistant", "reasoning_details": [{"type": "reasoning.encrypted"}]},
            AssistantMessage(
                (), "openai", '{"reasoning_details":[{"type":"reasoning.encrypted"}]}'
            ),
        ),
        (
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": "x", "detail": "low"}},
                    {"type": "image_url", "image_url": {"url": "x", "detail": "auto"}},
                    {"type": "file", "file": {"file_data": PDF, "filename": "a.pdf"}},
                    FilePart("AA", "application/pdf"),
                ],
            },
            UserMessage(
                (
                    ImagePart("x", detail="low"),
                    ImagePart("x"),
                    FilePart("AAAA", "application/pdf", "a.pdf"),
                    FilePart("AA", "application/pdf"),
                )
            ),
        ),
        (
            {"role": "assistant", "content": "a", "refusal": None, "annotations": [], "audio": ""},
            AssistantMessage((TextPart("a"),)),
        ),
        (
            {"role": "assistant", "tool_calls": [{**CALL, "index": 1}]},
            AssistantMessage((ToolCall("a", "read", "{}"),)),
        ),
        ({"role": "tool", "tool_call_id": "a", "name": None}, ToolResult("", "a", "", "")),
        (
            {"role": "tool", "tool_call_id": "a", "content": "no", "is_error": True},
            ToolResult("", "a", "", "no", "error"),
        ),
        (
            {"role": "tool", "tool_call_id": "a", "content": "r", "is_error": False},
            ToolResult("", "a", "", "r"),
        ),
        (
            {"role": "tool", "tool_call_id": "a", "content": "r", "name": "read"},
            ToolResult("", "a", "read", "r"),
        ),
        (UserMessage("u"), UserMessage("u")),
    ],
)
def test_messages_in_the_openai_form_become_values(
    given: Message | Mapping[str, object], message: Message
) -> None:
    """And values stay what they are."""
    assert (message,) == messages_of([given])


FLAWED: list[tuple[object, str]] = [
    ({"role": "usr", "content": "u"}, "messages[0]: `role` is one of"),
    ({"content": "u"}, "found None"),
    ("hello", "expected a message, found str"),
    ({"role": "user", "content": 5}, "a string or a list of parts; found int"),
    ({"role": "user"}, "found NoneType"),
    ({"role": "user", "content": [{"type": "audio"}]}, "messages[0].content[0]: expected"),
    (
        {"role": "system", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
        "must be text here",
    ),
    ({"role": "tool", "content": "r"}, "`tool_call_id` is a string"),
    ({"role": "tool", "tool_call_id": "a", "is_error": "no"}, "expected True or False, found 'no'"),
    ({"role": "tool", "tool_call_id": "a", "name": 5}, "`name` is a string; found 5"),
    (
        {"role": "user", "content": "u", "name": "bob"},
        "messages[0]: unknown field 'name'. Known are role, content;",
    ),
    (
        {"role": "assistant", "content": "a", "refusal": "no", "tool_call": [CALL]},
        "unknown field 'refusal', 'tool_call'. Did you mean 'tool_calls'? Known are role, content",
    ),
    ({"role": "assistant", "reasoning_content": ["x"]}, "`reasoning_content` is a string"),
    (
        {"role": "user", "content": [{"type": "text", "text": "u", "cache_control": {"a": 1}}]},
        "messages[0].content[0]: unknown field 'cache_control'",
    ),
    (
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "x", "detail": 5}}],
        },
        "messages[0].content[0].image_url: `detail` is a string; found 5",
    ),
    (
        {"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]},
        "messages[0].content[0]: expected",
    ),
    (
        {"role": "user", "content": [{"type": "file", "file": {"file_data": "AAAA"}}]},
        "messages[0].content[0].file: `file_data`: expected 'data:<type>;base64,…', found 'AAAA'",
    ),
    (
        {"role": "assistant", "reasoning_details": "because"},
        "messages[0]: `reasoning_details`: expected a list of objects, found 'because'",
    ),
    (
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}, "n": 1}]},
        "messages[0].content[0]: unknown field 'n'",
    ),
    (
        {"role": "assistant", "tool_calls": [{**CALL, "extra_content": object()}]},
        "messages[0].tool_calls[0]: expected JSON in 'extra_content'",
    ),
    (
        {
            "role": "assistant",
            "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "", "parsed": 1}}],
        },
        "messages[0].tool_calls[0].function: unknown field 'parsed'",
    ),
    ({"role": "assistant", "tool_calls": "x"}, "`tool_calls` is a list"),
    ({"role": "assistant", "tool_calls": [{}]}, "messages[0].tool_calls[0]: expected id"),
    (
        {
            "role": "assistant",
            "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}],
        },
        "arguments (a JSON string)",
    ),
]


def test_what_a_server_gave_along_with_a_call_goes_back_to_it() -> None:
    """Gemini refuses a call that has lost its thought signature."""
    signed = {"google": {"thought_signature": "c2ln"}}
    call = {**CALL, "index": 0, "extra_content": signed, "note": None}

    (found,) = messages_of([{"role": "assistant", "tool_calls": [call]}])

    assert isinstance(found, AssistantMessage)
    assert found.wire == "openai"
    assert json.loads(found.calls[0].extra) == {"extra_content": signed}
    assert sent(UserMessage("Hi"), found)[1]["tool_calls"][0]["extra_content"] == signed


@pytest.mark.parametrize(("given", "found"), FLAWED)
def test_a_message_of_the_wrong_form_is_named_by_its_place(given: object, found: str) -> None:
    """With what was expected, and what was found."""
    with pytest.raises(ConfigError) as caught:
        messages_of([wrong(given)])

    assert found in str(caught.value)


@pytest.mark.parametrize(
    "given", ["hello", b"hello", 5, UserMessage("u"), {"role": "user", "content": "u"}], ids=repr
)
def test_one_message_is_not_a_list_of_messages(given: object) -> None:
    """A string is a sequence of strings, which nobody means."""
    with pytest.raises(ConfigError, match="`messages` is a list of messages"):
        messages_of(wrong(given))


def test_a_prompt_is_one_user_message() -> None:
    """An empty one too: it is the caller's business."""
    assert ((UserMessage("hi"),), ()) == conversation("hi", None, None)
    assert ((UserMessage(""),), ()) == conversation("", None, None)


def test_instructions_come_first_and_only_once() -> None:
    """A conversation that goes on already has them."""
    system = SystemMessage("be kind")

    both = (system, UserMessage("hi"))

    assert (both, ()) == conversation("hi", None, "be kind")
    assert (both, ()) == conversation(None, both, "be kind")


@pytest.mark.parametrize(
    ("prompt", "messages", "found"),
    [
        (None, None, "found neither"),
        ("hi", [], "found both"),
        (None, [], "is empty"),
        (None, 0, "`messages` is a list of messages; found int"),
        (5, None, "`prompt` is a string; found int"),
    ],
)
def test_a_question_is_a_prompt_or_messages(prompt: object, messages: object, found: str) -> None:
    """Neither none nor two."""
    with pytest.raises(ConfigError, match=found):
        conversation(wrong(prompt), wrong(messages), None)


OPEN: list[MessageInput] = [
    UserMessage("go"),
    AssistantMessage((ToolCall("a", "read", "{}"), ToolCall("b", "read", "{}"))),
    ToolResult("", "b", "read", "two"),
]


def test_a_call_without_a_result_is_answered_as_unknown_and_told() -> None:
    """No server takes a history with a dangling call; what was done to it is a warning."""
    given, findings = conversation(None, OPEN, None)

    assert ["unknown", "ok"] == [one.status for one in given if isinstance(one, ToolResult)]
    assert 1 == len(findings)
    assert "call 0 (tool 'read', id 'a') has no result" in findings[0]


def test_a_result_without_a_call_is_left_out_and_told() -> None:
    """It would be refused, or read as the answer of something else."""
    given, findings = conversation(
        None, [UserMessage("go"), {"role": "tool", "tool_call_id": "x", "content": "?"}], None
    )

    assert ((UserMessage("go"),), 1) == (given, len(findings))


def test_a_bad_history_is_refused_where_nothing_is_to_be_mended() -> None:
    """All that is wrong with it at once, by its places."""
    with pytest.raises(ConfigError, match=r"on_bad_history='refuse':\n  1\. messages\[1\]: call 0"):
        conversation(None, OPEN, None, repair=False)


def test_open_calls_are_kept_for_whoever_answers_them() -> None:
    """A parked conversation is no broken one."""
    given, findings = conversation(None, OPEN, None, keep_open=True, repair=False)

    assert (tuple(OPEN), ()) == (given, findings)


def test_a_history_of_which_nothing_is_left_is_refused() -> None:
    """A model needs a message."""
    with pytest.raises(ConfigError, match="holds only results of calls that it does not make"):
        conversation(None, [ToolResult("", "b", "read", "two")], None)


@pytest.mark.parametrize(
    "thought",
    [
        {"reasoning_content": "because"},
        {"reasoning": "because"},
        {"reasoning_details": [{"type": "reasoning.text", "text": "because", "signature": "s"}]},
    ],
)
def test_reasoning_of_a_stored_tool_call_turn_goes_back_as_it_came(
    thought: dict[str, object],
) -> None:
    """Servers that check it refuse the turn without it, or with it under another name."""
    stored = {"role": "assistant", "content": "", "tool_calls": [{**CALL, "type": "function"}]}
    answer = {"role": "tool", "tool_call_id": "a", "content": "r"}

    request = ModelRequest(messages_of([{**stored, **thought}, answer]))
    body = json.loads(b"".join(OpenAIChat("m").encoder().encode(request)))

    assert [{**stored, **thought}, answer] == body["messages"]


def test_a_stored_image_and_file_go_back_as_they_came() -> None:
    """A detail that is dropped makes the image cost something else."""
    content = [
        {"type": "image_url", "image_url": {"url": "https://x.org/a.png", "detail": "high"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}},
    ]

    request = ModelRequest(messages_of([{"role": "user", "content": content}]))
    body = json.loads(b"".join(OpenAIChat("m").encoder().encode(request)))

    assert content == body["messages"][0]["content"]
    with pytest.raises(ConfigError, match=r"ImagePart.detail: expected .*found 'high'.* Fix: "):
        AnthropicMessages("m").encoder().encode(request)
