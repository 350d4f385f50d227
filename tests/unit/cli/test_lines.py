"""The lines that a run is told in."""

from __future__ import annotations

import json

import pytest

from graphloop import Agent, RunResult, stop, tool
from graphloop.cli.lines import (
    ARGUMENTS_MAX,
    RESULT_MAX,
    agents_text,
    ask_text,
    below,
    call_in,
    call_text,
    clean,
    counted,
    end_facts,
    injected,
    mark,
    result_text,
    safe_json,
    short_ask_text,
    time_text,
)
from graphloop.stores.base import Ask
from graphloop.testing import ScriptedModel
from graphloop.values import ResultStatus, ToolResult
from graphloop.views.parts import SubAgent, Warned


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"{amount} paid"


def parked() -> RunResult[None]:
    model = ScriptedModel([{"calls": [{"name": "pay", "arguments": {"amount": 5}}]}, "done"])
    return Agent(model, tools=[pay]).generate_sync("pay")


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


def test_what_turns_the_direction_of_a_line_is_written_as_an_escape() -> None:
    """A person would approve another call than the one that they read."""
    assert 'pay(to="a\\u202eb")' == call_text("pay", '{"to": "a\u202eb"}')
    assert "a\\u2066b" == clean("a\u2066b")
    assert "👨‍👩‍👧 é" == clean("👨‍👩‍👧 é")


def test_json_drives_no_terminal_and_means_the_same() -> None:
    """A person reads it too, in a terminal that obeys C1 and direction characters."""
    said = {"text": "a\x9b2Jb\u202ec\u2066d\x7f\u2028 é 漢 👨‍👩‍👧", "rows": [1]}
    text = json.dumps(said, ensure_ascii=False, indent=2)

    shown = safe_json(text)

    assert said == json.loads(shown)
    assert shown == text.replace("\x9b", "\\u009b").replace("\u202e", "\\u202e").replace(
        "\u2066", "\\u2066"
    ).replace("\x7f", "\\u007f").replace("\u2028", "\\u2028")


def test_what_somebody_decides_about_is_told_whole() -> None:
    """What is cut off may be what matters."""
    ask = Ask("c0.0", "approval", "pay", json.dumps({"to": "x" * 300, "amount": 5_000_000}))

    assert "amount=5000000" in ask_text(ask)
    assert "amount" not in short_ask_text(ask)


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


def test_a_time_is_told_in_utc() -> None:
    """Whoever reads it may sit elsewhere than the machine."""
    assert time_text(1_700_000_000.9) == "2023-11-14 22:13:20Z"


def test_things_are_counted_in_words() -> None:
    """`1 steps` reads like a mistake."""
    assert [counted(number, "step") for number in (0, 1, 2)] == ["0 steps", "1 step", "2 steps"]


def test_what_is_asked_says_by_whom_and_of_what() -> None:
    """An approval at the third level of agents is about more than its tool's name."""
    approval = Ask("c0.0/c1.0", "approval", "pay", '{"amount": 5}', "", ("desk", "payer"))
    unknown = Ask("c0.0#7", "approval", "pay", "{}", unknown=True)
    client = Ask("c0.0", "client_tool", "click", "{}")

    assert ask_text(approval) == "approval of desk > payer > pay(amount=5)"
    assert ask_text(unknown) == "approval of pay(); it may have run already"
    assert short_ask_text(unknown) == "pay(); it may have run already"
    assert ask_text(client) == "the result of click()"


def test_a_call_is_found_by_its_key() -> None:
    """In a run that is taken up again, its results are shown, and its calls were shown before."""
    run = parked().run
    approved = Agent(
        ScriptedModel([{"calls": [{"name": "pay", "arguments": {"amount": 5}}]}, "done"]),
        tools=[pay],
        approve_tool_call=lambda _: True,
    ).generate_sync("pay")

    assert call_in(run, "c0.0") == call_in(approved.run, "c0.0") == "pay(amount=5)"
    assert [call_in(run, key) for key in ("c0.1", "c1.0", "c-1.0", "k")] == [None] * 4
    assert call_in(None, "c0.0") is None


def test_a_call_of_an_agent_below_is_named_with_its_way() -> None:
    """Two agents may have calls of one name and one key."""
    seen = SubAgent(("c0.1", "c2.0"), ("desk", "payer"), Warned("…"))

    assert below(seen, "c1.0") == "c0.1/c2.0/c1.0"
    assert agents_text(seen.agents) == "desk > payer > "
    assert agents_text(()) == ""
