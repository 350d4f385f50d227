"""What a store notes of how a run was started: its target, and the options to repeat.

They are one line, as it would be typed: `/desk/support.yaml --with /desk/tools.py`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

__all__ = ["REPEATED", "Noted"]

REPEATED: Final = ("--base-url", "--max-steps", "--unbounded", "--with")
"""The options of a run that no journal knows."""

OPTIONS: Final = re.compile(rf" (?=(?:{'|'.join(REPEATED)}) )")


@final
@dataclass(frozen=True)
class Noted:
    """A target, and options by name and value in turn."""

    target: str = ""
    options: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> Noted:
        """Return what a note says; one that is not of ours is a target as it stands."""
        target, *told = OPTIONS.split(text, maxsplit=1)
        try:
            options = tuple(shlex.split("".join(told)))
        except ValueError:
            return cls(text)
        is_ours = len(options) % 2 == 0 and set(options[::2]) <= {*REPEATED}
        return cls(target, options) if is_ours else cls(text)

    def __str__(self) -> str:
        return " ".join(filter(None, (self.target, shlex.join(self.options))))

    def values(self, name: str) -> Iterator[str]:
        """Yield the values of an option."""
        pairs = zip(self.options[::2], self.options[1::2], strict=True)
        yield from (value for option, value in pairs if option == name)

    def without(self, name: str) -> Noted:
        """Return the note without an option."""
        pairs = zip(self.options[::2], self.options[1::2], strict=True)
        kept = [(option, value) for option, value in pairs if option != name]
        return Noted(self.target, tuple([word for pair in kept for word in pair]))

    def value(self, name: str) -> str | None:
        """Return the value of an option that is given once; None if it was not."""
        return next(self.values(name), None)
