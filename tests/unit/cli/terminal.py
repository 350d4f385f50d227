"""A pseudo-terminal in which `graphloop` runs, and whose screen a test reads as text."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios
from functools import partial
from pathlib import Path
from typing import final

from tests.forked import started
from tests.unit.cli.command_line import environment, run_command

ESCAPES = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")
CTRL_D = "\x04"


@final
class Terminal:
    """A command in a terminal; use it as a context manager."""

    def __init__(self, *arguments: str, cwd: Path, columns: int = 80) -> None:
        """Start the command."""
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.process = started(
            partial(run_command, [*arguments]),
            cwd,
            {**environment(), "TERM": "xterm", "COLUMNS": str(columns)},
            (theirs, theirs, theirs),
            leads=True,
        )
        os.close(theirs)
        self.raw = ""

    def __enter__(self) -> Terminal:
        """Return the terminal."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the command if the test failed before its end."""
        self.process.kill()
        self.process.join()
        os.close(self._ours)

    @property
    def text(self) -> str:
        """The shown text, without colours and moves of the cursor."""
        return ESCAPES.sub("", self.raw).replace("\r\n", "\n").replace("\r", "\n")

    def until(self, marker: str) -> str:
        """Read until a text is shown, and return all new text."""
        before = len(self.text)
        while marker not in self.text[before:]:
            assert self._read(), f"the command ended: {self.text}"
        return self.text[before:]

    def type(self, text: str) -> None:
        """Type text."""
        os.write(self._ours, text.encode())

    def end(self) -> int:
        """Read to the end of the command, and return its status."""
        while self._read():
            pass
        self.process.join()
        assert self.process.exitcode is not None, "a process that was joined has ended"
        return self.process.exitcode

    def _read(self) -> bool:
        try:
            piece = os.read(self._ours, 65_536)
        except OSError:  # The other end is closed.
            return False
        self.raw += piece.decode(errors="replace")
        return bool(piece)
