"""A run on a terminal."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from graphloop import Agent, tool
from graphloop.cli.live import LiveScreen
from graphloop.events import Setup
from graphloop.history import History
from graphloop.providers.base import ReasoningDelta, TextDelta
from graphloop.providers.script import Entry
from graphloop.run import Run, Spent
from graphloop.testing import ScriptedModel
from graphloop.values import FinishReason, ToolResult, UserMessage
from graphloop.views.parts import (
    Part,
    StepRetry,
    StepStart,
    SubAgent,
    ToolCallPart,
    ToolResultPart,
    ToolState,
    Warned,
)


def shown(*parts: Part, width: int = 40) -> list[str]:
    """Return the lines that scrolled up when these parts were shown."""
    screen = LiveScreen(Console(file=(out := io.StringIO()), width=width), lambda: 0.0)
    for part in parts:
        screen.show(part, None)
    screen.note("end")
    return out.getvalue().splitlines()[:-2]


def screen_of(replies: Sequence[Entry], *, terminal: bool) -> str:
    """Return everything that a run writes to a terminal, or only what scrolls up."""
    clock = iter(range(1_000_000))
    console = Console(file=(out := io.StringIO()), force_terminal=terminal, width=60)
    screen = LiveScreen(console, lambda: float(next(clock)) / 10)

    @tool
    async def fail(text: str) -> str:
        """Fail."""
        raise ValueError(text)

    async def watch() -> None:
        stream = Agent(ScriptedModel(replies), tools=[fail]).stream("hello")
        with screen.open():
            screen.asked("hello")
            async for part in stream.full_stream:
                screen.show(part, stream.run)
        screen.finish(await stream.result(), "run r in runs")

    asyncio.run(watch())
    return out.getvalue()


CALLING: tuple[Entry, ...] = (
    {"text": "Trying.", "calls": [{"name": "fail", "arguments": {"text": "x" * 99}}]},
    "It failed.",
)


def test_a_run_reads_from_top_to_bottom() -> None:
    """What is asked, said, done, and why it ended; an empty line between two kinds."""
    lines = screen_of(CALLING, terminal=False).splitlines()

    call = f'✗ fail(text="{"x" * 23}…) → ValueError: {"x" * 6}…'
    assert lines[:-1] == ["> hello", "", "Trying.", "", call, "", "It failed.", ""]
    assert lines[-1].startswith("completed · 2 steps · ")
    assert lines[-1].endswith(" s · run r in runs")


def test_the_status_line_comes_and_goes() -> None:
    """Node, step and tokens while it runs; afterwards the cursor is back and the line is gone."""
    written = screen_of(CALLING, terminal=True)

    assert "step 1" in written
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h") > 0
    assert "tokens" in written.splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one two three", ["one two", "three"]),
        ("onetwothree", ["onetwoth", "ree"]),
        ("漢字漢字漢字", ["漢字漢字", "漢字"]),
        ("a\n\nb", ["a", "", "b"]),
        ("12345678", ["12345678"]),
        ("12345678 9", ["12345678", "9"]),
    ],
)
def test_a_full_line_scrolls_up_at_a_blank(text: str, expected: list[str]) -> None:
    """However the text is cut into pieces; no character is lost."""
    assert shown(TextDelta(text), width=8) == expected
    assert shown(*(TextDelta(one) for one in text), width=8) == expected


def test_reasoning_is_set_apart_from_text() -> None:
    """What the model thinks is not what it says."""
    assert shown(ReasoningDelta("hm"), TextDelta("yes")) == ["hm", "", "yes"]


def test_a_retry_and_a_new_turn_end_the_line() -> None:
    """What came before them is another attempt."""
    retry = StepRetry(0, FinishReason.LENGTH)

    assert shown(TextDelta("a"), retry, TextDelta("b")) == [
        "a",
        "",
        "↻ length: asked again",
        "",
        "b",
    ]
    assert shown(TextDelta("a"), StepStart(1), TextDelta("b")) == ["a", "b"]


def test_what_the_graph_says_and_what_it_costs_is_shown() -> None:
    """A critic's feedback explains the second draft; the cost is watched while it grows."""
    console = Console(file=(out := io.StringIO()), force_terminal=True, width=60)
    screen = LiveScreen(console, lambda: 0.0)
    note = UserMessage("Shorter.", origin="critique")
    run = Run(
        id="r",
        node="model_call",
        state=None,
        setup=Setup("m"),
        at=0.0,
        messages=History((note,)),
        spent=Spent(cost_usd=0.25),
    )

    with screen.open():
        screen.show(StepStart(1), run)

    written = out.getvalue()
    assert "critique: " in written
    assert "Shorter." in written
    assert "model_call · step 1 · 0 tokens · $0.2500 · 0.0 s" in written


def test_a_warning_is_shown() -> None:
    """Something that was asked for has no full effect."""
    assert shown(Warned("careful"), TextDelta("a"))[:1] == ["warning: careful"]


def test_markup_in_text_is_text() -> None:
    """A model that writes `[bold]` means the brackets; one that writes escapes gets none."""
    call = ToolCallPart("c0.0", "id", "f", "{}")

    assert shown(TextDelta("[bold]a[/bold] :smile: \x1b[2J"), call) == [
        "[bold]a[/bold] :smile: [2J"
    ]


def test_the_calls_of_an_agents_agent_are_told_with_their_way() -> None:
    """Once they are answered they scroll up, as the run's own do."""
    call = SubAgent(("c0.0",), ("desk",), ToolCallPart("c0.0", "id", "g", '{"x": 1}'))
    answer = SubAgent(("c0.0",), ("desk",), ToolResultPart(ToolResult("c0.0", "id", "g", "hm")))
    said = SubAgent(("c0.0",), ("desk",), TextDelta("unheard"))

    assert shown(call, said, answer) == ["✓ desk > g(x=1) → hm"]
    assert shown(answer) == ["✓ desk > g → hm"]


def test_an_edited_call_is_told_with_the_arguments_that_ran() -> None:
    """Those that were asked for did nothing."""
    call = ToolCallPart("c0.0", "id", "f", '{"x": 1}')
    edit = ToolState("c0.0", "f", "executing", arguments='{"x": 2}')
    result = ToolResultPart(ToolResult("c0.0", "id", "f", "ok"))
    inner = [SubAgent(("c0.0",), ("desk",), part) for part in (call, edit, result)]

    assert shown(call, edit, result) == ["✓ f(x=2) (edited) → ok"]
    assert shown(*inner) == ["✓ desk > f(x=2) (edited) → ok"]


def test_an_answer_by_a_tool_is_told_as_the_answer() -> None:
    """Like any other text of the agent's."""
    taken = ToolResultPart(ToolResult("c0.0", "id", "final_answer", '{"city": "Lisbon"}'))

    assert shown(taken) == ['{"city": "Lisbon"}']
