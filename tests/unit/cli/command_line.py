"""The command line, in this process or in its own, without API keys in its environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryFile
from types import MappingProxyType
from unittest.mock import patch

from graphloop.cli import main
from tests import forked
from tests.strategies import wrong
from tests.warm_python import warm_python

ROOT = Path(__file__).parents[3]
COMMAND = (sys.executable, "-c", "from graphloop.cli import main; main()")
MODEL_VARIABLES = ("ANTHROPIC_", "OPENAI_", "GRAPHLOOP_")
STORE = ("--store", "runs.db")
NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


def environment() -> Mapping[str, str]:
    """Return the environment of this process without keys, and with graphloop on the path."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(MODEL_VARIABLES)
    }
    return kept | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}


def printed(*arguments: str | Path, encoding: str, cwd: Path = ROOT) -> bytes:
    """Return what a successful command writes to a stdout of an encoding."""
    return subprocess.run(
        [*warm_python(), "-m", "graphloop", *map(str, arguments)],
        cwd=cwd,
        env={**environment(), "PYTHONIOENCODING": encoding},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout


def graphloop(
    *arguments: str | Path,
    cwd: Path = ROOT,
    variables: Mapping[str, str] = NO_VARIABLES,
    missing: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run a command in its own process, without a terminal; `missing` is a module not found."""
    words, surroundings = [*map(str, arguments)], {**environment(), **variables}
    with TemporaryFile() as out, TemporaryFile() as err, Path(os.devnull).open() as nothing:
        streams = nothing.fileno(), out.fileno(), err.fileno()
        work = partial(run_command, words, missing)
        process = forked.started(work, cwd, surroundings, streams)
        process.join()
        for file in (out, err):
            file.seek(0)
        assert process.exitcode is not None, "a process that was joined has ended"
        said, complained = out.read().decode(), err.read().decode()
        return subprocess.CompletedProcess(words, process.exitcode, said, complained)


def run_command(words: list[str], missing: str = "") -> None:
    """Be the process of a command."""
    if missing:
        # For Python's imports, a module that is None is not installed.
        sys.modules[missing] = wrong(None)
    sys.argv = ["graphloop", *words]
    main()


def called(*arguments: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, which is faster; the modules of its target are removed."""
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
    """Run a command in this process and in the current directory."""
    return called(*arguments, cwd=Path.cwd())


def shown(*arguments: str | Path, status: int = 0) -> str:
    """Return the stdout of a command of the current directory that ends with a status."""
    done = here(*arguments)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout


def refused(*arguments: str | Path) -> str:
    """Return the error of a command of the current directory that is used wrongly."""
    done = here(*arguments)
    assert (done.returncode, done.stdout) == (2, ""), (done.stdout, done.stderr)
    return done.stderr


def started(
    *arguments: str | Path, cwd: Path = ROOT, python: Sequence[str] = ()
) -> subprocess.Popen[str]:
    """Start a command that heeds Ctrl-C, and return its process to read line by line.

    The process of `warm_python` passes signals on, so they come a little later than they are sent;
    a test that cannot wait for them gives an interpreter of its own.
    """
    return subprocess.Popen(
        [*(python or warm_python()), "-m", "graphloop", *map(str, arguments)],
        cwd=cwd,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def write(files: Mapping[str, str]) -> None:
    """Write files of the current directory."""
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
