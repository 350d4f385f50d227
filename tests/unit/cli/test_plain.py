"""A run as plain lines."""

from __future__ import annotations

import io

import pytest

from graphloop import Agent, Usage
from graphloop.cli.plain import PlainScreen
from graphloop.events import Setup
from graphloop.history import History
from graphloop.providers.base import ReasoningDelta, TextDelta
from graphloop.run import Run
from graphloop.testing import ScriptedModel
from graphloop.values import FinishReason, Message, ToolResult, UserMessage
from graphloop.views.parts import (
    Part,
    StepFinish,
    StepRetry,
    StepStart,
    SubAgent,
    ToolCallPart,
    ToolResultPart,
    ToolState,
    Warned,
)

CRITIC = UserMessage("Too long.\nCut it.", origin="critique")


def shown(*parts: Part, messages: tuple[Message, ...] = ()) -> str:
    out = io.StringIO()
    screen = PlainScreen(out)
    run = Run(
        id="r",
        node="n",
        state=None,
        setup=Setup("script"),
        at=0.0,
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


def test_the_calls_of_an_agents_agent_are_told_with_their_way() -> None:
    """Only they: what a child says is for its parent. Equal keys do not mix."""
    call = ToolCallPart("c0.0", "id", "f", '{"x": 1}')
    result = ToolResultPart(ToolResult("c0.0", "id", "f", "ok"))
    inner = SubAgent(("c0.0",), ("desk",), ToolCallPart("c0.0", "id", "g", "{}"))
    answer = SubAgent(("c0.0",), ("desk",), ToolResultPart(ToolResult("c0.0", "id", "g", "hm")))
    said = SubAgent(("c0.0",), ("desk",), TextDelta("unheard"))

    assert shown(call, inner, said, answer, result) == (
        "→ f(x=1)\n→ desk > g()\n✓ desk > g(): hm\n✓ f(x=1): ok\n"
    )
    assert shown(answer) == "✓ desk > g: hm\n"


def test_an_edited_call_is_told_with_the_arguments_that_ran() -> None:
    """Those that were asked for did nothing."""
    call = ToolCallPart("c0.0", "id", "f", '{"x": 1}')
    edit = ToolState("c0.0", "f", "executing", arguments='{"x": 2}')
    result = ToolResultPart(ToolResult("c0.0", "id", "f", "ok"))
    inner = [SubAgent(("c0.0",), ("desk",), part) for part in (edit, result)]

    assert shown(call, edit, result) == "→ f(x=1)\n✓ f(x=2) (edited): ok\n"
    assert shown(*inner) == "✓ desk > f(x=2) (edited): ok\n"


def test_an_answer_by_a_tool_is_told_as_the_answer() -> None:
    """Whole, on a line of its own; one that was not taken is none."""
    taken = ToolResultPart(ToolResult("c0.0", "id", "final_answer", f'["{"x" * 999}"]'))
    refused = ToolResultPart(ToolResult("c0.0", "id", "final_answer", "Not taken."))

    assert shown(taken) == f'["{"x" * 999}"]\n'
    assert shown(refused) == "✗ final_answer: Not taken.\n"


def test_an_answer_that_was_not_streamed_is_written_at_the_end() -> None:
    """A person wrote it in place of the model's, or an earlier process had it."""
    result = Agent(ScriptedModel(["It is done."])).generate_sync("x")

    def finished(*parts: Part) -> str:
        screen = PlainScreen(out := io.StringIO())
        for part in parts:
            screen.show(part, result.run)
        screen.finish(result, "")
        return out.getvalue()

    told = "It is done.\ncompleted · 1 step"
    assert finished().startswith(told)
    assert finished(TextDelta("It is "), TextDelta("done.")).startswith(told)
    assert finished(TextDelta("A draft.")).startswith(f"A draft.\n{told}")
    assert finished(TextDelta("It is done."), StepStart(1)).count("It is done.") == 2
