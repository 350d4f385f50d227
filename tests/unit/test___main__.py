"""`python -m graphloop`."""

from __future__ import annotations

import subprocess
import sys

from tests.unit.cli.command_line import ROOT, environment


def test_the_package_runs_as_a_program() -> None:
    """Where scripts are not on the path, `python -m` is what people type."""
    done = subprocess.run(
        [sys.executable, "-m", "graphloop", "--version"],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("graphloop ")
