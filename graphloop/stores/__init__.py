"""Stores: save and load the journals of runs, in memory, in files or in databases.

Owns the interfaces of stores (`base.py`), the JSON encoding of events (`codec.py`), and four
stores. Refuses a driver that has lost its lease, and a state that JSON would change.
Start with `base.py`, then `memory.py`.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door
from .base import (
    Ask,
    Backlog,
    Catalog,
    Closes,
    Leases,
    Lookup,
    Mailbox,
    Posted,
    ReleaseStatus,
    RunRecord,
    RunStatus,
    Store,
    Wakes,
)
from .codec import Codec, typed_events
from .journals import (
    CommandKind,
    RunCommand,
    commands_in,
    fork,
    graph_name_of,
    has_run,
    is_command,
    keep_all,
    parent_of,
    renamed,
    those_within,
)
from .memory import MemoryStore, running_loop
from .opening import has_scheme, open_store
from .round_trip import check_callback_answer, check_state

if TYPE_CHECKING:
    from .jsonl import LOCK, SUFFIX, JsonlStore
    from .postgres import PostgresStore
    from .sqlite import SqliteStore

__all__ = [
    "LOCK",
    "SUFFIX",
    "Ask",
    "Backlog",
    "Catalog",
    "Closes",
    "Codec",
    "CommandKind",
    "JsonlStore",
    "Leases",
    "Lookup",
    "Mailbox",
    "MemoryStore",
    "Posted",
    "PostgresStore",
    "ReleaseStatus",
    "RunCommand",
    "RunRecord",
    "RunStatus",
    "SqliteStore",
    "Store",
    "Wakes",
    "check_callback_answer",
    "check_state",
    "commands_in",
    "fork",
    "graph_name_of",
    "has_run",
    "has_scheme",
    "is_command",
    "keep_all",
    "open_store",
    "parent_of",
    "renamed",
    "running_loop",
    "those_within",
    "typed_events",
]

# A run without a store needs none of these modules, so each loads on first use.
__getattr__ = front_door(
    __name__,
    {
        ".jsonl": (
            "JsonlStore",
            "LOCK",
            "SUFFIX",
        ),
        ".postgres": ("PostgresStore",),
        ".sqlite": ("SqliteStore",),
    },
)
