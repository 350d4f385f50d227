"""Agents and graphs as users meet them.

Owns options, results, streams, approvals, stored runs and sub-agents.
Refuses an option that would take no effect, before anything is sent.
Start with `agent.py`; `runs.py` is the door to stored runs.
Proofs, pictures and prices load when they are first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..proofs.bound import Called, bound
    from ..proofs.check import check
    from ..proofs.compare import compare
    from ..proofs.endless import endless
    from ..providers.prices import price, price_with
    from ..views.levels import draw

__all__ = ["Called", "bound", "check", "compare", "draw", "endless", "price", "price_with"]

_HOMES = {
    "Called": "..proofs.bound",
    "bound": "..proofs.bound",
    "check": "..proofs.check",
    "compare": "..proofs.compare",
    "draw": "..views.levels",
    "endless": "..proofs.endless",
    "price": "..providers.prices",
    "price_with": "..providers.prices",
}


def __getattr__(name: str) -> object:
    """Load a name from its home on its first use."""
    if name in _HOMES:
        value: object = getattr(import_module(_HOMES[name], __name__), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
