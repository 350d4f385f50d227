"""Stores: save and load the journals of runs, in memory, in files or in databases.

Owns the interfaces of stores (`base.py`), the JSON encoding of events (`codec.py`), and four
stores. Refuses a driver that has lost its lease, and a state that JSON would change.
Start with `base.py`, then `memory.py`.
"""

from typing import TYPE_CHECKING

from ..lazy import front_door
from .backlog import Backlog, QueueLimits, Submission, enlist
from .base import (
    OVER,
    Ask,
    Catalog,
    Change,
    Closes,
    Leases,
    Lookup,
    Mailbox,
    Meters,
    Posted,
    Refusal,
    Relays,
    ReleaseStatus,
    RunRecord,
    RunStatus,
    Store,
    Wakes,
)
from .codec import Codec, typed_events
from .journals import (
    RELEASED_AS,
    graph_name_of,
    renamed,
    revisions_in,
    state_after,
    typed,
    why_ended,
)
from .mailbox import CommandKind, RunCommand, commands_in, is_command
from .memory import MemoryStore, running_loop
from .round_trip import check_callback_answer, check_state
from .run_ids import (
    check_run_id,
    check_text,
    has_run,
    paged,
    parent_of,
    path_of,
    root_of,
    those_of,
    those_within,
)

if TYPE_CHECKING:
    from .diagnosis import (
        REVISION_SHOWN,
        Need,
        Operated,
        QueueState,
        Survey,
        UnfinishedRuns,
        WaitingRuns,
        age_text,
        diagnosed,
        metrics_text,
    )
    from .forking import fork_run, keep_all
    from .jsonl import LOCK, SUFFIX, JsonlStore
    from .opening import has_scheme, open_store, shown_address
    from .postgres import PostgresStore
    from .revision import revision_of
    from .sqlite.store import SqliteStore

__all__ = [
    "LOCK",
    "OVER",
    "RELEASED_AS",
    "REVISION_SHOWN",
    "SUFFIX",
    "Ask",
    "Backlog",
    "Catalog",
    "Change",
    "Closes",
    "Codec",
    "CommandKind",
    "JsonlStore",
    "Leases",
    "Lookup",
    "Mailbox",
    "MemoryStore",
    "Meters",
    "Need",
    "Operated",
    "Posted",
    "PostgresStore",
    "QueueLimits",
    "QueueState",
    "Refusal",
    "Relays",
    "ReleaseStatus",
    "RunCommand",
    "RunRecord",
    "RunStatus",
    "SqliteStore",
    "Store",
    "Submission",
    "Survey",
    "UnfinishedRuns",
    "WaitingRuns",
    "Wakes",
    "age_text",
    "check_callback_answer",
    "check_run_id",
    "check_state",
    "check_text",
    "commands_in",
    "diagnosed",
    "enlist",
    "fork_run",
    "graph_name_of",
    "has_run",
    "has_scheme",
    "is_command",
    "keep_all",
    "metrics_text",
    "open_store",
    "paged",
    "parent_of",
    "path_of",
    "renamed",
    "revision_of",
    "revisions_in",
    "root_of",
    "running_loop",
    "shown_address",
    "state_after",
    "those_of",
    "those_within",
    "typed",
    "typed_events",
    "why_ended",
]

# A run without a store needs none of these modules, so each loads on first use.
__getattr__ = front_door(
    __name__,
    {
        ".diagnosis": (
            *("REVISION_SHOWN", "UnfinishedRuns", "Need", "Operated", "QueueState", "Survey"),
            "WaitingRuns",
            *("age_text", "diagnosed", "metrics_text"),
        ),
        ".forking": ("fork_run", "keep_all"),
        ".jsonl": (
            "JsonlStore",
            "LOCK",
            "SUFFIX",
        ),
        ".opening": ("has_scheme", "open_store", "shown_address"),
        ".postgres": ("PostgresStore",),
        ".revision": ("revision_of",),
        ".sqlite.store": ("SqliteStore",),
    },
)
