"""Workers: processes that take stored runs further, each run wherever a worker is free.

Owns `Worker`, which drives the runs that its engine names, and `Client`, which answers and commands
such runs without their code.
Refuses nothing about a run: a run that its code cannot drive is `blocked`, never failed.
Start with `worker.py`; `Runs.submit` stores a new run for a worker.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door

if TYPE_CHECKING:
    from .client import Client, Ended, Journaled
    from .deltas import Streamed
    from .worker import Worker

__all__ = ["Client", "Ended", "Journaled", "Streamed", "Worker"]

__getattr__ = front_door(
    __name__,
    {
        ".client": ("Client", "Ended", "Journaled"),
        ".deltas": ("Streamed",),
        ".worker": ("Worker",),
    },
)
