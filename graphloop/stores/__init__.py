"""Stores: save and load the journals of runs, in memory, in JSON-lines files or in SQLite.

Owns the interfaces of stores (`base.py`), the JSON encoding of events (`codec.py`), and three
stores. Refuses a driver that has lost its lease, and a state that JSON would change.
Start with `base.py`, then `memory.py`.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door
from .base import (
    Ask,
    Backlog,
    Catalog,
    Leases,
    Lookup,
    Mailbox,
    Posted,
    ReleaseStatus,
    RunRecord,
    Store,
)
from .codec import Codec, typed_events
from .journals import fork, graph_name_of, has_run, keep_all, parent_of, renamed, those_within
from .memory import MemoryStore, running_loop
from .opening import open_store
from .round_trip import check_callback_answer, check_state

if TYPE_CHECKING:
    from .jsonl import LOCK, SUFFIX, JsonlStore
    from .sqlite import SqliteStore

__all__ = [
    "LOCK",
    "SUFFIX",
    "Ask",
    "Backlog",
    "Catalog",
    "Codec",
    "JsonlStore",
    "Leases",
    "Lookup",
    "Mailbox",
    "MemoryStore",
    "Posted",
    "ReleaseStatus",
    "RunRecord",
    "SqliteStore",
    "Store",
    "check_callback_answer",
    "check_state",
    "fork",
    "graph_name_of",
    "has_run",
    "keep_all",
    "open_store",
    "parent_of",
    "renamed",
    "running_loop",
    "those_within",
    "typed_events",
]

# A run without a store needs neither module, so both load on first use.
__getattr__ = front_door(
    __name__,
    {
        ".jsonl": (
            "JsonlStore",
            "LOCK",
            "SUFFIX",
        ),
        ".sqlite": ("SqliteStore",),
    },
)
