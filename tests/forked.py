"""Processes that start from loaded modules.

A server process imports graphloop once and forks for each process. A command then needs
milliseconds to start, and is killed, stopped and watched as any other process.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass
from functools import cache
from multiprocessing import forkserver, get_context
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Final, Protocol, final

__all__ = ["run_module", "server", "started"]

ROOT: Final = Path(__file__).parents[1]
LOADED: Final = "tests.loaded"
"""The module that the server process imports."""


@cache
def server() -> ForkServerContext:
    """Return what makes a new process at the price of a fork.

    A process has one such server, so all tests share it. It starts in the repository, since a test
    may have another current directory, where there is no module of the tests.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload([LOADED])
    with chdir(ROOT):
        forkserver.ensure_running()
    return context


class _Passed(Protocol):
    """A file descriptor on its way to another process."""

    def detach(self) -> int: ...


@final
@dataclass(frozen=True)
class _Descriptor:
    """A file descriptor that its process takes with it when it starts."""

    number: int

    def __reduce__(self) -> tuple[Callable[[_Passed], int], tuple[_Passed]]:
        return _received, (DupFd(self.number),)


def _received(passed: _Passed) -> int:
    return passed.detach()


def started(
    work: Callable[[], object],
    cwd: Path,
    environment: Mapping[str, str],
    streams: tuple[int, int, int],
    *,
    leads: bool = False,
) -> ForkServerProcess:
    """Start a process that does this work, and return it.

    Args:
        work: a function of a module.
        cwd: the directory of the process.
        environment: its environment variables.
        streams: the file descriptors of its stdin, stdout and stderr.
        leads: whether it leads a session of its own, as in a terminal.
    """
    descriptors = tuple(map(_Descriptor, streams))
    process = server().Process(target=_be, args=(work, cwd, dict(environment), descriptors, leads))
    process.start()
    return process


def run_module(words: Sequence[str]) -> None:
    """Do what `python -m` does with these words."""
    sys.argv = [*words]
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


def _be(
    work: Callable[[], object],
    cwd: Path,
    environment: Mapping[str, str],
    streams: tuple[int, int, int],
    leads: bool,
) -> None:
    """Be the process."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    if leads:
        os.setsid()
    # A shell's background job ignores SIGINT, and so do its child processes.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.path.insert(0, str(cwd))
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    work()
