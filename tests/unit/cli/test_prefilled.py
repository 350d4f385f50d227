"""A line that stands at the prompt already."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphloop.cli.prefilled import PrefilledLine, shown_whole

pty = pytest.importorskip("pty", reason="Windows has no terminals of this kind")

ASKS = """
import asyncio, io
from graphloop import Pending
from graphloop.cli.approval import approver
from graphloop.cli.plain import PlainScreen

asked = Pending("approval", "c0.0", "id", "pay", '{"amount": 5, "to": "Ada"}')
decide = approver(None, PlainScreen(io.StringIO()), interactive=True)
print("decided", asyncio.run(decide(asked)).arguments)
"""
LEAVES = """
import asyncio, sys, termios
from graphloop.cli.prefilled import PrefilledLine
from graphloop.cli.approval import _line

async def left():
    line = PrefilledLine("edit: ", "{}")
    before = termios.tcgetattr(0)
    with line.leaving():
        asking = asyncio.ensure_future(_line(line.read))
        while termios.tcgetattr(0) == before:
            await asyncio.wait([asking], timeout=0)
        asking.cancel()
        await asyncio.wait([asking])
    sys.exit(0 if termios.tcgetattr(0) == before and asking.cancelled() else 1)

asyncio.run(left())
"""


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, program: str) -> None:
        """Start it."""
        ours, theirs = pty.openpty()
        self._end = ours
        self._seen = ""
        environ = {**os.environ, "TERM": "dumb", "PYTHONPATH": os.pathsep.join(sys.path)}
        environ.pop("INPUTRC", None)
        self._process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environ,
            start_new_session=True,
        )
        os.close(theirs)

    def until(self, words: str) -> str:
        """Return what was shown until these words came."""
        while words not in self._seen:
            self._seen += os.read(self._end, 4096).decode()
        shown, _, self._seen = self._seen.partition(words)
        return shown

    def type(self, keys: str) -> None:
        """Press these keys."""
        os.write(self._end, keys.encode())

    def ended(self) -> int:
        """Wait for its end, and return its status."""
        status = self._process.wait()
        os.close(self._end)
        return status

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self.ended()


@pytest.fixture
def asking() -> Iterator[Terminal]:
    """Yield a terminal on which a call's arguments are about to be edited."""
    terminal = Terminal(ASKS)
    terminal.until("or the reason why not (Ctrl-D: no): ")
    terminal.type("e\n")
    yield terminal
    terminal.close()


def test_the_arguments_stand_in_the_line_that_edits_them(asking: Terminal) -> None:
    """Whoever halves an amount must not have to type the name of the payee again."""
    shown = asking.until('(empty: go back): {"amount": 5, "to": "Ada"}')
    assert "in place of" not in shown

    asking.type("\x01" + "\x06" * 11 + "\x04" + "4\n")  # Home, eleven to the right, delete.

    asking.until('decided {"amount": 4, "to": "Ada"}')


def test_an_empty_line_goes_back_to_the_question(asking: Terminal) -> None:
    """And so does the end of input deny."""
    asking.until('"Ada"}')
    asking.type("\x15\n")  # All of the line away.
    asking.until("or the reason why not (Ctrl-D: no): ")
    asking.type("e\n")
    asking.until('"Ada"}')
    asking.type("\x15\x04")

    asking.until("decided None")


def test_a_question_that_is_left_leaves_the_terminal_as_it_was() -> None:
    """Else nothing that is typed after Ctrl-C would be seen."""
    terminal = Terminal(LEAVES)

    assert terminal.ended() == 0


def test_without_a_terminal_nothing_can_stand_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe has no editor."""
    with Path(os.devnull).open(encoding="utf-8") as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)

        assert not PrefilledLine.is_possible()


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"a": 1.50, "b": "é"}', '{"a": 1.50, "b": "é"}'),
        ('{\n "a": 1\n}', '{"a": 1}'),
        ('{"a": "\x9b2J"}', r'{"a": "\u009b2J"}'),
        ('{"a": "\u202eevil\U000e0001é"}', r'{"a": "\u202eevil\udb40\udc01é"}'),
    ],
)
def test_what_stands_there_is_one_line_that_drives_no_terminal(arguments: str, shown: str) -> None:
    """A model wrote it; it means the same all the same."""
    assert shown_whole(arguments) == shown
    assert json.loads(shown) == json.loads(arguments)
