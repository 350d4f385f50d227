"""Errors: the exit status of a command, error messages on stderr, and failed writes to stdout."""

from __future__ import annotations

import errno
import logging
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
    STOPPED = 4
    INTERRUPTED = 130


def tell_error(message: str) -> None:
    """Print `message` to stderr, unless stderr is closed or full."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(wrapped(message, sys.stderr), file=sys.stderr, flush=True)  # noqa: T201 - a command line prints


class _CleanLog(logging.Formatter):
    """Formats what no handler of the program takes; a traceback may quote a model."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record without control characters."""
        return clean(super().format(record))


def complain(error: Exception) -> Status:
    """Print an error to stderr, and return the exit status for it."""
    known = isinstance(error, GraphloopError)
    message = str(error) if known and str(error) else f"{type(error).__name__}: {error}"
    if sys.stdout is not None:
        with suppress(OSError):  # `delivered` flushes again, and reports the failure.
            sys.stdout.flush()
    tell_error(f"error: {message}")
    return Status.USAGE if isinstance(error, ConfigError) else Status.FAILED


def guarded(work: Callable[[], Status]) -> Status:
    """Run `work` and return its exit status; print a graphloop error without a traceback."""
    try:
        return work()
    except GraphloopError as error:
        return complain(error)


def delivered(work: Callable[[], None]) -> None:
    """Run `work`, and exit with an error if its output cannot be written to stdout."""
    if sys.stdout is None:
        closed = "stdout: expected a place to write to, found it closed. Fix: send it to a file."
        raise SystemExit(complain(ConfigError(closed)))
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_CleanLog())
    out: TextIO = sys.stdout
    if isinstance(out, TextIOWrapper):
        out.reconfigure(errors="replace")  # Do not fail at characters that it lacks.
    try:
        try:
            work()
        finally:
            out.flush()
    except OSError as error:
        if error.filename is not None:
            raise  # The error is about a file, not about stdout.
        with suppress(OSError, ValueError):
            # Redirect stdout: Python flushes it again at exit, which would fail a second time.
            os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
        if error.errno != errno.EPIPE:  # `… | head` closes the pipe: no error.
            reason = error.strerror or error
            tell_error(f"error: stdout: expected it to take the output, found: {reason}")
        raise SystemExit(Status.FAILED) from error
