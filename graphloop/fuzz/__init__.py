"""Fuzzing: a graph in hundreds of hostile worlds, and the simplest one in which it fails."""

from .fuzzing import Fuzzer, fuzz, replay_token
from .report import Coverage, Failing, FuzzReport
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
