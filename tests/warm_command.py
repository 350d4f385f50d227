"""The process of a command of `tests/warm_python.py`: `python -I -S warm_command.py ADDRESS …`."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from contextlib import suppress
from types import FrameType

address, *words = sys.argv[1:]
asked = {"words": words, "cwd": os.getcwd(), "environment": dict(os.environ)}  # noqa: PTH109
line = json.dumps(asked).encode()


def pass_on(number: int, _: FrameType | None) -> None:
    """Send a signal on, unless the command has ended."""
    with suppress(OSError):
        link.sendall(bytes([number]))


with socket.socket(socket.AF_UNIX) as link:
    link.connect(address)
    for passed in (signal.SIGINT, signal.SIGTERM):
        signal.signal(passed, pass_on)
    socket.send_fds(link, [len(line).to_bytes(4)], [0, 1, 2])
    link.sendall(line)
    for number in (0, 1, 2):
        os.close(number)
    ended = int.from_bytes(link.recv(4), signed=True)
if ended < 0:
    signal.signal(-ended, signal.SIG_DFL)
    os.kill(os.getpid(), -ended)
os._exit(ended)
