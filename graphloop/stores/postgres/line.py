"""The query for the runs that wait in the lines of queues, in the order in which they go on."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, LiteralString

from .journal import stored_text
from .leases import sweep
from .schema import Link

# ruff: noqa: S608 - the queries are made of constants

__all__ = ["waiting_ids"]

# Only a child's id has a slash. A run waits in the line of its queue, graph and tenant, which an
# index has in its order. A look jumps from the head of a line to the next, and sorts the heads: of
# N wanted runs, those that the worker takes are in the first N lines of a queue. It reads at most
# so many runs of each as could be taken.
WAITS: Final[LiteralString] = (
    "status IN('ready', 'interrupted') AND owner IS NULL AND begun AND strpos(run_id, '/') = 0"
)
LINES: Final[LiteralString] = (
    "WITH RECURSIVE line(queue, graph, tenant) AS ((SELECT queue, graph, tenant FROM run "
    f"WHERE {WAITS} AND queue >= coalesce(%(queue)s, '') ORDER BY queue, graph, tenant LIMIT 1) "
    "UNION ALL SELECT n.queue, n.graph, n.tenant FROM line CROSS JOIN LATERAL "
    f"(SELECT queue, graph, tenant FROM run WHERE {WAITS} "
    "AND (queue, graph, tenant) > (line.queue, line.graph, line.tenant) "
    "ORDER BY queue, graph, tenant LIMIT 1) n WHERE n.queue = coalesce(%(queue)s, n.queue)), "
)
# `busy` counts the runs under way, and `open` how many more runs of a queue may go on.
ROOM: Final[LiteralString] = (
    "busy AS (SELECT queue, tenant, count(*) AS runs FROM run WHERE owner IS NOT NULL "
    "AND strpos(run_id, '/') = 0 GROUP BY queue, tenant), "
    "open AS (SELECT name, coalesce(running - (SELECT sum(runs) FROM busy WHERE queue = name), "
    "running, %(limit)s) AS runs, weights FROM queue), "
)
COLUMNS: Final[LiteralString] = "number, queue, tenant, band, priority, updated, run_id"
HEADS: Final[LiteralString] = (
    "head AS (SELECT line.*, row_number() OVER (PARTITION BY queue ORDER BY band, priority DESC, "
    "(coalesce(busy.runs, 0) + 1) / coalesce((open.weights->>tenant)::float8, 1), updated, run_id) "
    "AS place FROM line CROSS JOIN LATERAL (SELECT band, priority, updated, run_id FROM run "
    f"WHERE {WAITS} AND queue = line.queue AND graph = line.graph AND tenant = line.tenant "
    "ORDER BY band, priority DESC, updated, run_id LIMIT 1) h LEFT JOIN busy USING(queue, tenant) "
    "LEFT JOIN open ON name = queue WHERE graph = ANY(%(graphs)s) "
    "AND coalesce(open.runs, 1) > 0), "
)
FOUND: Final[LiteralString] = (
    f"found AS (SELECT r.* FROM head CROSS JOIN LATERAL (SELECT {COLUMNS} FROM run "
    f"WHERE {WAITS} AND queue = head.queue AND graph = head.graph AND tenant = head.tenant "
    "ORDER BY band, priority DESC, updated, run_id LIMIT %(limit)s + 1 - place) r "
    "WHERE place <= %(limit)s UNION ALL SELECT number, queue, tenant, least(band, 1), priority, "
    "updated, run_id FROM run WHERE wake_at <= now_s() AND status IN('parked', 'ready') "
    "AND owner IS NULL AND begun AND strpos(run_id, '/') = 0 AND graph = ANY(%(graphs)s) "
    "AND queue = coalesce(%(queue)s, queue) "
    f"UNION ALL SELECT {COLUMNS} FROM run WHERE status = 'blocked' AND owner IS NULL AND begun "
    "AND strpos(run_id, '/') = 0 AND graph = ANY(%(graphs)s) AND %(revisions)s::text[] <> '{}' "
    "AND queue = coalesce(%(queue)s, queue) AND NOT EXISTS(SELECT 1 "
    "FROM unnest(%(revisions)s::text[]) r WHERE position(convert_to(r, 'UTF8') IN refusals) > 0)), "
    # A run may wait for two reasons: for an answer that came, and for a time that has come.
    f"waiting AS (SELECT DISTINCT ON (number) {COLUMNS} FROM found ORDER BY number, band), "
)
READY: Final[LiteralString] = (
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


def waiting_ids(
    link: Link,
    graphs: Collection[str],
    limit: int,
    revisions: Collection[str],
    queue: str | None,
) -> list[str]:
    """Free the runs of dead workers, and return ids of root runs that wait for a driver."""
    sweep(link)
    named = [stored_text(graph) for graph in graphs]
    given = {
        "graphs": named,
        "limit": limit,
        "revisions": [*revisions],
        "queue": None if queue is None else stored_text(queue),
    }
    rows = link.execute(READY, given).fetchall()
    return [run_id for (run_id,) in rows]
