"""A PostgreSQL store for its operator: workers, sizes and meters, and the end of old runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, LiteralString, TypeVar

from msgspec.json import encode

from ..base import Change
from ..beginnings import PART
from ..blobs import unnamed
from ..database.claims import Holder
from ..rows import family_of
from .leases import take_row
from .schema import PostgresLink

__all__ = ["attend", "change_meters", "prune_families", "sizes_of"]

# ruff: noqa: S608 - the queries are made of constants

T = TypeVar("T")

SIZES: Final[LiteralString] = (
    "SELECT pg_database_size(current_database()), pg_total_relation_size('entry'), "
    "pg_total_relation_size('run'), pg_total_relation_size('blob'), "
    "(SELECT coalesce(sum(n_dead_tup), 0) FROM pg_stat_user_tables "
    "WHERE schemaname = 'graphloop')::bigint, "
    "(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), "
    "current_setting('max_connections')::int"
)
WORDS: Final = (
    *("bytes", "bytes of events", "bytes of runs", "bytes of media"),
    *("dead rows", "connections", "connections at most"),
)

# In the order of ids, "." comes before "/", and "0" after it: a family is two ranges of the index.
# A lateral LIMIT makes the server look into the index for each family (measured).
IS_OLD: Final[LiteralString] = (
    "(begun AND owner IS NULL AND status IN('done', 'failed', 'cancelled') "
    "AND updated <= now_s() - %(older_s)s)"
)
MEMBERS: Final[LiteralString] = (
    "SELECT number FROM run WHERE run_id = family UNION ALL "
    "SELECT number FROM run WHERE run_id >= family || '.' AND run_id < family || '0'"
)
FAMILIES: Final[LiteralString] = (
    "SELECT family FROM (SELECT regexp_replace(run_id, '\\.[0-9]+$', '') AS family FROM run "
    f"WHERE strpos(run_id, '/') = 0 AND {IS_OLD}) f LEFT JOIN LATERAL (SELECT 1 AS kept FROM run "
    f"WHERE number IN ({MEMBERS}) AND NOT {IS_OLD} LIMIT 1) k ON true "
    "WHERE kept IS NULL LIMIT %(limit)s"
)
LOCKED: Final[LiteralString] = (
    f"SELECT number, run_id, {IS_OLD} FROM run WHERE number IN (SELECT m.number "
    f"FROM unnest(%(families)s::text[]) family CROSS JOIN LATERAL ({MEMBERS}) m) "
    "ORDER BY number FOR UPDATE"
)
IS_NAMING: Final[LiteralString] = "position('sha256:'::bytea IN data) > 0"
REFERENCE: Final[LiteralString] = (
    "(regexp_matches(convert_from(data, 'UTF8'), 'sha256:[0-9a-f]{64}', 'g'))[1]"
)
NAMED: Final[LiteralString] = f"SELECT DISTINCT {REFERENCE} FROM entry WHERE {IS_NAMING}"
PARTS: Final[LiteralString] = (
    f"SELECT digest, ARRAY(SELECT {REFERENCE}) FROM blob "
    "WHERE substr(data, 1, length(%(part)s::bytea)) = %(part)s"
)


def sizes_of(link: PostgresLink) -> Mapping[str, int]:
    """Return the sizes of the database."""
    return dict(zip(WORDS, link.execute(SIZES).fetchone() or (), strict=True))


def attend(link: PostgresLink, holder: Holder, serves: dict[str, list[str]]) -> None:
    """Note which agents' runs the workers of a store object take."""
    holder.serves = serves
    take_row(link, holder)
    link.execute(
        "UPDATE worker SET serves = %s WHERE name = %s",
        (encode(holder.serves).decode(), holder.name),
    )


def change_meters(link: PostgresLink, names: Collection[str], change: Change[T]) -> T:
    """Change meters whose rows no other transaction changes meanwhile.

    The time is read once the rows are locked: a later transaction has no earlier time.
    """
    wanted = sorted(names)
    link.cursor().executemany(
        "INSERT INTO meter(name) VALUES(%s) ON CONFLICT DO NOTHING",
        [(name,) for name in wanted],
    )
    rows = link.execute(
        "SELECT name, at FROM meter WHERE name = ANY(%s) ORDER BY name FOR UPDATE", (wanted,)
    ).fetchall()
    (now,) = link.execute("SELECT now_s()").fetchone() or (0.0,)
    changed, result = change({name: at for name, at in rows if at is not None}, now)
    link.cursor().executemany(
        "UPDATE meter SET at = %s WHERE name = %s", [(at, name) for name, at in changed.items()]
    )
    return result


def prune_families(link: PostgresLink, older_s: float, limit: int) -> int:
    """Delete old families that are over, with the blobs that no other run needs.

    A store object that is open remembers parts of conversations (`beginnings.py`), and writes them
    again if they are gone.
    """
    found = {family for (family,) in link.execute(FAMILIES, {"older_s": older_s, "limit": limit})}
    # Lock the runs and look again: a driver may have claimed one meanwhile.
    rows = link.execute(LOCKED, {"older_s": older_s, "families": [*found]}).fetchall()
    kept = {family_of(run_id) for _, run_id, is_old in rows if not is_old}
    numbers = [number for number, run_id, _ in rows if family_of(run_id) not in kept]
    if not numbers:
        return 0
    naming = link.execute(
        f"SELECT 1 FROM entry WHERE run = ANY(%s) AND {IS_NAMING} LIMIT 1", (numbers,)
    ).fetchone()
    link.execute("DELETE FROM signal WHERE run = ANY(%s)", (numbers,))
    link.execute("DELETE FROM entry WHERE run = ANY(%s)", (numbers,))
    link.execute("DELETE FROM run WHERE number = ANY(%s)", (numbers,))
    if naming is not None:
        _forget_blobs(link)
    return len(numbers)


def _forget_blobs(link: PostgresLink) -> None:
    """Delete the blobs that no event needs.

    A run that is being written may need one: its append locks the table, and names its blobs before
    its event, in one transaction. The lock here waits for such appends, and the next statements see
    their events; a later append waits for this transaction, and writes its blobs again.
    """
    link.execute("LOCK TABLE blob IN SHARE ROW EXCLUSIVE MODE")
    kept = [digest for (digest,) in link.execute("SELECT digest FROM blob")]
    named = [digest for (digest,) in link.execute(NAMED)]
    parts = dict(link.execute(PARTS, {"part": PART}).fetchall())
    gone = unnamed(kept, named, parts)
    link.execute("DELETE FROM blob WHERE digest = ANY(%s)", ([*gone],))
