"""Decisions about calls while a run is driven: at a terminal, and by `--approve`."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from graphloop.cli.errors import Status
from tests.unit.cli.command_line import ROOT, shown, write
from tests.unit.cli.pay_desk import TWO_CALLS
from tests.unit.cli.terminal import CTRL_D, Terminal

ALLOW = "allow it? y, n, e to edit the arguments, or the reason why not (Ctrl-D: no): "
FORM = "your answer? y to fill it in, n, or n and the reason why not (Ctrl-D: no): "
JSON = "arguments as JSON (empty: go back): "


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        (" YES \n", "✓ pay(amount=5): 5 paid"),
        ("yes, but less\n", "⊘ pay(amount=5): Tool call denied. Reason: yes, but less"),
        (CTRL_D, "⊘ pay(amount=5): Tool call denied."),
    ],
)
def test_only_an_explicit_yes_approves(typed: str, line: str, pay_desk: Path) -> None:
    """Enter alone decides nothing; any other text denies, and is the reason."""
    with Terminal("run", "pay", cwd=pay_desk) as terminal:
        asked = terminal.until(ALLOW)
        terminal.type("\n")
        empty = terminal.until(ALLOW)
        terminal.type(typed)
        assert terminal.end() == Status.OK

    assert "? pay(amount=5)\n" in asked
    assert "no answer: nothing is decided yet" in empty
    assert line in terminal.text


def test_edited_arguments_must_fit_the_tool(pay_desk: Path) -> None:
    """The question is asked again until they fit."""
    with Terminal("run", "pay", cwd=pay_desk) as terminal:
        for edit in ("[4]", "{no", "", '{"sum": 4}', '{"amount": 4}'):
            terminal.until(ALLOW)
            terminal.type("Edit\n")
            terminal.until(JSON)
            terminal.type(f"{edit}\n")
        assert terminal.end() == Status.OK

    assert terminal.text.count('in place of {"amount": 5}') == 5
    assert "expected the arguments as a JSON object, found '[4]'" in terminal.text
    assert "'amount' is a required property" in terminal.text
    assert "✓ pay(amount=4) (edited): 4 paid" in terminal.text


def test_ctrl_d_leaves_a_question_of_a_kept_run_open(pay_desk: Path) -> None:
    """A lost terminal is also an end of input, and no denial."""
    with Terminal("run", "pay", "--store", "runs.db", cwd=pay_desk) as terminal:
        terminal.until("later): ")
        terminal.type(CTRL_D)
        assert terminal.end() == Status.PARKED

    assert "graphloop approve " in terminal.text
    assert not (pay_desk / "paid").exists()


def test_ctrl_d_while_arguments_are_edited_goes_back_on_a_line_of_its_own(pay_desk: Path) -> None:
    with Terminal("run", "pay", cwd=pay_desk) as terminal:
        terminal.until(ALLOW)
        terminal.type("e\n")
        terminal.until("go back): ")
        terminal.type(CTRL_D)
        assert terminal.until(ALLOW).startswith("\n  allow it?")
        terminal.type("n\n")
        assert terminal.end() == Status.OK


def test_ctrl_c_ends_a_run_that_asks(pay_desk: Path) -> None:
    with Terminal("run", "pay", cwd=pay_desk) as terminal:
        terminal.until(ALLOW)
        os.kill(terminal.process.pid or 0, signal.SIGINT)
        assert terminal.end() == Status.INTERRUPTED

    assert "aborted (interrupted)" in terminal.text


def test_two_questions_are_asked_one_after_the_other(pay_desk: Path) -> None:
    write({"pay/script.yaml": TWO_CALLS})
    with Terminal("run", "pay", cwd=pay_desk) as terminal:
        assert "? pay(amount=5)" in terminal.until(ALLOW)
        terminal.type("y\n")
        assert "? pay(amount=7)" in terminal.until(ALLOW)
        terminal.type("n\n")
        assert terminal.end() == Status.OK

    assert (pay_desk / "paid").read_text(encoding="utf-8") == "5\n"


def test_a_question_of_a_node_is_answered_in_words(desk: Path) -> None:
    write({"own.yaml": "- text: billing\n- text: 'no'\n- text: Done.\n"})
    arguments = ("run", str(ROOT / "examples/asking"), "--script", "own.yaml")
    with Terminal(*arguments, cwd=desk) as terminal:
        terminal.until("your answer in words, or y, n (Ctrl-D: no): ")
        terminal.type("tech team\n")
        assert terminal.end() == Status.OK

    assert "team='tech team'" in terminal.text


def test_the_form_of_a_tool_is_filled_in_field_by_field(pay_desk: Path) -> None:
    """Neither a stray word nor Ctrl-D nor an answer that does not fit decides anything."""
    with Terminal("run", "order", cwd=pay_desk) as terminal:
        asked = terminal.until(FORM)
        for typed in ("forty\n", "\n"):
            terminal.type(typed)
            terminal.until(FORM)
        for size in (CTRL_D, "12\n", "42\n"):
            terminal.type("y\n")
            terminal.until("size (integer; needed; of the EU): ")
            terminal.type(size)
            if size != CTRL_D:
                terminal.until('colour (red or blue; empty: "red"): ')
                terminal.type("\n")
                terminal.until("gift (may be empty): ")
                terminal.type("\n")
        assert terminal.end() == Status.OK

    assert "? order: shop asks: Which size of shoes?" in asked
    assert "12 is less than the minimum of 30" in terminal.text
    assert '✓ order(what="shoes"): True {"size": 42}' in terminal.text


def test_a_form_is_refused_with_a_reason(pay_desk: Path) -> None:
    """The tool, or its server, reads the reason."""
    with Terminal("run", "order", cwd=pay_desk) as terminal:
        terminal.until(FORM)
        terminal.type("n too dear\n")
        assert terminal.end() == Status.OK

    assert '✓ order(what="shoes"): False too dear' in terminal.text


@pytest.mark.parametrize(
    ("approve", "line", "status"),
    [
        (("--approve", "always"), "✓ pay(amount=5): 5 paid", Status.OK),
        (("--approve", "never"), "⊘ pay(amount=5): Tool call denied. Reason: --approve never", 0),
        ((), "parked · 1 step · 15 tokens", Status.PARKED),
    ],
)
@pytest.mark.usefixtures("pay_desk")
def test_without_a_terminal_a_call_parks_unless_approve_is_given(
    approve: tuple[str, ...], line: str, status: Status
) -> None:
    assert line in shown("run", "pay", *approve, status=status).splitlines()
