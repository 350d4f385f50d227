"""A SQLite store for its operator: its workers, sizes and meters, and the end of old runs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final, TypeVar

from msgspec.json import encode

from ..base import Change
from ..beginnings import PART
from ..blobs import unnamed
from ..database.claims import Holder
from ..rows import family_of
from .schema import SqliteLink, entry_id, is_dead

__all__ = ["attend", "change_meters", "prune_families", "sizes_of"]

T = TypeVar("T")

# In the order of the ids, "." comes before "/", and "0" after it: a family's ids are two ranges.
IS_OLD: Final = (
    "(begun AND owner IS NULL AND status IN('done', 'failed', 'cancelled') "
    "AND updated <= now_s() - :older_s)"
)
OLD: Final = (
    "WITH old AS (SELECT DISTINCT family FROM (SELECT family(run_id) AS family FROM run "  # noqa: S608
    f"WHERE instr(run_id, '/') = 0 AND {IS_OLD}) WHERE NOT EXISTS(SELECT 1 FROM run "
    f"WHERE run_id >= family || '.' AND run_id < family || '0' AND NOT {IS_OLD}) "
    f"AND NOT EXISTS(SELECT 1 FROM run WHERE run_id = family AND NOT {IS_OLD}) LIMIT :limit) "
    "SELECT number FROM old JOIN run ON run_id = family UNION SELECT number FROM old JOIN run "
    "ON run_id >= family || '.' AND run_id < family || '0'"
)
NAMING: Final = "SELECT data FROM entry WHERE instr(data, CAST('sha256:' AS BLOB)) > 0"
REFERENCE: Final = re.compile(rb"sha256:[0-9a-f]{64}")


def attend(link: SqliteLink, holder: Holder, serves: dict[str, list[str]]) -> None:
    """Note which agents' runs the workers of a store object take, and forget dead workers."""
    names = link.execute("SELECT name FROM worker").fetchall()
    dead = [one for one in names if is_dead(one[0])]
    link.executemany("DELETE FROM worker WHERE name = ?", dead)
    holder.serves = serves
    link.execute(
        "INSERT OR REPLACE INTO worker(name, serves) VALUES(?, ?)",
        (holder.name, encode(holder.serves).decode()),
    )


def sizes_of(link: SqliteLink) -> Mapping[str, int]:
    """Return the sizes of the database."""
    (pages,) = link.execute("PRAGMA page_count").fetchone()
    (free,) = link.execute("PRAGMA freelist_count").fetchone()
    (size,) = link.execute("PRAGMA page_size").fetchone()
    return {"bytes": pages * size, "free bytes": free * size}


def change_meters(link: SqliteLink, names: Collection[str], change: Change[T]) -> T:
    """Change the meters of a fleet's rates in the writer's transaction, which excludes others."""
    (now,) = link.execute("SELECT now_s()").fetchone()
    marks = ", ".join("?" * len(names))
    rows = link.execute(
        f"SELECT name, at FROM meter WHERE name IN ({marks})",  # noqa: S608 - marks only
        [*names],
    ).fetchall()
    changed, result = change(dict(rows), now)
    link.executemany("INSERT OR REPLACE INTO meter(name, at) VALUES(?, ?)", [*changed.items()])
    return result


def prune_families(link: SqliteLink, older_s: float, limit: int) -> int:
    """Delete old families that are over, with the blobs that no other run needs.

    A store object that is open remembers parts of conversations (`beginnings.py`), and writes them
    again if they are gone.
    """
    link.create_function("family", 1, family_of, deterministic=True)
    wanted = {"older_s": older_s, "limit": limit}
    old: list[tuple[int]] = link.execute(OLD, wanted).fetchall()
    naming = 0
    for (number,) in old:
        bounds = entry_id(number, 0), entry_id(number + 1, 0)
        naming += len(link.execute(f"{NAMING} AND id >= ? AND id < ? LIMIT 1", bounds).fetchall())
        link.execute("DELETE FROM signal WHERE run = ?", (number,))
        link.execute("DELETE FROM entry WHERE id >= ? AND id < ?", bounds)
        link.execute("DELETE FROM run WHERE number = ?", (number,))
    if naming:
        _forget_blobs(link)
    return len(old)


def _forget_blobs(link: SqliteLink) -> None:
    """Delete the blobs that no event needs."""
    kept = [digest for (digest,) in link.execute("SELECT digest FROM blob")]
    named = [each for (data,) in link.execute(NAMING) for each in _references(data)]
    parts = {
        digest: _references(data)
        for digest, data in link.execute(
            "SELECT digest, data FROM blob WHERE substr(data, 1, ?) = ?", (len(PART), PART)
        )
    }
    gone = [(digest,) for digest in unnamed(kept, named, parts)]
    link.executemany("DELETE FROM blob WHERE digest = ?", gone)


def _references(data: bytes) -> list[str]:
    return [digest.decode() for digest in REFERENCE.findall(data)]
