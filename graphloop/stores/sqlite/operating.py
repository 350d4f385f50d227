"""A SQLite store for its operator: its state, its meters, and the end of old runs."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from sqlite3 import Connection
from typing import Final, NamedTuple, TypeVar

from msgspec.json import Decoder, encode

from ..base import OVER, Change
from ..beginnings import PART
from ..diagnosis import BegunRuns, QueueState, Survey, WaitingRuns
from ..rows import NAMED_MAX, family_of, reason_in
from .leases import Holder, is_dead
from .schema import entry_id

__all__ = ["attend", "change_meters", "prune_families", "survey_of"]

T = TypeVar("T")

RUNS: Final = (
    "SELECT run_id, agent, status, owner, lease_until, updated, wake_at, refusals, queue, "
    "deadline, revision FROM run WHERE next_seq > 1 ORDER BY updated"
)
SERVES: Final = Decoder(dict[str, str])
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


class _Row(NamedTuple):
    """A run; `status` is that which it has now, as in its record."""

    run_id: str
    agent: str
    status: str
    owner: str | None
    lease_until: float
    updated: float
    wake_at: float | None
    refusals: bytes
    queue: str
    deadline: float | None
    revision: str

    def waits_since(self, now: float) -> float | None:
        """Return the time from which a run that drivers take waits for one; None if it does not."""
        since = self.wake_at if self.status == "parked" else None
        if self.status in ("ready", "interrupted"):
            since = self.updated
        return since if self.agent and since is not None and since <= now else None


def survey_of(connection: Connection, now: float) -> Survey:
    """Return the state of the store, from one snapshot."""
    owners: dict[str, bool] = {}
    rows: list[_Row] = []
    for row in map(_Row._make, connection.execute(RUNS)):
        if row.owner is None:
            rows.append(row)
            continue
        owners[row.owner] = row.lease_until > now and not is_dead(row.owner)
        rows.append(row._replace(status="running" if owners[row.owner] else "interrupted"))
    roots = {row.run_id for row in rows if "/" not in row.run_id}
    orphans = [row.run_id for row in rows if row.run_id.partition("/")[0] not in roots]
    blocked = [row for row in rows if row.status == "blocked"][:NAMED_MAX]
    served: defaultdict[str, list[str]] = defaultdict(list)
    for name, kept in connection.execute("SELECT name, serves FROM worker ORDER BY name"):
        for agent, pin in SERVES.decode(kept).items() if not is_dead(name) else ():
            served[agent].append(pin)
    return Survey(
        now,
        Counter([row.status for row in rows]),
        {row.status: row.updated for row in reversed(rows)},
        _waiting(rows, now),
        {row.run_id: reason_in(row.refusals) for row in blocked},
        tuple(orphans[:NAMED_MAX]),
        sum(owners.values()),
        len(owners) - sum(owners.values()),
        _sizes(connection),
        _queues(rows, now),
        _begun(rows),
        served,
    )


def _waiting(rows: Iterable[_Row], now: float) -> tuple[WaitingRuns, ...]:
    waiting: defaultdict[str, list[float]] = defaultdict(list)
    for row in rows:
        if (since := row.waits_since(now)) is not None:
            waiting[row.agent].append(since)
    return tuple(
        [WaitingRuns(name, len(all_), min(all_)) for name, all_ in sorted(waiting.items())]
    )


def _queues(rows: Iterable[_Row], now: float) -> tuple[QueueState, ...]:
    queues: defaultdict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        if row.agent and row.status not in OVER:
            queues[row.queue].append(row)
    return tuple(
        QueueState(
            queue,
            len(waits := [at for row in found if (at := row.waits_since(now)) is not None]),
            sum(row.status == "running" for row in found),
            min(waits, default=None),
            sum(row.deadline is not None and row.deadline <= now for row in found),
        )
        for queue, found in sorted(queues.items())
    )


def _begun(rows: Iterable[_Row]) -> tuple[BegunRuns, ...]:
    begun = Counter(
        [
            (row.agent, row.revision)
            for row in rows
            if row.agent and row.revision and row.status not in OVER
        ]
    )
    return tuple([BegunRuns(*code, runs) for code, runs in sorted(begun.items())])


def attend(connection: Connection, holder: Holder, agents: Mapping[str, str]) -> None:
    """Note which agents' runs the workers of a store object take, and forget dead workers."""
    names = connection.execute("SELECT name FROM worker").fetchall()
    dead = [one for one in names if is_dead(one[0])]
    connection.executemany("DELETE FROM worker WHERE name = ?", dead)
    holder.serves.update(agents)
    connection.execute(
        "INSERT OR REPLACE INTO worker(name, serves) VALUES(?, ?)",
        (holder.name, encode(holder.serves)),
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
