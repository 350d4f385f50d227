"""The queries about runs, their mailboxes and the whole store, by two views of each schema.

`known` has the runs with events, and `told`, the status that each has now: its driver may be dead.
`record` has them as `RunRecord` does, with the number of events and the seconds that remain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec.json import Decoder

from ..base import RunRecord, RunStatus
from ..diagnosis import QueueState, Survey, UnfinishedRuns, WaitingRuns
from ..mailbox import COMMANDS_FROM, COMMANDS_UPTO
from ..rows import NAMED_MAX, reason_in, records_of, within_bounds
from ..run_ids import unknown_run
from .link import SqlLink

__all__ = [
    "commands_to",
    "existing",
    "join_pins",
    "one_record",
    "overview",
    "page_of",
    "run_ids",
    "signals",
    "survey_of",
]

# ruff: noqa: S608 - the queries are made of constants

RECORDS: Final = (
    "SELECT run_id, graph, told, events, created, changed, open_asks, target, refusals, "
    "remaining_s, revision, queue, ending FROM record"
)
WITHIN: Final = "WHERE run_id = ANY(:run_ids) OR (run_id >= :first AND run_id < :after)"
OF_GRAPH: Final = "AND (CAST(:graph AS text) IS NULL OR graph = :graph)"
NUMBERS_OF_ALL: Final = (
    f"SELECT number FROM run WHERE begun AND number > :after {OF_GRAPH} "
    "ORDER BY number LIMIT :limit"
)
# The order is that of the index: a rare status is found without a look at the others.
NUMBERS_UNOWNED: Final = (
    "SELECT number FROM run WHERE status = :status AND owner IS NULL AND begun "
    f"AND number > :after {OF_GRAPH} ORDER BY status, number LIMIT :limit"
)
# Few runs have an owner: the plus keeps SQLite from a look at all numbers.
NUMBERS_OWNED: Final = (
    f"SELECT number FROM known WHERE owner IS NOT NULL AND +number > :after {OF_GRAPH} "
    "AND told = ANY(:statuses)"
)
SERVES: Final = Decoder(dict[str, list[str]])
STATUSES: Final = "SELECT told, count(*), min(updated) FROM known GROUP BY told"
WAITS: Final = "(told IN('ready', 'interrupted') OR (told = 'parked' AND wake_at <= now_s()))"
SINCE: Final = "min(CASE told WHEN 'parked' THEN wake_at ELSE updated END)"
WAITING: Final = (
    f"SELECT agent, count(*), {SINCE} FROM known WHERE agent <> '' AND {WAITS} "
    "GROUP BY agent ORDER BY agent"
)
IS_OPEN: Final = "agent <> '' AND told NOT IN('done', 'failed', 'cancelled')"
QUEUES: Final = (
    f"SELECT queue, count(*) FILTER (WHERE {WAITS}), count(*) FILTER (WHERE told = 'running'), "
    f"{SINCE} FILTER (WHERE {WAITS}), count(*) FILTER (WHERE deadline <= now_s()) "
    f"FROM known WHERE {IS_OPEN} GROUP BY queue ORDER BY queue"
)
UNFINISHED: Final = (
    f"SELECT agent, revision, count(*) FROM known WHERE {IS_OPEN} AND revision <> '' "
    "GROUP BY agent, revision ORDER BY agent, revision"
)
SERVED: Final = "SELECT serves FROM worker WHERE name IN (SELECT name FROM live) ORDER BY name"
BLOCKED: Final = (
    "SELECT run_id, refusals FROM known WHERE told = 'blocked' ORDER BY updated LIMIT :limit"
)
ORPHANS: Final = (
    "SELECT run_id FROM known r WHERE strpos(run_id, '/') > 0 AND NOT EXISTS(SELECT 1 "
    "FROM known p WHERE p.run_id = substr(r.run_id, 1, strpos(r.run_id, '/') - 1)) "
    "ORDER BY run_id LIMIT :limit"
)


def run_ids(link: SqlLink) -> list[str]:
    """Return the ids of all runs with events, in the order of code points."""
    rows = link.ask("SELECT run_id FROM run WHERE begun ORDER BY run_id")
    return [run_id for (run_id,) in rows]


def existing(link: SqlLink, run_ids: Collection[str]) -> Collection[str]:
    """Return those of these runs that have an event."""
    asked = "SELECT run_id FROM run WHERE begun AND run_id = ANY(:run_ids)"
    return {run_id for (run_id,) in link.ask(asked, run_ids=[*run_ids])}


def signals(link: SqlLink, run_id: str) -> Mapping[str, str]:
    """Map the key of each answered question of a run to the accepted answer."""
    asked = (
        "SELECT key, data FROM signal WHERE run = (SELECT number FROM run WHERE run_id = :run_id) "
        "ORDER BY ts, key"
    )
    return dict(link.ask(asked, run_id=run_id).fetchall())


def commands_to(link: SqlLink, run_ids: Collection[str]) -> Mapping[str, Mapping[str, str]]:
    """Map the id of each of these runs that has commands to them, by key."""
    found: dict[str, dict[str, str]] = {}
    for run_id, key, data in link.ask(
        "SELECT run_id, key, data FROM run JOIN signal ON signal.run = number "
        "WHERE run_id = ANY(:run_ids) AND key >= :first AND key < :after ORDER BY ts, key",
        run_ids=[*run_ids],
        first=COMMANDS_FROM,
        after=COMMANDS_UPTO,
    ):
        found.setdefault(run_id, {})[key] = data
    return found


def overview(link: SqlLink, root: str | None) -> Sequence[RunRecord]:
    """Return the records of all runs with events, in the order of their creation.

    With a `root`, the result has only that run and its descendants. Their ids are neighbours in an
    index, so the query does not read the other runs.
    """
    if root is None:
        return records_of(link.ask(f"{RECORDS} ORDER BY number").fetchall(), None)
    *run_ids, first, after = within_bounds(root)
    rows = link.ask(
        f"{RECORDS} {WITHIN} ORDER BY number", run_ids=run_ids, first=first, after=after
    )
    return records_of(rows.fetchall(), root)


def one_record(link: SqlLink, run_id: str) -> RunRecord | None:
    """Return the record of one run; None if the run does not exist."""
    # With its parent, whose id the record tells if the parent exists.
    run_ids = [run_id, run_id.rpartition("/")[0]]
    rows = link.ask(f"{RECORDS} WHERE run_id = ANY(:run_ids)", run_ids=run_ids).fetchall()
    return next(iter(records_of(rows, run_id)), None)


def page_of(
    link: SqlLink, statuses: Collection[RunStatus], graph: str | None, *, after: str, limit: int
) -> Sequence[RunRecord]:
    """Return a page of a listing.

    Raises:
        UnknownRun: there is no run after which it could begin.
    """
    row: tuple[int] | None = (0,)
    if after:
        known = "SELECT number FROM run WHERE run_id = :run_id AND begun"
        row = link.ask(known, run_id=after).fetchone()
    if row is None:
        raise unknown_run(after)
    given = {"after": row[0], "graph": None if graph is None else link.name_of(graph)}
    if statuses:
        rows = link.ask(NUMBERS_OWNED, statuses=[*statuses], **given).fetchall()
    else:
        rows = link.ask(NUMBERS_OF_ALL, limit=limit, **given).fetchall()
    for status in statuses:
        rows += link.ask(NUMBERS_UNOWNED, status=status, limit=limit, **given)
    numbers = sorted([number for (number,) in rows])[:limit]
    found = link.ask(f"{RECORDS} WHERE number = ANY(:numbers) ORDER BY number", numbers=numbers)
    return records_of(found.fetchall(), None, cut=True)


def join_pins(attendants: Iterable[Mapping[str, str]]) -> dict[str, list[str]]:
    """Map each agent to the pins of all its workers of a store object, as `worker` keeps them."""
    pins: defaultdict[str, list[str]] = defaultdict(list)
    for agents in attendants:
        for agent, pin in agents.items():
            pins[agent].append(pin)
    return pins


def survey_of(link: SqlLink, sizes: Mapping[str, int]) -> Survey:
    """Return the state of the store, from one snapshot; its sizes are told by the database."""
    (now,) = link.ask("SELECT now_s()").fetchone() or (0.0,)
    statuses = link.ask(STATUSES).fetchall()
    live, lapsed = link.ask("SELECT live, lapsed FROM drivers").fetchone() or (0, 0)
    served: defaultdict[str, list[str]] = defaultdict(list)
    for (kept,) in link.ask(SERVED):
        for agent, pins in SERVES.decode(kept).items():
            served[agent] += pins
    return Survey(
        now,
        {status: count for status, count, _ in statuses},
        {status: oldest for status, _, oldest in statuses},
        tuple([WaitingRuns(*row) for row in link.ask(WAITING)]),
        {run_id: reason_in(kept) for run_id, kept in link.ask(BLOCKED, limit=NAMED_MAX)},
        tuple([run_id for (run_id,) in link.ask(ORPHANS, limit=NAMED_MAX)]),
        live,
        lapsed,
        sizes,
        tuple([QueueState(*row) for row in link.ask(QUEUES)]),
        tuple([UnfinishedRuns(*row) for row in link.ask(UNFINISHED)]),
        served,
    )
