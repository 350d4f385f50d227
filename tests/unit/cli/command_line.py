"""graphloop's command line as a process of its own, without a key in its environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[3]
COMMAND = (sys.executable, "-c", "from graphloop.cli import main; main()")
MODEL_VARIABLES = ("ANTHROPIC_", "OPENAI_", "GRAPHLOOP_")


def environment() -> Mapping[str, str]:
    """Return this process's environment without keys, and with graphloop on the path."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(MODEL_VARIABLES)
    }
    return kept | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}


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
