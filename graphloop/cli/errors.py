"""How a command ends: its exit status, errors as a sentence on stderr, and an unwritable stdout."""

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
from .text import clean, wrapped

__all__ = ["Status", "complain", "delivered", "guarded", "tell_error"]


class Status(IntEnum):
    """The exit status of a command."""

    OK = 0
    FAILED = 1
    USAGE = 2
    PARKED = 3
    INTERRUPTED = 130


def tell_error(message: str) -> None:
    """Print `message` to stderr, unless stderr is closed or full."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(wrapped(clean(message), sys.stderr), file=sys.stderr, flush=True)  # noqa: T201 - a command line prints


def complain(error: Exception) -> Status:
    """Print `error` to stderr and return its status."""
    known = isinstance(error, GraphloopError)
    message = str(error) if known and str(error) else f"{type(error).__name__}: {error}"
    if sys.stdout is not None:
        with suppress(OSError):  # `delivered` flushes again, and reports a failure.
            sys.stdout.flush()
    tell_error(f"error: {message}")
    return Status.USAGE if isinstance(error, ConfigError) else Status.FAILED


def guarded(work: Callable[[], Status]) -> Status:
    """Return the status of `work`; print an error of graphloop without a traceback."""
    try:
        return work()
    except GraphloopError as error:
        return complain(error)


def delivered(work: Callable[[], None]) -> None:
    """Do `work`, and exit with an error if stdout does not take its output."""
    if sys.stdout is None:
        closed = "stdout: expected a place to write to, found it closed. Fix: send it to a file."
        raise SystemExit(complain(ConfigError(closed)))
    out: TextIO = sys.stdout
    if isinstance(out, TextIOWrapper):
        out.reconfigure(errors="replace")  # A narrow encoding ends no command.
    try:
        try:
            work()
        finally:
            out.flush()
    except OSError as error:
        if error.filename is not None:
            raise  # The error is about a file, not about stdout.
        with suppress(OSError, ValueError):
            # Python flushes stdout at exit, and must not fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
        if error.errno != errno.EPIPE:  # After `… | head`, all is well.
            reason = error.strerror or error
            tell_error(f"error: stdout: expected it to take the output, found: {reason}")
        raise SystemExit(Status.FAILED) from error
