"""Where a command writes what is a file's content: to a file, or to stdout.

`-` is stdout, and a suffix behind it says in which notation: `-.txt`, `-.dot`. This is so for each
option that names a file; what a command has to say beside it goes to stderr then, so that stdout
can be sent to a file.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ..errors import ConfigError
from .status import put_file, put_picture, tell

__all__ = ["MACHINES", "PICTURES", "printed", "put", "refuse_mixed", "tell_found"]

PICTURES: Final = (".mmd", ".dot", ".txt", ".svg")
"""The notations of a picture that are text, the usual one first."""

MACHINES: Final = (".scxml", ".xstate.json")
"""Those of a state machine."""


def printed(option: str, given: str | None, suffixes: Sequence[str]) -> str | None:
    """Return the suffix of what goes to stdout, the first one for `-` alone; None for a file.

    Args:
        option: what names the file on the command line.
        given: the name.
        suffixes: what can be printed.

    Raises:
        ConfigError: it cannot be.
    """
    if given is None or Path(given).name != given or not (given == "-" or given.startswith("-.")):
        return None
    suffix = given[1:].lower() or suffixes[0]
    if suffix not in suffixes:
        choice = ", ".join(f"-{one}" for one in suffixes)
        raise ConfigError(
            f"expected {option} to name a file, or to be -, {choice} for stdout, found {given!r}: "
            f"choose one of these, or name a file (./{given} is one of that name)."
        )
    return suffix


def refuse_mixed(given: Mapping[str, bool]) -> None:
    """Refuse options, by whether they send something to stdout, of which nobody could tell two.

    Raises:
        ConfigError: there are two.
    """
    names = [name for name, is_printed in given.items() if is_printed]
    if len(names) > 1:
        raise ConfigError(
            f"{' and '.join(names)} would both be printed to stdout, one behind the other: name a "
            "file for all but one of them, or leave it out."
        )


def put(text: str, suffix: str) -> None:
    """Print a picture for a terminal (.txt), or a file's content for whoever redirects it."""
    ended = text.rstrip("\n") + "\n"
    if suffix == ".txt":
        put_picture(ended)
    else:
        put_file(ended)


def tell_found(text: str, *, beside: str | None) -> None:
    """Print what was found: to stderr, where stdout has something else, of that suffix."""
    if beside is None:
        sys.stdout.write(f"{text}\n")
    else:
        tell(text)
