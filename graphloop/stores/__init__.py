"""Stores: where journals are kept.

Owns the seam (`base.py`), the journal's written form (`codec.py`), and three stores.
Refuses a writer without its lease, and an event that would be read back as another.
Start with `base.py`, then `memory.py`.
"""

from .base import Ask, Catalog, Leases, Mailbox, Posted, ReleaseStatus, RunRecord, Store
from .codec import Codec, typed_events
from .journals import fork, graph_name_of, parent_of, those_within
from .jsonl import LOCK, SUFFIX
from .memory import MemoryStore, running_loop
from .opening import open_store
from .sqlite import SqliteStore

__all__ = [
    "LOCK",
    "SUFFIX",
    "Ask",
    "Catalog",
    "Codec",
    "Leases",
    "Mailbox",
    "MemoryStore",
    "Posted",
    "ReleaseStatus",
    "RunRecord",
    "SqliteStore",
    "Store",
    "fork",
    "graph_name_of",
    "open_store",
    "parent_of",
    "running_loop",
    "those_within",
    "typed_events",
]
