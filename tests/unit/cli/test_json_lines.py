"""A run as JSON lines."""

from __future__ import annotations

import io
import json
import typing

import pytest

from graphloop import Agent, EndReason, Usage
from graphloop.cli.json_lines import JsonScreen
from graphloop.errors import Overloaded
from graphloop.providers.base import TextDelta
from graphloop.testing import ScriptedModel
from graphloop.values import FinishReason, ToolResult
from graphloop.views.parts import ErrorPart, Finish, Part, ToolResultPart


def lines(*parts: Part) -> list[dict[str, object]]:
    screen = JsonScreen(out := io.StringIO())
    for part in parts:
        screen.show(part, None)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_part_is_its_type_and_its_fields() -> None:
    """Programs read these names: they are the Python ones, and stay."""
    finish = Finish(FinishReason.STOP, EndReason.MAX_STEPS, ("max_steps",), Usage(1, 2))

    first, second, third = lines(
        TextDelta("é\n\x1b"), ToolResultPart(ToolResult("c0.0", "id", "f", "ok")), finish
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
    assert (third["finish_reason"], third["end_reason"]) == ("stop", "max_steps")
    assert next(iter(third)) == "type"


def test_an_error_is_its_class_and_message() -> None:
    """An exception has no JSON of its own."""
    assert lines(ErrorPart(Overloaded("busy"))) == [
        {"type": "error", "error": "Overloaded", "message": "busy"}
    ]


def test_no_part_has_a_field_of_another_meaning_under_type() -> None:
    """`type` is written first and must be the part's own."""
    for kind in typing.get_args(Part):
        assert isinstance(kind.type, str)
        assert "type" not in kind.__struct_fields__


def test_what_a_tool_prints_does_not_break_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """One foreign line, and the reader's parser fails."""
    screen = JsonScreen(out := io.StringIO())
    with screen.open():
        print("from a tool")  # noqa: T201 - what a user's tool may do
        screen.note("a note")
        screen.asked("hello")
        screen.show(TextDelta("a"), None)

    assert out.getvalue() == '{"type":"text-delta","text":"a"}\n'
    assert capsys.readouterr() == ("", "from a tool\na note\n")


def test_the_last_line_has_the_answer() -> None:
    """It need not have been streamed: a person may have written it."""
    result = Agent(ScriptedModel(["It is done."])).generate_sync("x")
    screen = JsonScreen(out := io.StringIO())

    screen.show(Finish(FinishReason.STOP, EndReason.COMPLETED, (), Usage(1, 2)), result.run)

    told = json.loads(out.getvalue())
    assert ("finish", "It is done.") == (told["type"], told["text"])
