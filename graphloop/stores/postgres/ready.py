"""The queries of a PostgreSQL store for the runs that wait for a driver."""

from __future__ import annotations

from typing import Final, LiteralString, TypeVar

from ..database.store import Look
from .leases import IS_DUE, sweep
from .schema import PostgresLink

# ruff: noqa: S608 - the queries are made of constants

T = TypeVar("T")

__all__ = ["ready"]

# No child run that its parent drives has an agent. A run waits in the line of its queue, agent and
# tenant, which an index has in its order. A look jumps from the head of a line to the next, and
# sorts the heads: of N wanted runs, those that the worker takes are in the first N lines of a
# queue. It reads at most so many runs of each as could be taken.
WAITS: Final[LiteralString] = (
    "status IN('ready', 'interrupted') AND owner IS NULL AND begun AND agent <> ''"
)
MINE: Final[LiteralString] = "revision = ANY(coalesce(%(pins)s::text[], ARRAY[revision]))"
"""Whether a run fits a pinned worker; each fits a worker without pins."""
LINES: Final[LiteralString] = (
    "WITH RECURSIVE line(queue, agent, tenant) AS ((SELECT queue, agent, tenant FROM run "
    f"WHERE {WAITS} AND queue >= coalesce(%(queue)s, '') ORDER BY queue, agent, tenant LIMIT 1) "
    "UNION ALL SELECT n.queue, n.agent, n.tenant FROM line CROSS JOIN LATERAL "
    f"(SELECT queue, agent, tenant FROM run WHERE {WAITS} "
    "AND (queue, agent, tenant) > (line.queue, line.agent, line.tenant) "
    "ORDER BY queue, agent, tenant LIMIT 1) n WHERE n.queue = coalesce(%(queue)s, n.queue)), "
)
# `busy` counts the runs under way, and `open` how many more runs of a queue may go on.
ROOM: Final[LiteralString] = (
    "busy AS (SELECT queue, tenant, count(*) AS runs FROM run WHERE owner IS NOT NULL "
    "AND agent <> '' GROUP BY queue, tenant), "
    "open AS (SELECT name, coalesce(running - (SELECT sum(runs) FROM busy WHERE queue = name), "
    "running, %(limit)s) AS runs, weights FROM queue), "
)
COLUMNS: Final[LiteralString] = "number, queue, tenant, band, priority, updated, run_id"
# A tenant has the place of the best of its lines: its turns count over the lines of all agents.
HEADS: Final[LiteralString] = (
    "head AS (SELECT queue, agent, tenant, dense_rank() OVER (PARTITION BY queue ORDER BY best) "
    "AS place FROM (SELECT queue, agent, tenant, min(place) OVER (PARTITION BY queue, tenant) "
    "AS best FROM (SELECT line.*, row_number() OVER (PARTITION BY queue ORDER BY band, "
    "priority DESC, (coalesce(busy.runs, 0) + 1) / coalesce((open.weights->>tenant)::float8, 1), "
    "updated, run_id) AS place FROM line CROSS JOIN LATERAL "
    "(SELECT band, priority, updated, run_id FROM run "
    f"WHERE {WAITS} AND queue = line.queue AND agent = line.agent AND tenant = line.tenant "
    f"AND {MINE} ORDER BY band, priority DESC, updated, run_id LIMIT 1) h "
    "LEFT JOIN busy USING(queue, tenant) LEFT JOIN open ON name = queue "
    "WHERE agent = ANY(%(agents)s) AND coalesce(open.runs, 1) > 0) lines) tenants), "
)
FOUND: Final[LiteralString] = (
    f"found AS (SELECT r.* FROM head CROSS JOIN LATERAL (SELECT {COLUMNS} FROM run "
    f"WHERE {WAITS} AND queue = head.queue AND agent = head.agent AND tenant = head.tenant "
    f"AND {MINE} ORDER BY band, priority DESC, updated, run_id LIMIT %(limit)s + 1 - place) r "
    "WHERE place <= %(limit)s UNION ALL SELECT number, queue, tenant, least(band, 1), priority, "
    "updated, run_id FROM run WHERE wake_at <= now_s() AND status IN('parked', 'ready') "
    "AND owner IS NULL AND begun AND agent <> '' AND agent = ANY(%(agents)s) "
    f"AND queue = coalesce(%(queue)s, queue) AND {MINE} "
    f"UNION ALL SELECT {COLUMNS} FROM run WHERE status = 'blocked' AND owner IS NULL AND begun "
    "AND agent <> '' AND agent = ANY(%(agents)s) AND %(revisions)s::text[] <> '{}' "
    f"AND queue = coalesce(%(queue)s, queue) AND {MINE} AND NOT EXISTS(SELECT 1 "
    "FROM unnest(%(revisions)s::text[]) r WHERE strpos(refusals, r) > 0)), "
    # A run may wait for two reasons: for an answer that came, and for a time that has come.
    f"waiting AS (SELECT DISTINCT ON (number) {COLUMNS} FROM found ORDER BY number, band), "
)
WAITING: Final[LiteralString] = (
    LINES + ROOM + HEADS + FOUND + "ranked AS (SELECT waiting.*, (coalesce(busy.runs, 0) + "
    "row_number() OVER (PARTITION BY queue, tenant ORDER BY band, priority DESC, updated, run_id)) "
    "/ coalesce((open.weights->>tenant)::float8, 1) AS turn, open.runs AS room "
    "FROM waiting LEFT JOIN busy USING(queue, tenant) LEFT JOIN open ON name = queue), "
    "chosen AS (SELECT *, row_number() OVER (PARTITION BY queue ORDER BY band, priority DESC, "
    "turn, updated, run_id) AS place FROM ranked) "
    "SELECT run.run_id FROM (SELECT * FROM chosen WHERE room IS NULL OR place <= room "
    "ORDER BY band, priority DESC, turn, updated, run_id LIMIT 2 * %(limit)s) best "
    "JOIN run USING(number) WHERE owner IS NULL ORDER BY best.band, best.priority DESC, turn, "
    "best.updated, run.run_id LIMIT %(limit)s "
    # A row that another transaction changes now is another worker's.
    "FOR UPDATE OF run SKIP LOCKED"
)
READY: Final[LiteralString] = (
    f"WITH ready AS ({WAITING}) SELECT ({IS_DUE}), ARRAY(SELECT run_id FROM ready)"
)


def ready(link: PostgresLink, look: Look) -> list[str]:
    """Free the runs of dead workers, and return ids of runs that wait for a driver."""
    given = {
        "agents": [link.name_of(agent) for agent in look.agents],
        "limit": look.limit,
        "revisions": [*look.revisions],
        "queue": None if look.queue is None else link.name_of(look.queue),
        "pins": ["", *look.revisions] if look.pinned else None,
    }
    is_due, found = link.execute(READY, given, prepare=True).fetchone() or (False, [])
    if is_due:
        sweep(link)
        _, found = link.execute(READY, given).fetchone() or (False, [])
    return list(found)
