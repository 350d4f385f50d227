"""How a command ends: its exit status, errors as a sentence on stderr, and a stdout that takes all.

A stdout may be closed, full, or of an encoding that lacks signs of the output.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from io import TextIOWrapper

from ..errors import ConfigError, GraphloopError
from .text import clean, wrapped

__all__ = ["Status", "complain", "delivered", "guarded", "tell_error"]

CLOSED = (
    "expected stdout to write to, found it closed. Fix: send it to a file, or to /dev/null if no "
    "reader needs it."
)


class Status(IntEnum):
    """The exit status of a command."""

    OK = 0
    FAILED = 1
    USAGE = 2
    PARKED = 3
    INTERRUPTED = 130


def tell_error(message: str) -> None:
    """Print `message` to stderr, unless that is closed or full."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(wrapped(clean(message), sys.stderr), file=sys.stderr, flush=True)  # noqa: T201 - a command line talks


def complain(error: Exception) -> Status:
    """Print `error` to stderr and return its status."""
    known = isinstance(error, GraphloopError)
    message = str(error) if known and str(error) else f"{type(error).__name__}: {error}"
    if sys.stdout is not None:
        with suppress(OSError):  # `delivered` finds it again, after this error was told.
            sys.stdout.flush()
    tell_error(f"error: {message}")
    return Status.USAGE if isinstance(error, ConfigError) else Status.FAILED


def guarded(work: Callable[[], Status]) -> Status:
    """Do `work`; tell an error of graphloop's own in words."""
    try:
        return work()
    except GraphloopError as error:
        return complain(error)


def delivered(work: Callable[[], None]) -> None:
    """Do `work`, and exit with an error if stdout refuses its output."""
    if sys.stdout is None:
        raise SystemExit(complain(ConfigError(CLOSED)))
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # No command ends for a narrow encoding.
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
            tell_error(
                f"error: expected stdout to take the output, found: {error.strerror or error}"
            )
        raise SystemExit(Status.FAILED) from error


def _discard_stdout() -> None:
    """Send buffered output nowhere, for Python writes it at exit."""
    with suppress(OSError, ValueError):  # A stdout that is no file needs no such care.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
