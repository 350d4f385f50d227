"""The front door: agents, graphs, streams and results as users hold them.

Proofs, pictures and prices load when they are first asked for: to run an agent needs none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..overlays.levels import draw
    from ..prices import price, price_with
    from ..proofs.bound import Called, bound
    from ..proofs.check import check
    from ..proofs.compare import compare
    from ..proofs.endless import endless

__all__ = ["Called", "bound", "check", "compare", "draw", "endless", "price", "price_with"]

_HOMES = {
    "Called": "..proofs.bound",
    "bound": "..proofs.bound",
    "check": "..proofs.check",
    "compare": "..proofs.compare",
    "draw": "..overlays.levels",
    "endless": "..proofs.endless",
    "price": "..prices",
    "price_with": "..prices",
}


def __getattr__(name: str) -> object:
    """Load a name from its home on its first use."""
    if name in _HOMES:
        value: object = getattr(import_module(_HOMES[name], __name__), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
