"""Inputs: the question of a run, as a prompt, as messages, or as both."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphloop.agent.start_and_resume import conversation
from graphloop.errors import ConfigError
from graphloop.media import Inline, MediaPart, Url
from graphloop.run import History
from graphloop.values import Message, SystemMessage, TextPart, ToolResult, UserMessage
from tests.strategies import wrong


@pytest.mark.parametrize(
    ("prompt", "messages", "found"),
    [
        (None, None, "found neither"),
        ("hi", 0, "`messages` to be a list of messages, found int"),
        (None, [], "is empty"),
        (None, 0, "`messages` to be a list of messages, found int"),
        (None, "hello", "`messages` to be a list of messages"),
        (None, b"hello", "`messages` to be a list of messages"),
        (None, UserMessage("u"), "`messages` to be a list of messages"),
        (None, {"role": "user", "content": "u"}, "`messages` to be a list of messages"),
        (5, None, "`prompt`: expected a string, or a list of texts and media, found int. Fix: "),
        ([], None, "`prompt`: expected a string, or a list of texts and media, found nothing"),
        ("", None, "`prompt`: expected a question, found ''. Fix: fill it in"),
        (" \n", None, r"`prompt`: expected a question, found ' \\n'"),
        (["", " "], None, "`prompt`: expected a question, found"),
        (Path("a.png"), None, "found PosixPath. Fix: give a list"),
        (
            [UserMessage("u")],
            None,
            r"`prompt\[0\]`: expected text, a Path, bytes or a MediaPart",
        ),
        (["u", Path("/no/a.png")], None, r"`prompt\[1\]`: `source`: .*found '/no/a.png': No such"),
        (["u", b"\0"], None, r"`prompt\[1\]`: `source`: expected bytes of a known type"),
        (None, [ToolResult("", "b", "read", "two")], "holds only results of calls"),
    ],
)
def test_a_question_is_a_prompt_or_messages(prompt: object, messages: object, found: str) -> None:
    with pytest.raises(ConfigError, match=found):
        conversation(wrong(prompt), wrong(messages), None)


def test_a_question_may_hold_texts_and_media(tmp_path: Path) -> None:
    """A path is read when the question is asked, so a later change of the file has no effect."""
    scan, png = tmp_path / "scan.pdf", b"\x89PNG\r\n\x1a\n"
    scan.write_bytes(b"%PDF-1.7")
    sound = MediaPart("audio/wav", Url("https://x/a.wav"))

    asked, _ = conversation(["What is on it?", scan, png, sound, TextPart("now")], None, None)
    scan.unlink()

    assert asked == (
        UserMessage(
            (
                TextPart("What is on it?"),
                MediaPart("application/pdf", Inline(b"%PDF-1.7"), "scan.pdf"),
                MediaPart("image/png", Inline(png)),
                sound,
                TextPart("now"),
            )
        ),
    )


def test_instructions_come_first_and_only_once() -> None:
    system = SystemMessage("be kind")
    both = History[Message]([system, UserMessage("hi")])

    assert (both, ()) == conversation("hi", None, "be kind")
    assert (both, ()) == conversation(None, both, "be kind")
