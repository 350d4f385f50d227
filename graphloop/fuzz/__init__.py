"""Fuzzing: a graph in hundreds of hostile worlds, and the simplest one in which it fails."""

from .coverage import Coverage
from .fuzzer import Fuzzer
from .fuzzing import fuzz, replay_token
from .report import Failing, FuzzReport
from .violation import INVARIANTS, Violation

__all__ = [
    "INVARIANTS",
    "Coverage",
    "Failing",
    "FuzzReport",
    "Fuzzer",
    "Violation",
    "fuzz",
    "replay_token",
]
