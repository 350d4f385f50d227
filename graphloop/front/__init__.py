"""The front door: agents, graphs, streams and results as users hold them.

Proofs, pictures and prices load when they are first asked for: to run an agent needs none of them.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .. import prices
    from ..overlays import levels
    from ..proofs import bound, check, difference, endless

__all__ = ["bound", "check", "difference", "endless", "levels", "prices"]

_HOMES = {
    "bound": "..proofs.bound",
    "check": "..proofs.check",
    "difference": "..proofs.difference",
    "endless": "..proofs.endless",
    "levels": "..overlays.levels",
    "prices": "..prices",
}


def __getattr__(name: str) -> ModuleType:
    """Load a module on its first use."""
    if name in _HOMES:
        return import_module(_HOMES[name], __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
