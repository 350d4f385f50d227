"""A command in the place of `python`, whose script starts with the protocols' SDKs loaded.

To load the SDK of the Model Context Protocol takes two seconds, and each test that starts a server
would wait for it. The process of the command passes its streams to a forked process, and ends as
that one ends. It passes SIGINT and SIGTERM, too; once it is killed, the forked process is.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import sys
import tempfile
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, NoReturn

from tests.forked import run_module, started

__all__ = ["warm_python"]

ROOT: Final = Path(__file__).parents[1]
COMMAND: Final = (sys.executable, "-I", "-S", str(Path(__file__).parent / "warm_command.py"))
LENGTH: Final = 4


@cache
def warm_python() -> tuple[str, ...]:
    """Return the beginning of a command.

    `-m MODULE` or a script follows, and its arguments; before them may stand `-W ACTION`.
    """
    folder = tempfile.TemporaryDirectory(prefix="graphloop-warm-")
    address = str(Path(folder.name) / "python")
    given, goes_on = os.pipe()
    told, tells = os.pipe()
    server = started(partial(_serve, address), ROOT, os.environ, (given, tells, 2))
    for descriptor in (given, tells):
        os.close(descriptor)
    assert os.read(told, 1), "the server listens"

    def over() -> None:
        os.close(goes_on)
        server.join()
        folder.cleanup()

    atexit.register(over)
    return (*COMMAND, address)


def _serve(address: str) -> None:
    """Fork a child for each command, until standard input ends."""
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as commands:
        commands.bind(address)
        commands.listen()
        os.write(1, b"!")
        while True:
            ready, _, _ = select.select([0, commands.fileno()], [], [])
            if 0 in ready:
                return
            command, _ = commands.accept()
            if os.fork() == 0:
                commands.close()
                _watch(command)
            command.close()
            _bury()


def _bury() -> None:
    """Let the processes go whose commands are over."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _watch(command: socket.socket) -> NoReturn:
    """Start the child of a command, and tell the command how it ends; end it with the command."""
    head, streams, _, _ = socket.recv_fds(command, LENGTH, 3)
    with command.makefile("rb") as lines:
        asked: dict[str, Any] = json.loads(lines.read(int.from_bytes(head)))
    ended, alive = os.pipe()
    child = os.fork()
    if child == 0:
        command.close()
        _be(streams, asked)
    for descriptor in (alive, 0, 1, *streams):
        os.close(descriptor)
    while ended not in select.select([ended, command.fileno()], [], [])[0]:
        (number,) = command.recv(1) or (signal.SIGKILL,)
        os.kill(child, number)
        if number == signal.SIGKILL:
            break
    _, status = os.waitpid(child, 0)
    with suppress(ConnectionError):
        command.sendall(os.waitstatus_to_exitcode(status).to_bytes(LENGTH, signed=True))
    os._exit(0)


def _be(streams: Sequence[int], asked: dict[str, Any]) -> NoReturn:
    """Be the process of a command."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    encoding = asked["environment"].get("PYTHONIOENCODING", "utf-8")
    sys.stdout = open(1, "w", encoding=encoding, closefd=False, buffering=1)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    first, *rest = asked["words"]
    if first == "-W":
        warnings.simplefilter(*rest[:1])
        first, *rest = rest[1:]
    code: object = 0
    try:
        if first == "-m":
            run_module(rest)
        else:
            sys.argv = [first, *rest]
            runpy.run_path(first, run_name="__main__")
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:  # noqa: BLE001 - as Python does
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    os._exit(code if isinstance(code, int) else 1)
