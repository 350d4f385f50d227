"""Facts of Python: public names that load on first use, and the line of a caller's program."""

import sys
import typing
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

__all__ = ["called_from", "front_door"]

PASSED: Final = (__file__.removesuffix("lazy.py"), str(typing.__file__))
"""Files whose lines are not the caller's: `typing` calls what `Graph[None](…)` names."""


def front_door(package: str, homes: Mapping[str, tuple[str, ...]]) -> Callable[[str], object]:
    """Return a package's `__getattr__`, which loads a name from its home on first use.

    Importing then costs what is used. The homes stand twice in such a package, because type
    checkers follow import statements only; a test holds the two against each other.
    """

    def load(name: str) -> object:
        for home, names in homes.items():
            if name in names:
                value: object = getattr(import_module(home, package), name)
                setattr(sys.modules[package], name, value)
                return value
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load


def called_from() -> tuple[str, int] | None:
    """Return the file and line of a program that called this package; None outside of a file."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - what `inspect` uses, too.
    while frame.f_code.co_filename.startswith(PASSED):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    file = frame.f_code.co_filename
    return None if file.startswith("<") else (file, frame.f_lineno)
