"""A run as plain lines."""

from __future__ import annotations

import io

import pytest

from graphloop import Usage
from graphloop.cli.plain import PlainScreen
from graphloop.events import Setup
from graphloop.history import History
from graphloop.providers.base import ReasoningDelta, TextDelta
from graphloop.run import Run
from graphloop.values import FinishReason, Message, ToolResult, UserMessage
from graphloop.views.parts import (
    Part,
    StepFinish,
    StepRetry,
    StepStart,
    ToolCallPart,
    ToolResultPart,
    Warned,
)

CRITIC = UserMessage("Too long.\nCut it.", origin="critique")


def shown(*parts: Part, messages: tuple[Message, ...] = ()) -> str:
    out = io.StringIO()
    screen = PlainScreen(out)
    run = Run(
        id="r",
        graph="g",
        node="n",
        state=None,
        setup=Setup("script"),
        at=0.0,
        started_at=0.0,
        messages=History(messages),
    )
    for part in parts:
        screen.show(part, run)
    return out.getvalue()


def test_text_goes_out_as_it_comes() -> None:
    """Not by the line: a reader downstream may be a person."""
    assert shown(TextDelta("a"), TextDelta("b ")) == "ab "


def test_a_line_begins_on_a_line_of_its_own() -> None:
    """Text rarely ends with a newline, and an empty line is no ornament here."""
    call = ToolCallPart("c0.0", "id", "f", '{"x": 1}')
    result = ToolResultPart(ToolResult("c0.0", "id", "f", "no", "error"))

    assert shown(TextDelta("a"), call, result) == "a\n→ f(x=1)\n✗ f(x=1): no\n"
    assert shown(TextDelta("a\n"), call) == "a\n→ f(x=1)\n"


def test_two_turns_do_not_run_into_each_other() -> None:
    """A draft and its second version are two texts."""
    parts = (TextDelta("one"), StepStart(1), TextDelta("two"))

    assert shown(*parts) == "one\ntwo"
    assert shown(*parts, messages=(CRITIC,)) == "one\n↩ critique: Too long. Cut it.\ntwo"


def test_a_result_without_a_call_is_named_by_its_tool() -> None:
    """A resumed run shows results of calls that were asked for earlier."""
    assert shown(ToolResultPart(ToolResult("c0.0", "id", "f", "ok"))) == "✓ f: ok\n"


def test_a_retry_says_that_what_came_is_void() -> None:
    """Else the text stands there twice, unexplained."""
    assert shown(TextDelta("a"), StepRetry(0, FinishReason.LENGTH)) == "a\n↻ length: asked again\n"


def test_control_characters_and_reasoning_stay_out() -> None:
    """What is piped on is the answer, and cannot drive a terminal later."""
    quiet = StepFinish(0, FinishReason.STOP, Usage())

    assert shown(ReasoningDelta("hm"), TextDelta("\x1b[2Ja"), TextDelta("\x07"), quiet) == "[2Ja"


def test_warnings_and_notes_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """They are about the run, not of it."""
    screen = PlainScreen(out := io.StringIO())
    screen.show(TextDelta("a"), None)
    screen.show(Warned("careful"), None)
    screen.note("by the way")

    assert out.getvalue() == "a\n"
    assert capsys.readouterr().err == "warning: careful\nby the way\n"
