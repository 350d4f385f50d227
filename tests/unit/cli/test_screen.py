"""A run on a screen: plain lines for a pipe, live on a terminal, and JSON lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphloop import Agent, EndReason, Usage
from graphloop.cli.screen import JsonScreen, TextScreen
from graphloop.errors import Overloaded
from graphloop.events import Setup
from graphloop.parts.parts import (
    ErrorPart,
    Finish,
    Part,
    StepRetry,
    StepStart,
    SubAgent,
    ToolCallPart,
    ToolResultPart,
    ToolState,
    Warned,
)
from graphloop.providers.base import ReasoningDelta, TextDelta
from graphloop.run import History, Run
from graphloop.testing import ScriptedModel
from graphloop.values import FinishReason, ToolResult, UserMessage
from tests.unit.cli.command_line import ROOT, here
from tests.unit.cli.terminal import Terminal


def lines(capsys: pytest.CaptureFixture[str], *parts: Part) -> list[dict[str, object]]:
    """Return what programs get of these parts."""
    screen = JsonScreen()
    for part in parts:
        screen.show(part, None)
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_part_is_its_type_and_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    """Programs read these names: they are the Python ones, and stay."""
    finish = Finish(FinishReason.STOP, EndReason.MAX_STEPS, ("max_steps",), Usage(1, 2))

    first, second, third, fourth = lines(
        capsys,
        TextDelta("é\n\x1b"),
        ToolResultPart(ToolResult("c0.0", "id", "f", "ok")),
        ErrorPart(Overloaded("busy")),
        finish,
    )

    assert first == {"type": "text-delta", "text": "é\n\x1b"}
    assert second == {
        "type": "tool-result",
        "result": {
            "key": "c0.0",
            "call_id": "id",
            "name": "f",
            "content": "ok",
            "status": "ok",
            "role": "tool",
        },
        "phase": "turn",
    }
    assert third == {"type": "error", "error": "Overloaded", "message": "busy"}
    assert (fourth["finish_reason"], fourth["end_reason"]) == ("stop", "max_steps")
    assert next(iter(fourth)) == "type"


def test_a_tool_that_prints_does_not_break_the_json_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One foreign line, and the reader's parser fails."""
    screen = JsonScreen()
    with screen.open():
        print("from a tool")  # noqa: T201 - what a user's tool may do
        screen.note("a note")
        screen.asked("hello")
        screen.show(TextDelta("a\u202e"), None)

    assert capsys.readouterr() == (
        '{"type":"text-delta","text":"a\\u202e"}\n',
        "from a tool\na note\n",
    )


def test_the_last_json_line_has_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """It need not have been streamed: a person may have written it."""
    result = Agent(ScriptedModel(["It is done."])).generate_sync("x")

    JsonScreen().show(Finish(FinishReason.STOP, EndReason.COMPLETED, (), Usage(1, 2)), result.run)

    told = json.loads(capsys.readouterr().out)
    assert ("finish", "It is done.") == (told["type"], told["text"])


CALL = ToolCallPart("c0.0", "id", "f", '{"x": 1}')
RESULT = ToolResultPart(ToolResult("c0.0", "id", "f", "ok"))


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((TextDelta("a\nb"), CALL, RESULT), ["a", "b", "→ f(x=1)", "✓ f(x=1): ok"]),
        ((TextDelta("a"), StepStart(1), TextDelta("b")), ["a", "b"]),
        ((TextDelta("a"), StepRetry(0, FinishReason.LENGTH)), ["a", "↻ length: asked again"]),
        ((ReasoningDelta("hm"), TextDelta("yes")), ["yes"]),
        ((TextDelta("[bold] :smile: \x1b[2J\u202e"),), ["[bold] :smile: [2J\\u202e"]),
        ((RESULT,), ["✓ f: ok"]),
        (
            (CALL, ToolState("c0.0", "f", "executing", arguments='{"x": 2}'), RESULT),
            ["→ f(x=1)", "✓ f(x=2) (edited): ok"],
        ),
        (
            (ToolResultPart(ToolResult("c0.0", "id", "f", "a\n b" * 99, status="error")),),
            ["✗ f: " + " ".join(("a\n b" * 99).split())[:199] + "…"],
        ),
        (
            (ToolResultPart(ToolResult("c0.0", "id", "final_answer", '{"city": "Lisbon"}')),),
            ['{"city": "Lisbon"}'],
        ),
    ],
)
def test_a_pipe_gets_plain_lines(
    parts: tuple[Part, ...], expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Without colour or control characters; reasoning is not the answer."""
    screen = TextScreen()
    with screen.open():
        for part in parts:
            screen.show(part, None)

    assert capsys.readouterr().out.splitlines() == expected


def test_the_calls_of_an_agents_agent_are_told_with_their_way(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The rest of a child run is its own."""
    screen = TextScreen()
    edit = ToolState("c0.0", "f", "executing", arguments='{"x": 2}')
    for part in (CALL, TextDelta("unheard"), edit, RESULT):
        screen.show(SubAgent(("c0.0",), ("desk\x1b",), part), None)

    assert capsys.readouterr().out == "→ desk > f(x=1)\n✓ desk > f(x=2) (edited): ok\n"


def test_warnings_and_messages_of_the_graph_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A warning is none of the answer, and goes to stderr; a critic explains the second draft."""
    note = UserMessage("Shorter.", origin="critique")
    run = Run(
        id="r",
        node="model_call",
        state=None,
        setup=Setup("m"),
        at=0.0,
        messages=History((note,)),
    )
    screen = TextScreen()
    screen.show(StepStart(1), run)
    screen.show(Warned("careful"), run)

    assert capsys.readouterr() == ("↩ critique: Shorter.\n", "warning: careful\n")


ANSWER = "The quick brown fox jumps over the lazy dog, and runs on through the wood."


@pytest.mark.parametrize("columns", [40, 80])
def test_a_terminal_shows_a_run_live(columns: int, desk: Path) -> None:
    """The status line comes and goes, the cursor is back, and no word is broken in two."""
    (desk / "own.yaml").write_text(f"- text: {ANSWER}\n", encoding="utf-8")
    arguments = ("run", "Why so?", "--script", "own.yaml")
    with Terminal(*arguments, cwd=desk, columns=columns) as terminal:
        assert terminal.end() == 0

    assert "step 1" in terminal.text
    assert terminal.raw.count("\x1b[?25l") == terminal.raw.count("\x1b[?25h") > 0
    rows = [row.strip() for row in terminal.text.splitlines()]
    assert max(map(len, rows)) <= columns
    assert " ".join(rows).endswith(" s") or "completed" in " ".join(rows)
    shown = " ".join(" ".join(rows).split())
    assert ANSWER in shown


@pytest.mark.usefixtures("desk")
def test_a_resumed_run_shows_an_answer_that_was_not_streamed() -> None:
    """An earlier process has streamed it, or a person has written it."""
    target = str(ROOT / "examples/weather")
    first = here("run", target, "--store", "runs.db")
    run_id = first.stdout.split()[-3]

    again = here("resume", run_id, "--store", "runs.db")

    assert len(again.stdout.splitlines()) == 2
    assert again.stdout.splitlines()[0] in first.stdout
