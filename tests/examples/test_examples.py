"""Every example runs as its docstring says, in a process of its own, without key or network."""

from __future__ import annotations

import ast
import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.unit.cli.command_line import COMMAND, ROOT, environment, graphloop

EXAMPLES = sorted(path for path in (ROOT / "examples").iterdir() if path.is_dir())
LINES_MAX = 60
ANSWERS = {
    "approval": "I have done what was allowed; the results above say what that was.",
    "custom_topology": "An agent loop you can see and prove.",
    "weather": "NYC is 72°F and sunny; London is 55°F and rainy.",
}


def file_of(example: Path) -> Path:
    (file,) = example.glob("*.py")
    return file


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_short_and_says_its_command(example: Path) -> None:
    """One idea, on one screen, and how to see it."""
    source = file_of(example).read_text(encoding="utf-8")

    assert len(source.splitlines()) <= LINES_MAX
    assert f"graphloop run examples/{example.name}" in (ast.get_docstring(ast.parse(source)) or "")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_answers_without_a_key(example: Path) -> None:
    """And says that it is a recording."""
    done = graphloop("run", f"examples/{example.name}", "--approve", "always")

    *_, answer, end = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        f"no API key found: replaying examples/{example.name}/script.yaml; "
        "set ANTHROPIC_API_KEY or use --model to ask a real model\n"
    )
    assert answer == ANSWERS[example.name]
    assert end.startswith("completed · ")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_tells_programs_the_same(example: Path) -> None:
    """The text deltas of the JSON lines add up to the text that people read."""
    done = graphloop("run", f"examples/{example.name}", "--approve", "always", "--json")

    parts = [json.loads(line) for line in done.stdout.splitlines()]
    last_turn = max(at for at, part in enumerate(parts) if part["type"] == "step-start")
    text = "".join(part["text"] for part in parts[last_turn:] if part["type"] == "text-delta")
    assert text == ANSWERS[example.name]
    assert parts[0]["type"] == "run-start"
    assert (parts[-1]["type"], parts[-1]["end_reason"]) == ("finish", "completed")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_drawn_and_checked(example: Path, tmp_path: Path) -> None:
    """The picture and the proofs need no model at all."""
    picture = tmp_path / "loop.svg"

    drawn = graphloop("draw", f"examples/{example.name}", "-o", picture)
    checked = graphloop("check", f"examples/{example.name}")

    assert (drawn.returncode, drawn.stderr) == (0, "")
    assert "<svg" in picture.read_text(encoding="utf-8")
    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_weather_is_asked_for_two_cities_at_once() -> None:
    """The case that everything else grew from."""
    done = graphloop("run", "examples/weather")

    assert done.stdout.splitlines() == [
        "> What's the weather in NYC and London?",
        '→ get_weather(city="NYC")',
        '→ get_weather(city="London")',
        '✓ get_weather(city="NYC"): 72°F and sunny',
        '✓ get_weather(city="London"): 55°F and rainy',
        "NYC is 72°F and sunny; London is 55°F and rainy.",
        "completed · 2 steps · 40 tokens",
    ]


def test_the_critic_sends_the_first_draft_back() -> None:
    """Its feedback is a message like any other, and the next draft takes it up."""
    done = graphloop("run", "examples/custom_topology")

    assert done.stdout.splitlines()[1:-1] == [
        "→ house_style()",
        "✓ house_style(): At most eight words. No exclamation mark.",
        "The revolutionary agent loop that you can finally see, at last!",
        "↩ critique: Eleven words and an exclamation mark. Shorten it.",
        "An agent loop you can see and prove.",
    ]


def test_a_large_refund_waits_where_nobody_can_be_asked(tmp_path: Path) -> None:
    """The small one is not paid either: a batch runs when all of it is decided."""
    done = graphloop("run", "examples/approval", "--store", tmp_path)

    assert done.returncode == 3
    assert 'c0.1  approval of refund(order="B-42", amount=250)' in done.stderr
    assert "paid back" not in done.stdout


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        (b"y\n", [b"dollars paid back for A-17", b"dollars paid back for B-42"]),
        (b"not before Friday\n", [b"back for A-17", b"denied. Reason: not before Friday"]),
    ],
)
def test_a_large_refund_is_decided_at_the_terminal(answer: bytes, lines: list[bytes]) -> None:
    """On a terminal of its own: the question comes, is answered, and the run goes on."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "run", "examples/approval"],
        cwd=ROOT,
        env={**environment(), "TERM": "xterm", "COLUMNS": "100"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        seen = read_until(ours, b"the reason why not: ")
        os.write(ours, answer)
        seen += read_until(ours, None)
    os.close(ours)

    assert process.returncode == 0
    assert b"completed" in seen
    assert all(line in seen for line in lines)
    assert seen.count(b"\x1b[?25l") == seen.count(b"\x1b[?25h")


def read_until(terminal: int, marker: bytes | None) -> bytes:
    """Return what is written to a terminal up to `marker`, or until the other side is closed."""
    seen = b""
    while marker is None or marker not in seen:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # Linux reports a closed terminal as an error.
            piece = b""
        if not piece:
            return seen
        seen += piece
    return seen
