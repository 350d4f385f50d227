"""The lines that a run is told in."""

from __future__ import annotations

import asyncio

import pytest

from graphloop import Agent, RunResult, stop, tool
from graphloop.cli.lines import (
    ARGUMENTS_MAX,
    RESULT_MAX,
    call_text,
    clean,
    end_facts,
    injected,
    mark,
    pending_lines,
    result_text,
)
from graphloop.testing import ScriptedModel
from graphloop.values import ResultStatus, ToolResult


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"{amount} paid"


def parked(store: str | None = None) -> RunResult[None]:
    model = ScriptedModel([{"calls": [{"name": "pay", "arguments": {"amount": 5}}]}, "done"])
    return Agent(model, tools=[pay], store=store).generate_sync("pay")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            '{"city": "Zürich", "days": [1, 2], "now": true}',
            'f(city="Zürich", days=[1, 2], now=true)',
        ),
        ("{}", "f()"),
        ("[1]", "f([1])"),
        ('{"city": ', 'f({"city":)'),
    ],
)
def test_a_call_reads_like_a_call(arguments: str, expected: str) -> None:
    """Also one whose arguments are no object, or no JSON: models write such."""
    assert call_text("f", arguments) == expected


def test_lines_stay_lines() -> None:
    """A tool that returns a page must not push everything else off the screen."""
    long = ToolResult("k", "i", "f", "word\n" * 1_000)

    assert len(call_text("f", '{"a": "' + "x" * 1_000 + '"}')) == ARGUMENTS_MAX + len("f()")
    assert len(result_text(long)) == RESULT_MAX
    assert result_text(long).startswith("word word ")
    assert result_text(ToolResult("k", "i", "f", " \n")) == "(no text)"


def test_control_characters_do_not_pass() -> None:
    """A model's text that moves the cursor or sets the title could forge what the user sees."""
    assert clean("a\x1b]0;x\x07b\x9b2J\r\n\tc°漢") == "a]0;xb2J\n\tc°漢"
    assert clean("plain") == "plain"


@pytest.mark.parametrize(
    ("status", "sign"),
    [("ok", "✓"), ("error", "✗"), ("invalid", "✗"), ("denied", "⊘"), ("not_run", "⊘")],
)
def test_a_mark_tells_how_a_call_went(status: ResultStatus, sign: str) -> None:
    """What was not let through is not the same as what failed."""
    assert mark(ToolResult("k", "i", "f", "", status)) == sign


def test_an_end_is_told_with_what_it_took() -> None:
    """A scripted run costs nothing, so nothing is said of cost."""
    result = Agent(ScriptedModel(["Hi."])).generate_sync("hello")

    assert list(end_facts(result)) == ["completed", "1 step", "11 tokens"]


def test_an_unknown_price_is_said_to_be_unknown() -> None:
    """Silence would read as "free"."""
    result = Agent(ScriptedModel(["Hi."], label="openai:own")).generate_sync("hello")
    priced = Agent(ScriptedModel(["Hi."]), price=lambda _: 0.0125).generate_sync("hello")

    assert list(end_facts(result))[-1] == "cost unknown"
    assert list(end_facts(priced))[-1] == "$0.0125"


def test_an_end_names_what_stopped_it() -> None:
    """`stop_condition` alone does not say which."""
    model = ScriptedModel([{"calls": [{"name": "pay", "arguments": {"amount": 5}}]}, "done"])
    agent = Agent(
        model,
        tools=[pay],
        approve_tool_call=lambda _: True,
        stop_when=stop.has_tool_call("pay"),
    )
    result = agent.generate_sync("pay")

    assert next(end_facts(result)).startswith("stop_condition (has_tool_call")


def test_a_message_of_the_graph_is_told_from_the_users() -> None:
    """Only what a node wrote is shown as the graph's own."""
    result = Agent(ScriptedModel(["Hi."])).generate_sync("hello")

    assert injected(None) is None
    assert injected(result.run) is None


def test_a_parked_run_says_what_it_waits_for_and_how_to_go_on(tmp_path: object) -> None:
    """Whoever reads it hours later has only these lines."""
    store = f"{tmp_path}/runs"
    result = parked(store)

    lines = list(pending_lines(result, store, resumable=True))

    assert lines == [
        "parked: the run waits for 1 answer",
        "  c0.0  approval of pay(amount=5)",
        f'Go on from Python, with the agent made with store="{store}":',
        f'  await agent.resume("{result.run_id}", approvals={{"c0.0": True}})',
    ]


def test_what_the_line_says_goes_on_indeed(tmp_path: object) -> None:
    """An instruction that does not work is worse than none."""
    store = f"{tmp_path}/runs"
    result = parked(store)
    agent = Agent(ScriptedModel(["done"]), tools=[pay], store=store)

    resumed = asyncio.run(agent.resume(result.run_id, approvals={"c0.0": True}))

    assert (resumed.text, resumed.steps[0].tool_results[0].text) == ("done", "5 paid")


def test_a_run_kept_in_memory_cannot_be_promised_to_go_on() -> None:
    """Its journal ends with the process."""
    kept, ours = parked(), parked()

    assert "--store DIR" in list(pending_lines(kept, None, resumable=True))[-1]
    assert len(list(pending_lines(ours, "runs", resumable=False))) == 2
