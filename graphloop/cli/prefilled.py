"""A line that stands at the prompt already, to be changed and sent: arguments to be edited.

It needs a terminal on both sides, and the line editor that Python has nearly everywhere (not on
Windows); without them a line is typed from nothing. What stands there is what a model wrote: no
character of it reaches the terminal that could drive it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import final

try:
    import readline
    import termios
except ImportError:  # Windows
    readline = None  # type: ignore[assignment]
    termios = None  # type: ignore[assignment]

__all__ = ["PrefilledLine", "shown_whole"]


@final
class PrefilledLine:
    """One line to be edited, with `text` in it, after `prompt`."""

    def __init__(self, prompt: str, text: str) -> None:
        """Show nothing yet."""
        self._prompt = prompt
        self._text = text

    @staticmethod
    def is_possible() -> bool:
        """Whether stdin and stdout are a terminal, and there is an editor for it."""
        return readline is not None and sys.stdin.isatty() and sys.stdout.isatty()

    def read(self) -> str:
        """Return the line with its end, as it was sent; nothing at the end of input. Blocks."""
        assert readline is not None, "the caller has asked whether this is possible"
        insert = partial(readline.insert_text, self._text)
        readline.set_startup_hook(insert)
        try:
            return f"{input(self._prompt)}\n"
        except EOFError:
            return ""
        finally:
            readline.set_startup_hook(None)

    @contextmanager
    def leaving(self) -> Generator[None]:
        """Give the terminal back as it was, also where nobody waits for the line any more."""
        assert termios is not None, "as above"
        terminal = sys.stdin.fileno()
        before = termios.tcgetattr(terminal)
        try:
            yield
        finally:
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def shown_whole(arguments: str) -> str:
    """Return JSON text as one line that a terminal can show, with the same meaning."""
    if arguments.isprintable():
        return arguments
    line = json.dumps(json.loads(arguments), ensure_ascii=False)
    return "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in line)
