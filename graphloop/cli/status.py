"""The exit statuses of every command, how an error is told, and how stdout takes what is written.

A stdout may be closed, full, or of an encoding that lacks what is to be said.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from io import TextIOWrapper
from typing import TextIO

from ..errors import ConfigError, GraphloopError
from ..views.text import in_signs_of
from .lines import clean

__all__ = ["Status", "complain", "delivered", "guarded", "put_file", "put_picture", "tell"]

CLOSED = (
    "expected stdout to write to, found it closed: send it to a file, or to /dev/null if "
    "nobody is to read it."
)


class Status(IntEnum):
    """What a command tells its shell."""

    OK = 0
    FAILED = 1
    USAGE = 2
    PARKED = 3
    INTERRUPTED = 130


def tell(message: str) -> None:
    """Print `message` to stderr; one that is closed or full cannot be told anything."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(message, file=sys.stderr, flush=True)  # noqa: T201 - a command line talks


def complain(error: Exception) -> Status:
    """Print `error` to stderr and return the status it stands for."""
    known = isinstance(error, GraphloopError)
    message = str(error) if known and str(error) else f"{type(error).__name__}: {error}"
    if sys.stdout is not None:
        with suppress(OSError):  # `delivered` finds it again, after this error was told.
            sys.stdout.flush()
    tell(f"error: {clean(message)}")
    return Status.USAGE if isinstance(error, ConfigError) else Status.FAILED


def guarded(work: Callable[[], Status]) -> Status:
    """Do `work`; an error that graphloop raised on purpose is told in words, not as a trace."""
    try:
        return work()
    except GraphloopError as error:
        return complain(error)


def put_file(text: str) -> None:
    """Write what is a file's content to stdout: in UTF-8, as it would stand in the file.

    A terminal that cannot show it all shows `?` for the rest.
    """
    out = sys.stdout
    if hasattr(out, "buffer") and not out.isatty():
        out.flush()
        out.buffer.write(text.encode(errors="replace"))
    else:
        out.write(text)


def put_picture(text: str) -> None:
    """Write a picture to stdout: in plain signs where its encoding lacks others."""
    sys.stdout.write(in_signs_of(text, sys.stdout.encoding))


def delivered(work: Callable[[], None]) -> None:
    """Do `work`, and see to it that stdout took all that was written.

    Raises:
        SystemExit: stdout is closed (status 2, and `work` is not begun) or did not take it all
            (status 1); or whatever else `work` exits with.
    """
    if sys.stdout is None:
        raise SystemExit(complain(ConfigError(CLOSED)))
    _forgive(sys.stdout)
    try:
        try:
            work()
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.filename is not None:
            raise  # It is about a file, not about stdout.
        _discard_stdout()
        if error.errno != errno.EPIPE:  # `… | head` has read what it wanted.
            tell(f"error: expected stdout to take the output, found: {error.strerror or error}")
        raise SystemExit(Status.FAILED) from error


def _forgive(out: TextIO) -> None:
    """Show `?` for what a narrow encoding cannot say: no command ends for it."""
    if isinstance(out, TextIOWrapper):
        out.reconfigure(errors="replace")


def _discard_stdout() -> None:
    """Let what is still buffered go nowhere: Python writes it when it exits, and would fail."""
    with suppress(OSError, ValueError):  # One that is no file needs no such care.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
