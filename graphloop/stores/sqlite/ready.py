"""The queries of a SQLite store for the runs that wait for a driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

from msgspec.json import Decoder

from ..backlog import PlaceInLine, QueueLimits, in_turn, places_wanted
from ..database.store import Look
from .schema import SqliteLink, is_dead

__all__ = ["ready"]

T = TypeVar("T")

# No child run that its parent drives has an agent. A run waits in the line of its queue, agent and
# tenant, which an index has in its order. The indexes are named: the planner knows no sizes.
WAITS: Final = "status IN('ready', 'interrupted') AND owner IS NULL AND agent <> ''"
NEXT_LINE: Final = (
    f"SELECT queue, agent, tenant FROM run INDEXED BY run_line WHERE {WAITS} "  # noqa: S608 - constants only
    "AND (queue, agent, tenant) > (?, ?, ?) ORDER BY queue, agent, tenant LIMIT 1"
)
PLACES: Final = "band, -priority, updated, run_id, queue, tenant"
LINE: Final = (
    f"SELECT {PLACES} FROM run INDEXED BY run_line WHERE {WAITS} "  # noqa: S608 - constants only
    "AND queue = ? AND agent = ? AND tenant = ? AND {mine} "
    "ORDER BY band, priority DESC, updated, run_id LIMIT ?"
)
# Few runs have an owner. A run whose owner is dead waits for a driver.
OWNED: Final = (
    f"SELECT {PLACES}, agent, revision, owner, lease_until "  # noqa: S608 - constants only
    "FROM run INDEXED BY run_owner "
    "WHERE owner IS NOT NULL AND agent <> ''"
)
DUE: Final = (
    f"SELECT {PLACES} FROM run INDEXED BY run_wake WHERE wake_at <= ? "  # noqa: S608
    "AND status IN('parked', 'ready') AND owner IS NULL AND agent IN({agents}) AND {mine}"
)
BLOCKED: Final = (
    f"SELECT {PLACES} FROM run INDEXED BY run_blocked WHERE status = 'blocked' "  # noqa: S608
    "AND owner IS NULL AND agent IN({agents}) AND {mine} AND {fit}"
)
WEIGHTS: Final = Decoder(dict[str, float])


def ready(link: SqliteLink, look: Look) -> list[str]:
    """Return ids of runs that wait for a driver, or have a question that has expired."""
    (now,) = link.execute("SELECT now_s()").fetchone()
    owned = [
        (PlaceInLine(*place), agent, revision, until <= now or is_dead(owner))
        for *place, agent, revision, owner, until in link.execute(OWNED)
    ]
    busy = [(place.queue, place.tenant) for place, _, _, is_left in owned if not is_left]
    waiting = [
        place._replace(band=0)
        for place, agent, revision, is_left in owned
        if is_left and agent in look.agents
        if not look.pinned or revision in ("", *look.revisions)
    ]
    marks = ", ".join("?" * len(look.agents))
    own = tuple(look.revisions) if look.pinned else ()
    mine = f"revision IN('', {', '.join('?' * len(own))})" if look.pinned else "true"
    due = link.execute(DUE.format(agents=marks, mine=mine), (now, *look.agents, *own))
    waiting += [PlaceInLine(1, *place) for _, *place in due]
    if look.revisions:
        fit = " AND ".join(["instr(refusals, ?) = 0"] * len(look.revisions))
        blocked = BLOCKED.format(agents=marks, mine=mine, fit=fit)
        rows = link.execute(blocked, (*look.agents, *own, *look.revisions))
        waiting += [PlaceInLine(*row) for row in rows]
    queues = {
        name: QueueLimits(running=running, weights=WEIGHTS.decode(weights))
        for name, running, weights in link.execute("SELECT name, running, weights FROM queue")
    }
    places = LINE.format(mine=mine)
    heads = [
        (line, PlaceInLine(*row))
        for line in _waiting_lines(link, look.queue)
        if line[1] in look.agents
        for row in link.execute(places, (*line, *own, 1))
    ]
    wanted = places_wanted([head for _, head in heads], busy, queues, look.limit)
    for line, head in heads:
        most = wanted.get((head.queue, head.tenant), 0)
        rows = link.execute(places, (*line, *own, most))
        waiting += [PlaceInLine(*row) for row in rows]
    waiting = [place for place in waiting if look.queue in (None, place.queue)]
    return in_turn(waiting, busy, queues)[: look.limit]


def _waiting_lines(link: SqliteLink, queue: str | None) -> Iterator[tuple[str, str, str]]:
    """Yield the queue, agent and tenant of each line in which runs wait: a jump from each."""
    line = "" if queue is None else queue, "", ""
    while found := link.execute(NEXT_LINE, line).fetchall():
        (line,) = found
        if queue not in (None, line[0]):
            return
        yield line
