"""graphloop's command line, in this process or one of its own, without a key in its environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from graphloop.cli import main

ROOT = Path(__file__).parents[3]
COMMAND = (sys.executable, "-c", "from graphloop.cli import main; main()")
MODEL_VARIABLES = ("ANTHROPIC_", "OPENAI_", "GRAPHLOOP_")


def environment() -> Mapping[str, str]:
    """Return this process's environment without keys, and with graphloop on the path."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(MODEL_VARIABLES)
    }
    return kept | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}


def printed(*arguments: str | Path, encoding: str, cwd: Path = ROOT) -> bytes:
    """Return what `graphloop` writes to a stdout of that encoding; it must succeed.

    Its environment says so the way a terminal of another time would.
    """
    narrow = {"PYTHONUTF8": "0", "PYTHONIOENCODING": encoding}
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        env={**environment(), **narrow},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout


def graphloop(*arguments: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run `graphloop` with these arguments to its end, with nobody at its terminal."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def called(*arguments: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Do the same in this process, which is faster: for what a process of its own has no part in.

    What a target adds to the process is undone.
    """
    argv = ["graphloop", *map(str, arguments)]
    modules, out, err = set(sys.modules), StringIO(), StringIO()
    with (
        patch.dict(os.environ, environment(), clear=True),
        patch.multiple(sys, argv=argv, path=list(sys.path), stdin=StringIO()),
        chdir(cwd),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        status: object = None
        try:
            main()
        except SystemExit as ended:
            status = ended.code
    for name in set(sys.modules) - modules:
        if name.startswith("graphloop_target_"):
            del sys.modules[name]
    assert isinstance(status, int), "the command line exits with a status"
    return subprocess.CompletedProcess(argv, status, out.getvalue(), err.getvalue())


def here(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Do a command in this process and in its current directory."""
    return called(*arguments, cwd=Path.cwd())


def refused(*arguments: str | Path) -> str:
    """Return the one sentence that tells a command's wrong usage; it does nothing else."""
    done = here(*arguments)
    assert (done.returncode, done.stdout) == (2, ""), (done.stdout, done.stderr)
    return done.stderr


def started(*arguments: str | Path, cwd: Path = ROOT) -> subprocess.Popen[str]:
    """Start `graphloop` and return the process, to be watched line by line."""
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
