"""List the runs of a store that are not over, and what they wait for.

  graphloop runs --store runs.db
  graphloop runs --store runs.db --all
  graphloop runs --store runs.db --status interrupted --json
  graphloop runs --store runs.db --status parked --limit 50

The status of a run:

  ready        a fork that no driver has run
  running      a driver runs it now
  interrupted  its driver is gone: graphloop resume goes on
  parked       it waits: graphloop approve answers, graphloop resume goes on
  blocked      the code of a worker does not fit it, and it waits for other code
  done, failed, cancelled   it is over; the list says why, unless it just completed
  -            a directory of JSON lines has no status: only a failure that came last is listed

QUEUE, DEADLINE and CODE (the revision of the code that began the run) are shown if a run has one.

A child run is listed below its parent, and goes on with it. Other commands take the id or its
beginning, as listed here. --json prints one JSON object for each run.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, NamedTuple, TypeAlias, cast, final, get_args

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text as Styled

from ..errors import ConfigError, nearest
from ..events import Cancelled, EffectFailed
from ..stores import (
    OVER,
    REVISION_SHOWN,
    Catalog,
    ReleaseStatus,
    RunRecord,
    RunStatus,
    Store,
    Submission,
    age_text,
    graph_name_of,
    paged,
    parent_of,
)
from .display import ask_text
from .errors import Status, tell_error
from .options import Json, StorePath, Text
from .stored import Start, answers_text, opened
from .text import clean, one_line, safe_json, time_text, wrapped

__all__ = ["runs_command"]

STATUSES: Final[tuple[str, ...]] = ("ready", "running", *get_args(ReleaseStatus))
OPEN: Final[tuple[RunStatus, ...]] = ("ready", "running", "interrupted", "parked", "blocked")
STYLES: Final = {
    "parked": "yellow",
    "running": "cyan",
    "ready": "cyan",
    "interrupted": "red",
    "blocked": "red",
    "failed": "red",
    "done": "green",
}
PIPE_WIDTH: Final = 200
ID_MIN: Final = 8
WHY_MAX: Final = 300
ASKED: Final = ("key", "kind", "name", "arguments", "agents", "expires_at", "unknown")
"""The fields of a question that are printed; the question's token is not printed."""

Wanted: TypeAlias = Annotated[
    Text, typer.Option("--status", metavar="STATUS", help="Only runs with this status.")
]
Everything: TypeAlias = Annotated[bool, typer.Option("--all", help="Also the runs that are over.")]


OfAgent: TypeAlias = Annotated[
    Text, typer.Option("--agent", metavar="NAME", help="Only runs of the agent of this name.")
]
After: TypeAlias = Annotated[
    Text, typer.Option("--after", metavar="RUN", help="Only runs that were created after this run.")
]
Limit: TypeAlias = Annotated[
    int | None, typer.Option("--limit", metavar="NUMBER", min=1, help="The most runs to print.")
]


class _Listing(NamedTuple):
    """The runs that a listing has: their statuses (empty for all), their agent and their place."""

    statuses: tuple[RunStatus, ...]
    agent: str | None
    after: str
    limit: int | None


@final
@dataclass(frozen=True)
class _Row:
    """A run in the list; `status` is empty if the store does not record a status."""

    record: RunRecord
    status: str
    answers: Mapping[str, str] = field(default_factory=dict[str, str])
    why: str = ""


def runs_command(  # noqa: PLR0913 - the options of a command are its parameters
    *,
    store: StorePath = None,
    status: Wanted = None,
    agent: OfAgent = None,
    everything: Everything = False,
    after: After = None,
    limit: Limit = None,
    as_json: Json = False,
) -> Status:
    """Print the runs of a store; without `--all` or `--status`, only runs that are not over."""
    if status is not None and status not in STATUSES:
        raise ConfigError(
            f"--status: expected {', '.join(STATUSES)}, found {status!r}."
            f"{nearest(status, STATUSES)}"
        )
    statuses = () if everything else OPEN
    if status is not None:
        statuses = (cast("RunStatus", status),)  # It is one of them.
    given = _Listing(statuses, agent, after or "", limit)
    shown, hint = asyncio.run(_read_rows(store, given))
    if as_json:
        for row in shown:
            sys.stdout.write(f"{safe_json(json.dumps(_row_json(row), ensure_ascii=False))}\n")
        return Status.OK
    if shown:
        _print_table(shown)
    if hint:
        tell_error(hint)
    return Status.OK


async def _read_rows(where: str | None, given: _Listing) -> tuple[Sequence[_Row], str]:
    """Return the rows of a listing, and a hint at the runs that it leaves out."""
    async with opened(where) as store:
        if not isinstance(store, Catalog):
            # Journals tell no status, so none of their runs has one that is asked for.
            known = await _from_journals(store)
            rows = [
                _Row(one, "", why=_why_over(one)) for one in known if given.statuses in ((), OPEN)
            ]
            return rows, "" if rows else "no such run" if known else "no runs"
        listing = paged(store, given.statuses, given.agent, after=given.after, limit=given.limit)
        found = [record async for record in listing]
        rows = [
            _Row(
                record,
                record.status,
                await answers_text(store, record.run_id) if record.asks else {},
                _why_over(record),
            )
            for record in found
        ]
        if len(rows) == given.limit:
            return rows, f"the runs that follow: --after {found[-1].run_id}"
        if given.statuses == OPEN and await store.page(OVER, given.agent, after="", limit=1):
            return rows, f"{'' if rows else 'no run goes on or waits; '}runs that are over: --all"
        is_empty = not rows and not await store.page((), None, after="", limit=1)
        return rows, "no runs" if is_empty else "" if rows else "no such run"


