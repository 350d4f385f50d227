"""Testing: runs graphs without real models or tools, and searches for faults in them.

Owns the scripted model, the simulation of a run, and the fuzzer behind `graphloop fuzz`.
The fuzzer's report gives, for each failure, the command that replays it.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door

if TYPE_CHECKING:
    from ..providers import ScriptedModel, allow_requests, keys_deferred, refuse_requests
    from .fuzzing import fuzz, replay_token
    from .recording import RecordedModel, recorded
    from .report import FuzzReport
    from .safety import assert_safe
    from .sim import Simulation, World, simulate

__all__ = [
    "FuzzReport",
    "RecordedModel",
    "ScriptedModel",
    "Simulation",
    "World",
    "allow_requests",
    "assert_safe",
    "fuzz",
    "keys_deferred",
    "recorded",
    "refuse_requests",
    "replay_token",
    "simulate",
]

__getattr__ = front_door(
    __name__,
    {
        "..providers": (
            "ScriptedModel",
            "allow_requests",
            "keys_deferred",
            "refuse_requests",
        ),
        ".fuzzing": (
            "fuzz",
            "replay_token",
        ),
        ".recording": (
            "RecordedModel",
            "recorded",
        ),
        ".report": ("FuzzReport",),
        ".safety": ("assert_safe",),
        ".sim": (
            "Simulation",
            "World",
            "simulate",
        ),
    },
)
