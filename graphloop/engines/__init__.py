"""Engines: decide which run a worker drives next, and when.

Owns the port (`base.py`), the legs of a worker, and the engine `Pull`, which looks into the store.
Refuses nothing about a run, and keeps no truth: that is the journal. Each mistake of an engine is
harmless, because a second driver of a run is refused by the store.
Start with `base.py`, then `pull.py`.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door

if TYPE_CHECKING:
    from .base import Driven, Engine, Outbox, SharedStore
    from .dbos import Dbos
    from .legs import Legs
    from .pull import Pull
    from .temporal_io import TemporalIo

__all__ = ["Dbos", "Driven", "Engine", "Legs", "Outbox", "Pull", "SharedStore", "TemporalIo"]

__getattr__ = front_door(
    __name__,
    {
        # Temporal's sandbox imports this room for each workflow: the port loads on first use, too.
        ".base": ("Driven", "Engine", "Outbox", "SharedStore"),
        ".dbos": ("Dbos",),
        ".legs": ("Legs",),
        ".pull": ("Pull",),
        ".temporal_io": ("TemporalIo",),
    },
    needs={".dbos": "'graphloop[dbos]'", ".temporal_io": "'graphloop[temporal]'"},
)
