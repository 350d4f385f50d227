"""A run on a display: plain lines for a pipe, live lines on a terminal, and JSON lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphloop import Agent, EndReason, Usage
from graphloop.cli.display import JsonDisplay, TextDisplay
from graphloop.errors import Overloaded
from graphloop.events import Setup
from graphloop.media import Inline
from graphloop.parts.kinds import (
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
from graphloop.providers.base import (
    MediaDelta,
    ProviderToolDelta,
    ProviderToolState,
    ReasoningDelta,
    TextDelta,
)
from graphloop.run import History, Run
from graphloop.testing import ScriptedModel
from graphloop.tools import ToolProgress
from graphloop.values import FinishReason, MediaPart, Message, TextPart, ToolResult, UserMessage
from tests.unit.cli.command_line import ROOT, STORE, shown, write
from tests.unit.cli.terminal import Terminal

FINISH = Finish(FinishReason.STOP, EndReason.MAX_STEPS, ("max_steps",), Usage(1, 2))
CALL = ToolCallPart("c0.0", "id", "f", '{"x": 1}')
EDIT = ToolState("c0.0", "f", "executing", arguments='{"x": 2}')
RESULT = ToolResultPart(ToolResult("c0.0", "id", "f", "ok"))
PICTURE = MediaPart("image/png", Inline(b"x"), "a.png")
PHOTO = ToolResultPart(ToolResult("c0.0", "id", "f", (TextPart("Door:"), PICTURE)))
SOUND = (MediaDelta(0, "audio/wav", "AAAA"), MediaDelta(0, "audio/wav", "AAAA"))
FAILURE = ToolResultPart(ToolResult("c0.0", "id", "f", "a\n b" * 99, status="error"))
ANSWER = ToolResultPart(ToolResult("c0.0", "id", "final_answer", '{"city": "Lisbon"}'))


def test_a_part_is_its_type_and_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    """Programs read these names, so they do not change."""
    display = JsonDisplay()
    for part in (TextDelta("é\n\x1b"), RESULT, ErrorPart(Overloaded("busy")), FINISH):
        display.show(part, None)

    text, result, error, finish = map(json.loads, capsys.readouterr().out.splitlines())
    assert text == {"type": "text-delta", "text": "é\n\x1b"}
    assert result == {
        "type": "tool-result",
        "result": {
            "key": "c0.0",
            "call_id": "id",
            "name": "f",
            "content": "ok",
            "status": "ok",
            "data": "",
            "role": "tool",
        },
        "phase": "turn",
    }
    assert error == {"type": "error", "error": "Overloaded", "message": "busy"}
    assert (finish["finish_reason"], finish["end_reason"]) == ("stop", "max_steps")
    assert next(iter(finish)) == "type"


def test_only_parts_are_on_the_stdout_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    display = JsonDisplay()
    with display.open():
        print("from a tool")  # noqa: T201 - a tool may print
        display.note("a note")
        display.asked("hello")
        display.show(TextDelta("a\u202e"), None)

    assert capsys.readouterr() == (
        '{"type":"text-delta","text":"a\\u202e"}\n',
        "from a tool\na note\n",
    )


def test_the_last_json_line_has_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """The answer may not have been streamed."""
    result = Agent(ScriptedModel(["It is done."])).generate_sync("x")

    JsonDisplay().show(FINISH, result.run)

    last = json.loads(capsys.readouterr().out)
    assert (last["type"], last["text"]) == ("finish", "It is done.")


SERVER_STATES: tuple[ProviderToolState, ...] = ("started", "running", "done", "failed")


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((TextDelta("a\nb"), CALL, RESULT), ["a", "b", "→ f(x=1)", "✓ f(x=1): ok"]),
        ((TextDelta("a"), StepStart(1), TextDelta("b")), ["a", "b"]),
        ((TextDelta("a"), StepRetry(0, FinishReason.LENGTH)), ["a", "↻ length: asked again"]),
        ((ReasoningDelta("hm"), TextDelta("yes")), ["yes"]),
        ((TextDelta("[bold] :smile: \x1b[2J\u202e"),), ["[bold] :smile: [2J\\u202e"]),
        (
            [ProviderToolDelta(0, "find", state, '{"x": 1}') for state in SERVER_STATES],
            ["→ find(x=1) on the model's server", "✗ find failed on the model's server"],
        ),
        ((CALL, ToolProgress(CALL.key, "f", 1, 2), RESULT), ["→ f(x=1)", "✓ f(x=1): ok"]),
        ((RESULT,), ["✓ f: ok"]),
        ((PHOTO,), ["✓ f: Door: [image 'a.png' of type 'image/png']"]),
        (
            (TextDelta("A fox."), *SOUND, StepStart(1), SOUND[0]),
            ["A fox.", "[audio of type 'audio/wav']", "[audio of type 'audio/wav']"],
        ),
        ((CALL, EDIT, RESULT), ["→ f(x=1)", "✓ f(x=2) (edited): ok"]),
        ((FAILURE,), ["✗ f: " + " ".join(("a\n b" * 99).split())[:199] + "…"]),
        ((ANSWER,), ['{"city": "Lisbon"}']),
        # Only the calls of a child run are shown.
        (
            [SubAgent(("c0.0",), ("desk\x1b",), part) for part in (CALL, EDIT, RESULT)]
            + [SubAgent(("c0.0",), ("desk",), TextDelta("hidden"))],
            ["→ desk > f(x=1)", "✓ desk > f(x=2) (edited): ok"],
        ),
    ],
)
def test_a_pipe_gets_plain_lines(
    parts: tuple[Part, ...], expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    display = TextDisplay()
    with display.open():
        for part in parts:
            display.show(part, None)

    assert capsys.readouterr().out.splitlines() == expected


def test_warnings_are_on_stderr_and_messages_of_nodes_on_stdout(
    capsys: pytest.CaptureFixture[str],
) -> None:
    messages = History[Message]((UserMessage("Shorter.", origin="critique"),))
    run = Run(id="r", node="model_call", state=None, setup=Setup("m"), at=0.0, messages=messages)
    display = TextDisplay()
    display.show(StepStart(1), run)
    display.show(Warned("careful"), run)

    assert capsys.readouterr() == ("↩ critique: Shorter.\n", "warning: careful\n")


SENTENCE = "The quick brown fox jumps over the lazy dog, and runs on through the wood."


@pytest.mark.parametrize("columns", [40, 80])
def test_a_terminal_shows_a_run_live(columns: int, desk: Path) -> None:
    """The status line disappears, the cursor returns, and no word is broken in two."""
    write({"own.yaml": f"- text: {SENTENCE}\n"})
    arguments = ("run", "Why so?", "--script", "own.yaml")
    with Terminal(*arguments, cwd=desk, columns=columns) as terminal:
        assert terminal.end() == 0

    assert "step 1" in terminal.text
    assert terminal.raw.count("\x1b[?25l") == terminal.raw.count("\x1b[?25h") > 0
    rows = [row.strip() for row in terminal.text.splitlines()]
    assert max(map(len, rows)) <= columns
    assert "completed" in " ".join(rows)
    assert SENTENCE in " ".join(" ".join(rows).split())


@pytest.mark.usefixtures("desk")
def test_a_resumed_run_shows_its_earlier_answer() -> None:
    first = shown("run", ROOT / "examples/weather", *STORE)
    run_id = first.split()[-3]

    answer, facts = shown("resume", run_id, *STORE).splitlines()

    assert answer in first
    assert facts.startswith("completed · ")
