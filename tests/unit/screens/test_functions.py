"""The verdict of a user's function: what it reads, and what its answer means."""

from __future__ import annotations

import asyncio

import pytest

from graphloop.errors import ConfigError
from graphloop.events import Setup
from graphloop.media import MediaPart, Url
from graphloop.outcomes import Blocked, Passed
from graphloop.run import History, Run
from graphloop.screens import ScreenFunction, ScreenInfo, ScreenVerdict, screen_callback
from graphloop.values import AssistantMessage, Message, TextPart, UserMessage


def judged(function: ScreenFunction, *messages: Message) -> tuple[bool, str]:
    """Return whether a function let the messages of a run pass, and its refusal."""
    run = Run(id="r", node="screen", state=None, setup=Setup(), at=0.0, messages=History(messages))
    checked = asyncio.run(screen_callback(function)(run))
    return checked.accepted, checked.feedback


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (True, (True, "")),
        (False, (False, "")),
        ("Only cooking.", (False, "Only cooking.")),
        (Passed(), (True, "")),
        (Blocked(), (False, "")),
    ],
)
def test_each_form_of_a_verdict_is_understood(
    verdict: ScreenVerdict, expected: tuple[bool, str]
) -> None:
    async def later(text: str) -> ScreenVerdict:
        return verdict

    assert expected == judged(lambda text: verdict, UserMessage("?"))
    assert expected == judged(later, UserMessage("?"))


@pytest.mark.parametrize("verdict", [None, "", " ", 1, Passed])
def test_what_is_no_verdict_is_an_error(verdict: object) -> None:
    """A function that forgets its `return` on one path would otherwise let everything pass."""

    def odd(text: str) -> ScreenVerdict:
        return verdict  # type: ignore[return-value]  # The test is about such a function.

    with pytest.raises(ConfigError, match="screen 'odd': expected True to pass"):
        judged(odd, UserMessage("?"))


def test_a_function_reads_what_was_said_since_the_last_answer() -> None:
    seen: list[tuple[str, ScreenInfo]] = []

    def judge(text: str, info: ScreenInfo) -> bool:
        seen.append((text, info))
        return True

    image = UserMessage(
        (TextPart("this?"), MediaPart("image/*", Url("https://example.test/a.png")))
    )
    said: tuple[Message, ...] = (
        UserMessage("old"),
        AssistantMessage((TextPart("yes"),)),
        UserMessage("new"),
        image,
    )
    judged(judge, *said)

    ((text, info),) = seen
    assert "new\n\nthis?" == text
    assert (UserMessage("new"), image) == info.said
    assert said == tuple(info.messages)
    assert "r" == info.run_id


def test_a_function_of_no_text_is_refused() -> None:
    def nothing() -> bool:
        return True

    with pytest.raises(ConfigError, match="one or two positional parameters"):
        screen_callback(nothing)  # type: ignore[arg-type]  # The test is about such a function.
