"""Commands of a page, each in a process of its own that starts from loaded modules.

A server process imports graphloop once and forks for each command. A command then needs
milliseconds to start, and a program that kills itself kills only its own process.
"""

from __future__ import annotations

import os
import runpy
import shlex
import sys
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import pytest

from graphloop.cli import main as graphloop_main
from tests.unit.cli.command_line import environment

__all__ = ["PROGRAMS", "done"]

PROGRAMS: Final = ("graphloop", "python", "pytest")
"""The commands that a page may tell readers to type, and that are run here."""
LOADED: Final = (
    "fastapi.testclient",
    "graphloop.agent.tool_runner",
    "graphloop.cli.run",
    "graphloop.proofs.checking",
    "graphloop.providers.openai_chat",
    "graphloop.stores.sqlite",
    "graphloop.testing.fuzzing",
    "graphloop.topology.reader",
    "graphloop.views.render",
    "hypothesis",
    "pytest",
    "unittest.mock",
)
COLUMNS: Final = "80"
PATH: Final = os.pathsep.join([str(Path(sys.executable).parent), os.defpath])
"""Where a page's programs find `python`: first beside the Python of the tests."""

_SERVED = get_context("forkserver")
_SERVED.set_forkserver_preload(list(LOADED))


def done(command: str, folder: Path) -> tuple[int, str]:
    """Return the exit status of a command, and what it wrote to stdout and stderr."""
    output = folder / ".output"
    process = _SERVED.Process(target=_do, args=(shlex.split(command), folder, output))
    process.start()
    process.join()
    status = process.exitcode
    assert status is not None, "a process that was joined has ended"
    return (status if status >= 0 else 128 - status), output.read_text("utf-8")


def _do(arguments: list[str], folder: Path, output: Path) -> None:
    """Be the process of a command."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment(), COLUMNS=COLUMNS, TERM="dumb", PATH=PATH)
    written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(written, stream)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    sys.path.insert(0, str(folder))
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
