"""Commands of a page, each in a process of its own: one that kills itself kills no test."""

from __future__ import annotations

import os
import runpy
import shlex
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

import pytest

from graphloop.cli import main as graphloop_main
from tests.forked import started
from tests.unit.cli.command_line import environment

__all__ = ["PROGRAMS", "done"]

PROGRAMS: Final = ("graphloop", "python", "pytest")
"""The commands that a page may tell readers to type, and that are run here."""
COLUMNS: Final = "80"
PATH: Final = os.pathsep.join([str(Path(sys.executable).parent), os.defpath])
"""Where a page's programs find `python`: first beside the Python of the tests."""


def done(command: str, folder: Path) -> tuple[int, str]:
    """Return the exit status of a command, and what it wrote to stdout and stderr."""
    words, variables = shlex.split(command), {"COLUMNS": COLUMNS, "TERM": "dumb", "PATH": PATH}
    with TemporaryFile() as output, Path(os.devnull).open() as nothing:
        streams = nothing.fileno(), output.fileno(), output.fileno()
        process = started(partial(_do, words), folder, {**environment(), **variables}, streams)
        process.join()
        output.seek(0)
        status = process.exitcode
        assert status is not None, "a process that was joined has ended"
        return (status if status >= 0 else 128 - status), output.read().decode()


def _do(arguments: list[str]) -> None:
    """Be the process of a command."""
    program, *rest = arguments
    match program:
        case "graphloop":
            sys.argv = arguments
            graphloop_main()
        case "python":
            sys.argv = rest
            runpy.run_path(rest[0], run_name="__main__")
        case _:
            # The modules were loaded before pytest could rewrite their asserts.
            quiet = ("-W", "ignore::pytest.PytestAssertRewriteWarning", "-p", "no:cacheprovider")
            sys.exit(pytest.main([*rest, *quiet, "--rootdir", "."]))
