"""Rates: how much all processes of a store together ask of a model.

Owns `RateDesk`, which lets the requests of a process pass as the meters of a store allow.
Refuses nothing: a request waits, or its run gives its place back.
The arithmetic of a rate is in `limits/rate.py`; `desk.py` does the waiting.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door

if TYPE_CHECKING:
    from .desk import FleetPace, RateDesk, RateDesks

__all__ = ["FleetPace", "RateDesk", "RateDesks"]

# An agent without limits needs none of this.
__getattr__ = front_door(__name__, {".desk": ("FleetPace", "RateDesk", "RateDesks")})
