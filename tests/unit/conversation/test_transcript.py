"""Transcripts: everything said, none of it too long."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graphloop.conversation.transcript import transcript
from graphloop.media import Inline, MediaPart, Url
from graphloop.values import (
    AssistantMessage,
    Message,
    OpaquePart,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
)
from tests.strategies import messages


def test_a_transcript_tells_who_said_what() -> None:
    """The summary can only hold what the transcript holds."""
    told = transcript(
        (
            SystemMessage("be brief"),
            UserMessage(
                (
                    TextPart("look"),
                    MediaPart("image/*", Url("u")),
                    MediaPart("text/csv", Inline(b"d"), "a.csv"),
                )
            ),
            AssistantMessage(
                (
                    ReasoningPart("hm"),
                    TextPart("let me see"),
                    ToolCall("1", "read", '{"at": 3}'),
                    OpaquePart('{"b": 1}'),
                )
            ),
            ToolResult("c0.0", "1", "read", "no such place", "error"),
        ),
        10_000,
    )

    assert told == (
        "system: be brief\n\n"
        "user: look\n[image of type 'image/*']\n[file 'a.csv' of type 'text/csv']\n\n"
        'assistant:\nlet me see\n[calls read: {"at": 3}]\n[provider: {"b": 1}]\n\n'
        "result of read (error): no such place"
    )


def test_a_long_piece_loses_its_middle() -> None:
    """One page of a log must not push out all the rest."""
    text = "a" * 3_000 + "b" * 3_000

    told = transcript((UserMessage(text),), 10_000)

    assert told == f"user: {'a' * 2_000}\n[… 2000 characters left out …]\n{'b' * 2_000}"


@given(history=st.lists(messages, max_size=6), chars_max=st.integers(0, 60))
def test_a_transcript_is_about_as_long_as_allowed(history: list[Message], chars_max: int) -> None:
    """It has to fit into the window of the model that reads it."""
    assert len(transcript(history, chars_max)) <= chars_max + 60


def test_a_long_transcript_keeps_its_ends() -> None:
    """The beginning tells what was wanted, the end what came of it."""
    told = transcript([UserMessage(f"line {at}") for at in range(100)], 100)

    assert told.startswith("user: line 0\n")
    assert told.endswith("user: line 99")
