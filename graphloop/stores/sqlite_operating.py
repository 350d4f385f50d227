"""A SQLite store for its operator: its state, its meters, and the end of old runs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection
from sqlite3 import Connection
from typing import Final, TypeVar

from .base import Change
from .beginnings import PART
from .diagnosis import Survey, WaitingRuns
from .rows import NAMED_MAX, family_of, reason_in
from .sqlite_leases import is_dead
from .sqlite_schema import entry_id

__all__ = ["change_meters", "prune_families", "survey_of"]

T = TypeVar("T")

RUNS: Final = (
    "SELECT run_id, agent, status, owner, lease_until, updated, wake_at, refusals FROM run "
    "WHERE next_seq > 1 "
    "ORDER BY updated"
)
# In the order of the ids, "." comes before "/", and "0" after it: a family's ids are two ranges.
IS_OLD: Final = (
    "(next_seq > 1 AND owner IS NULL AND status IN('done', 'failed', 'cancelled') "
    "AND updated <= :before)"
)
OLD: Final = (
    "WITH old AS (SELECT DISTINCT family FROM (SELECT family(run_id) AS family FROM run "  # noqa: S608
    f"WHERE instr(run_id, '/') = 0 AND {IS_OLD}) WHERE NOT EXISTS(SELECT 1 FROM run "
    f"WHERE run_id >= family || '.' AND run_id < family || '0' AND NOT {IS_OLD}) "
    f"AND NOT EXISTS(SELECT 1 FROM run WHERE run_id = family AND NOT {IS_OLD}) LIMIT :limit) "
    "SELECT number, run_id FROM old JOIN run ON run_id = family "
    "UNION SELECT number, run_id FROM old JOIN run "
    "ON run_id >= family || '.' AND run_id < family || '0'"
)
REFERENCE: Final = re.compile(rb"sha256:[0-9a-f]{64}")


def survey_of(connection: Connection, now: float) -> Survey:
    """Return the state of the store, from one snapshot."""
    runs: defaultdict[str, int] = defaultdict(int)
    oldest: dict[str, float] = {}
    waiting: dict[str, WaitingRuns] = {}
    blocked: dict[str, bytes] = {}
    children: list[str] = []
    roots: set[str] = set()
    owners: dict[str, bool] = {}
    for run_id, agent, left_as, owner, lease_until, updated, wake_at, kept in connection.execute(
        RUNS
    ):
        status: str = left_as
        if owner is not None:
            owners[owner] = lease_until > now and not is_dead(owner)
            status = "running" if owners[owner] else "interrupted"
        runs[status] += 1
        oldest.setdefault(status, updated)
        (children.append if "/" in run_id else roots.add)(run_id)
        if status == "blocked":
            blocked[run_id] = kept
        since: float | None = wake_at if status == "parked" else None
        if status in ("ready", "interrupted"):
            since = updated
        if agent and since is not None and since <= now:
            before = waiting.get(agent, WaitingRuns(agent, 0, since))
            waiting[agent] = WaitingRuns(agent, before.runs + 1, min(before.since, since))
    return Survey(
        now,
        dict(runs),
        oldest,
        tuple([waiting[agent] for agent in sorted(waiting)]),
        {run_id: reason_in(kept) for run_id, kept in [*blocked.items()][:NAMED_MAX]},
        tuple([one for one in children if one.partition("/")[0] not in roots][:NAMED_MAX]),
        sum(owners.values()),
        len(owners) - sum(owners.values()),
        _sizes(connection),
    )


def _sizes(connection: Connection) -> dict[str, int]:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    return {"bytes": pages * size, "free bytes": free * size}


def change_meters(
    connection: Connection, now: float, names: Collection[str], change: Change[T]
) -> T:
    """Change meters in the writer's transaction, which excludes other processes."""
    marks = ", ".join("?" * len(names))
    rows = connection.execute(
        f"SELECT name, at FROM meter WHERE name IN ({marks})",  # noqa: S608 - marks only
        [*names],
    ).fetchall()
    changed, result = change(dict(rows), now)
    connection.executemany(
        "INSERT OR REPLACE INTO meter(name, at) VALUES(?, ?)", [*changed.items()]
    )
    return result


def prune_families(connection: Connection, now: float, older_s: float, limit: int) -> int:
    """Delete old families that are over, with the media that no other run shows.

    The parts of conversations stay (`beginnings.py`), and what they show: a store object that is
    open remembers which parts are saved.
    """
    connection.create_function("family", 1, family_of, deterministic=True)
    wanted = {"before": now - older_s, "limit": limit}
    old: list[tuple[int, str]] = connection.execute(OLD, wanted).fetchall()
    shown: set[bytes] = set()
    for number, run_id in old:
        bounds = entry_id(number, 0), entry_id(number + 1, 0)
        for (data,) in connection.execute(
            "SELECT data FROM entry WHERE id >= ? AND id < ?", bounds
        ):
            shown.update(REFERENCE.findall(data))
        connection.execute("DELETE FROM signal WHERE run_id = ?", (run_id,))
        connection.execute("DELETE FROM entry WHERE id >= ? AND id < ?", bounds)
        connection.execute("DELETE FROM run WHERE number = ?", (number,))
    _forget_media(connection, shown)
    return len(old)


def _forget_media(connection: Connection, shown: set[bytes]) -> None:
    """Delete these media, but for those that an event or a part of a conversation shows."""
    left = set(shown)
    for table in ("entry", "blob"):
        for (data,) in connection.execute(f"SELECT data FROM {table}") if left else ():  # noqa: S608
            if table == "entry" or data.startswith(PART):
                left.difference_update(REFERENCE.findall(data))
    for digest in left:
        connection.execute(
            "DELETE FROM blob WHERE digest = ? AND substr(data, 1, ?) <> ?",
            (digest.decode(), len(PART), PART),
        )
