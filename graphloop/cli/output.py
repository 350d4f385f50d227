"""Where a command writes: a file, or stdout, where `-` and `-.txt` say in which notation.

This is so for each option that names a file. A report that is told beside a printed file goes to
stderr, so that stdout can be sent to a file.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from ..errors import ConfigError
from ..graph import NodeGraph
from ..views import Marks, in_signs_of, is_machine, picture, rendered, save
from .errors import tell_error
from .text import wrapped

__all__ = [
    "MACHINES",
    "PICTURES",
    "draw_findings",
    "findings_suffix",
    "print_file",
    "print_report",
    "refuse_mixed",
    "stdout_suffix",
    "write_file",
]

S = TypeVar("S")

PICTURES: Final = (".mmd", ".dot", ".txt", ".svg")
"""The notations of a picture that are text, the usual one first."""

MACHINES: Final = (".scxml", ".xstate.json")
"""Those of a state machine."""


def stdout_suffix(option: str, given: str | None, suffixes: Sequence[str]) -> str | None:
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
        choice = ", ".join(f"-{known}" for known in suffixes)
        raise ConfigError(
            f"{option}: expected a file, or one of -, {choice} for stdout, found {given!r}. Fix: "
            f"choose one of these, or write ./{given} for a file of that name."
        )
    return suffix


def refuse_mixed(given: Mapping[str, bool]) -> None:
    """Refuse two options that both print to stdout; each is given with whether it does.

    Raises:
        ConfigError: there are two.
    """
    names = [name for name, is_printed in given.items() if is_printed]
    if len(names) > 1:
        raise ConfigError(
            f"{' and '.join(names)}: expected one of them on stdout, found both. Fix: name a file "
            "for the other, or leave it out."
        )


def print_file(text: str, suffix: str = "") -> None:
    """Print what is a file's content, in UTF-8 as in the file; a .txt is for a terminal.

    A terminal that cannot show it all shows `?` for the rest, and plain signs in a picture.
    """
    text, out = text.rstrip("\n") + "\n", sys.stdout
    if suffix == ".txt":
        out.write(in_signs_of(text, out.encoding))
    elif hasattr(out, "buffer") and not out.isatty():
        out.flush()
        out.buffer.write(text.encode(errors="replace"))
    else:
        out.write(text)


def write_file(option: str, path: str, text: str) -> None:
    """Write a file.

    Raises:
        ConfigError: it cannot be written.
    """
    try:
        Path(path).write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{option}: {path!r} cannot be written: {error}") from error


def print_report(text: str, *, beside: str | None) -> None:
    """Print a report: to stderr where stdout has a picture, of the suffix `beside`."""
    if beside is None:
        sys.stdout.write(f"{wrapped(text, sys.stdout)}\n")
    else:
        tell_error(text)


def findings_suffix(path: str | None) -> str | None:
    """Return the suffix of a picture of findings that goes to stdout; None for a file, and none.

    Raises:
        ConfigError: no finding could be seen in it, or stdout cannot take it.
    """
    if path is not None and is_machine(path):
        raise ConfigError(
            f"--draw {path}: expected a picture, found a state machine, which shows no findings. "
            "Fix: choose .svg, .png, .pdf, .mmd, .dot or .txt."
        )
    return stdout_suffix("--draw", path, PICTURES)


def draw_findings(graph: NodeGraph[S], path: str, marks: Marks) -> None:
    """Draw a graph with its findings, into a file or on stdout.

    Raises:
        ConfigError: the file cannot be drawn or written.
    """
    suffix = findings_suffix(path)
    if suffix is not None:
        print_file(rendered(picture(graph, marks), suffix), suffix)
        return
    try:
        save(graph, path, marks)
    except OSError as error:
        raise ConfigError(f"--draw: {path!r} cannot be written: {error}") from error