def _why_over(record: RunRecord) -> str:
    """Return why a run ended or is blocked; empty for a run that just completed, or goes on."""
    if record.refusals:
        return one_line(record.refusals[-1].reason, WHY_MAX)
    is_held = record.status in {"running", "interrupted"}
    return "" if is_held else one_line(record.ending, WHY_MAX)


async def _from_journals(store: Store) -> Sequence[RunRecord]:
    """Build the records of a store that has only journals; their `status` has no meaning.

    Only the graph of a run can tell that it is over, and why; a failure that came last is told.
    """
    known, records = await store.runs(), list[RunRecord]()
    for run_id in known:
        events = await store.load(run_id)
        graph, parent = graph_name_of(events[0]), parent_of(run_id, known)
        times = events[0].at, events[-1].at
        ending = ""
        match events[-1]:
            case EffectFailed(failure=failure):
                ending = f"{failure.error}: {failure.message}"
            case Cancelled(reason=reason, after_step=False):
                ending = f"cancelled ({reason})" if reason else "cancelled"
            case _:
                pass
        record = RunRecord(run_id, graph, "ready", len(events), *times, parent, ending=ending)
        records.append(record)
    return sorted(records, key=lambda record: record.created_at)


def _print_table(rows: Sequence[_Row]) -> None:
    """Print a table of runs that fits the terminal, then the questions that each run waits for."""
    named = [*_in_tree_order(rows)]
    is_terminal = sys.stdout.isatty()
    console = Console(width=None if is_terminal else PIPE_WIDTH, highlight=False, markup=False)
    columns = [*_columns(named)]
    widths = range(len(columns), 2, -1)
    fits = (n for n in widths if console.measure(_table(columns[:n])).maximum < console.width)
    console.print(_table(columns[: next(fits, 2)]))
    for name, row in named:
        # Skip child runs: their questions are printed with their root run.
        for ask in () if row.record.parent and name.startswith((" ", "└")) else row.record.asks:
            answer = row.answers.get(ask.key)
            said = f": {answer}" if answer else ""
            line = f"{name} waits for {ask.key}: {ask_text(ask)}{said}"
            sys.stdout.write(f"{wrapped(line, sys.stdout)}\n")
        if row.why:
            line = f"{name} {row.status or 'last event'}: {row.why}"
            sys.stdout.write(f"{wrapped(line, sys.stdout)}\n")


def _columns(named: Sequence[tuple[str, _Row]]) -> Iterator[tuple[str, Sequence[str | Styled]]]:
    """Yield the head and the cells of each column, the least important last."""
    records = [row.record for _, row in named]
    yield "RUN", [name for name, _ in named]
    yield (
        "STATUS",
        [Styled(row.status or "-", STYLES.get(row.status, "")) for _, row in named],
    )
    yield "GRAPH", [clean(one.graph) for one in records]
    if any(one.queue != Submission().queue for one in records):
        yield "QUEUE", [clean(one.queue) for one in records]
    if any(deadlines := [_deadline_text(one) for one in records]):
        yield "DEADLINE", deadlines
    yield "EVENTS", [Styled(str(one.events), justify="right") for one in records]
    yield "UPDATED", [time_text(one.updated_at) for one in records]
    if any(one.revision for one in records):
        yield "CODE", [one.revision[:REVISION_SHOWN] for one in records]


def _deadline_text(record: RunRecord) -> str | Styled:
    """Return when the deadline of a run that is not over is, from now; "" for none."""
    remaining_s = record.remaining_s
    if remaining_s is None or record.status in OVER:
        return ""
    if remaining_s <= 0:
        return Styled(f"{age_text(-remaining_s)} ago", "red")
    return f"in {age_text(remaining_s)}"


def _table(columns: Sequence[tuple[str, Sequence[str | Styled]]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name, _ in columns:
        table.add_column(name, no_wrap=True, overflow="fold")
    for cells in zip(*[cells for _, cells in columns], strict=True):
        table.add_row(*cells)
    return table


def _in_tree_order(rows: Sequence[_Row]) -> Iterator[tuple[str, _Row]]:
    """Yield the name to print and the row of each run, with child runs after their parent."""
    listed = {row.record.run_id for row in rows}
    roots = {run_id.partition("/")[0] for run_id in listed}
    sizes = range(ID_MIN, sys.maxsize)
    size = next(n for n in sizes if len({root[:n] for root in roots}) == len(roots))
    children: dict[str, list[_Row]] = {}
    for row in rows:
        parent = row.record.parent
        children.setdefault(parent if parent in listed else "", []).append(row)

    def branch(parent: str, depth: int) -> Iterator[tuple[str, _Row]]:
        for row in children.get(parent, []):
            root, slash, path = row.record.run_id.partition("/")
            yield f"{'  ' * (depth - 1)}{'└ ' if depth else ''}{root[:size]}{slash}{path}", row
            yield from branch(row.record.run_id, depth + 1)

    return branch("", 0)


def _row_json(row: _Row) -> Mapping[str, object]:
    record = row.record
    return {
        "run_id": record.run_id,
        "graph": record.graph,
        "status": row.status or None,
        "events": record.events,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
        "parent": record.parent or None,
        "queue": record.queue,
        "remaining_s": record.remaining_s,
        "revision": record.revision or None,
        "why": row.why or None,
        "target": start.target if (start := Start.noted(record.target)) else None,
        "asks": [
            {name: getattr(ask, name) for name in ASKED} | {"answer": row.answers.get(ask.key)}
            for ask in record.asks
        ],
    }
