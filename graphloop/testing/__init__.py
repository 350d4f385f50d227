"""Testing: a scripted model, a simulated world, and an adversary.

Owns what users test their graphs with, and the fuzzer behind `graphloop fuzz`.
A failure prints the command that replays it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..providers.script import ScriptedModel
    from .fuzzing import fuzz, replay_token
    from .report import FuzzReport
    from .safety import assert_safe
    from .sim import Simulation, World, simulate

__all__ = [
    "FuzzReport",
    "ScriptedModel",
    "Simulation",
    "World",
    "assert_safe",
    "fuzz",
    "replay_token",
    "simulate",
]

_HOMES = {
    "ScriptedModel": "..providers.script",
    "fuzz": ".fuzzing",
    "replay_token": ".fuzzing",
    "FuzzReport": ".report",
    "assert_safe": ".safety",
    "Simulation": ".sim",
    "World": ".sim",
    "simulate": ".sim",
}


def __getattr__(name: str) -> object:
    """Load a name from its home on its first use: the pytest plugin needs none of them."""
    if name in _HOMES:
        value: object = getattr(import_module(_HOMES[name], __name__), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
